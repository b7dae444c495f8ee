//! Names and facts of custom kinds for as long as the process lives, as those of built-in kinds are. Equal facts are kept
//! once, and there is a bound: definitions that keep changing must not fill the memory.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kinds::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// The most that is kept: some thousands of definitions with ten versions of facts each.
const LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = 512;

/// In the order in which upstream tells them of custom kinds.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// The facts of one version of a custom kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) storage_version: String,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    pub(super) selectable: Vec<String>,
    /// Name, type, format and priority.
    pub(super) columns: Vec<(String, String, String, i32)>,
}

/// The pool is full.
#[derive(Debug, thiserror::Error)]
#[error("too many different custom resource definitions were served since the server started")]
pub(super) struct PoolFull;

/// What is kept.
#[derive(Default)]
pub(super) struct InfoPool {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    infos: HashMap<Facts, &'static ResourceInfo>,
    bytes: usize,
}

impl InfoPool {
    /// The facts as the engine wants them.
    ///
    /// # Errors
    /// When the pool is full.
    pub(super) fn intern(&self, facts: &Facts) -> Result<&'static ResourceInfo, PoolFull> {
        let mut known = self.known.lock();
        if let Some(info) = known.infos.get(facts) {
            return Ok(info);
        }
        let bytes = ENTRY_BYTES + format!("{facts:?}").len() * 2;
        if known.bytes + bytes > LIMIT_BYTES {
            return Err(PoolFull);
        }
        let info: &'static ResourceInfo = Box::leak(Box::new(kept(facts)));
        known.bytes += bytes;
        known.infos.insert(facts.clone(), info);
        Ok(info)
    }
}

fn text(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn list<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

fn texts(items: &[String]) -> &'static [&'static str] {
    list(items.iter().map(|item| text(item)).collect())
}

fn kept(facts: &Facts) -> ResourceInfo {
    let stored = format!("{}/{}/{}", facts.group, facts.storage_version, facts.kind);
    let hash = Sha256::digest(stored.as_bytes());
    let hash = STANDARD.encode(hash.get(..8).unwrap_or_default());
    let (group, kind) = (text(&facts.group), text(&facts.kind));
    let mut subresources = Vec::new();
    if facts.has_scale {
        let verbs = SUBRESOURCE_VERBS;
        subresources.push(SubresourceInfo { name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs });
    }
    if facts.has_status {
        subresources.push(SubresourceInfo { name: "status", kind, group: "", version: "", verbs: SUBRESOURCE_VERBS });
    }
    let columns = facts.columns.iter().map(|(name, type_, format, priority)| Column {
        name: text(name),
        type_: text(type_),
        format: text(format),
        priority: *priority,
    });
    ResourceInfo {
        group,
        version: text(&facts.version),
        kind,
        resource: text(&facts.plural),
        singular: text(&facts.singular),
        short_names: texts(&facts.short_names),
        categories: texts(&facts.categories),
        namespaced: facts.namespaced,
        verbs: VERBS,
        storage: Some(StorageInfo {
            prefix: text(&format!("{}/{}", facts.group, facts.plural)),
            version: text(&facts.storage_version),
            group,
            hash: text(&hash),
        }),
        create_on_update: false,
        unconditional_update: false,
        field_selectors: texts(&facts.selectable),
        columns: list(columns.collect()),
        subresources: list(subresources),
    }
}
