//! The uid of a static pod, as upstream makes it: 128-bit FNV-1a over what Go's `spew` prints of the decoded and defaulted
//! pod in upstream's internal types, and then over where the manifest came from (`pkg/kubelet/config`, `DeepHashObject`).
//! Whoever takes over a node finds the uids that its static pods run under, and restarts none.

mod amount;
mod layout;
mod print;
#[cfg(test)]
mod tests;
mod written;

use std::fmt::{self, Write as _};

use api_machinery::value::{Value, struct_to_map};
use api_types::core_v1::Pod;
use component_helpers::fnv::Fnv128;

use super::Source;
use super::manifest::Reading;

/// The uid of a pod that states none: `pod` with its defaults, `manifest` as it was written.
pub(super) fn of(pod: &Pod, manifest: &Value, reading: &Reading<'_>) -> String {
    let mut hash = Fnv128::default();
    // A hash takes whatever is written to it.
    let _: fmt::Result =
        print::pod(&mut hash, &written::merged(struct_to_map(pod), manifest)).and_then(|()| match reading.source {
            Source::Http => write!(hash, "url:{}", reading.origin),
            _ => write!(hash, "host:{}file:{}", reading.node_name, reading.origin),
        });
    format!("{:032x}", hash.value())
}
