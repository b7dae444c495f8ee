//! Requests without credentials: user `system:anonymous`, group `system:unauthenticated`, where the configuration lets them.

use http::request::Parts;

use crate::identity::{ANONYMOUS, Identity, UNAUTHENTICATED};

/// Lets requests pass as anonymous, on every path or on listed ones only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anonymous {
    /// Exact URL paths let through; empty means all.
    pub paths: Vec<String>,
}

impl Anonymous {
    /// The anonymous identity, or `None` where the path is not listed (the request is then 401).
    #[must_use]
    pub fn identify(&self, request: &Parts) -> Option<Identity> {
        let allowed = self.paths.is_empty() || self.paths.iter().any(|path| path == request.uri.path());
        allowed.then(|| Identity::new(ANONYMOUS, vec![UNAUTHENTICATED.to_owned()]))
    }
}
