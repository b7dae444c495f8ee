//! How many watches there are that a write may concern.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::request::RequestInfo;

/// The watches that are open, by what they watch.
#[derive(Default)]
pub(super) struct Watches {
    open: Mutex<HashMap<String, u32>>,
}

/// An open watch, which is counted until this is dropped.
pub(crate) struct OpenWatch {
    watches: Arc<Watches>,
    key: String,
}

impl Watches {
    /// Counts a watch. Pods of one node are not counted: hardly any write concerns them.
    pub(super) fn register(self: &Arc<Self>, info: &RequestInfo) -> Option<OpenWatch> {
        let is_of_node =
            info.group.is_empty() && info.resource == "pods" && info.field_selector.contains("spec.nodeName=");
        if is_of_node {
            return None;
        }
        let key = key(info, &info.namespace, &info.name);
        *self.open.lock().entry(key.clone()).or_default() += 1;
        Some(OpenWatch { watches: Arc::clone(self), key })
    }

    /// The watches that a write concerns.
    pub(super) fn concerned(&self, info: &RequestInfo) -> u32 {
        let open = self.open.lock();
        if open.is_empty() {
            return 0;
        }
        let of = |namespace: &str, name: &str| open.get(&key(info, namespace, name)).copied().unwrap_or_default();
        let mut sum = of("", "");
        if !info.namespace.is_empty() {
            sum += of(&info.namespace, "");
        }
        if !info.name.is_empty() {
            sum += of(&info.namespace, &info.name);
        }
        sum
    }
}

/// Group, resource, namespace and name; the latter are empty for watches of all. Nothing that is there has a slash in one.
fn key(info: &RequestInfo, namespace: &str, name: &str) -> String {
    [info.group.as_str(), &info.resource, namespace, name].join("/")
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        let mut open = self.watches.open.lock();
        if let Some(count) = open.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    fn info(path: &str, query: &str) -> RequestInfo {
        RequestInfo::new(&http::Method::GET, path, &Query::parse(query)).expect("a path")
    }

    #[test]
    fn writes_concern_watches_of_their_place() {
        let watches = Arc::new(Watches::default());
        let mut open = Vec::new();
        for (path, query) in [
            ("/api/v1/pods", "watch=1"),
            ("/api/v1/namespaces/a/pods", "watch=1"),
            ("/api/v1/namespaces/b/pods", "watch=1"),
            ("/api/v1/namespaces/a/pods", "watch=1&fieldSelector=metadata.name%3Dx"),
            ("/api/v1/pods", "watch=1&fieldSelector=spec.nodeName%3Dn"),
            ("/api/v1/services", "watch=1"),
        ] {
            open.extend(watches.register(&info(path, query)));
        }
        assert_eq!(open.len(), 5);
        assert_eq!(watches.concerned(&info("/api/v1/namespaces/a/pods/x", "")), 3);
        assert_eq!(watches.concerned(&info("/api/v1/namespaces/a/pods/y", "")), 2);
        assert_eq!(watches.concerned(&info("/api/v1/namespaces/c/pods/x", "")), 1);
        open.clear();
        assert_eq!(watches.concerned(&info("/api/v1/namespaces/a/pods/x", "")), 0);
    }
}
