//! The kinds of events.k8s.io/v1.

mod conversion;
mod event;

pub(crate) use conversion::to_stored;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<event::EventRules>::new()];
