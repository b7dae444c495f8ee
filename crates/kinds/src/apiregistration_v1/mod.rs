//! The kinds of apiregistration.k8s.io/v1.

mod api_service;

use crate::rules::{Rules, Typed};

pub use api_service::{LOCAL_MESSAGE, LOCAL_REASON};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<api_service::APIServiceRules>::new()];
