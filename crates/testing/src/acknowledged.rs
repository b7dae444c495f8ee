//! What the servers have said of objects: which version a write was acknowledged with, and whether anybody read or listed an
//! older one afterwards.

mod listed;

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::meta::PartialObjectMetadata;

use crate::collection::Collection;
use listed::{ObjectsListed, decoded};

/// What the tables of types ask for.
const PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// More violations than these say nothing new.
const MAX_VIOLATIONS: usize = 20;
/// What keeps objects out of a list.
const SELECTORS: [&str; 2] = ["labelSelector=", "fieldSelector="];

/// All acknowledged writes.
#[derive(Default)]
pub(crate) struct Acknowledged {
    /// By uid.
    objects: BTreeMap<String, Written>,
    /// The newest version that any write was acknowledged with, after each acknowledgement.
    newest: Vec<u64>,
    /// The earliest list in which an object was not that had been written: its path and version.
    absent: BTreeMap<String, (String, u64)>,
    violations: Vec<String>,
}

/// The writes of an object.
struct Written {
    path: String,
    collection: Option<Collection>,
    /// Each version, with the number of the acknowledgement, in order.
    versions: Vec<(usize, u64)>,
}

impl Written {
    /// The newest version of the first acknowledgements.
    fn newest(&self, after: usize) -> Option<u64> {
        self.versions.iter().filter(|(number, _)| *number <= after).map(|(_, version)| *version).max()
    }
}

impl Acknowledged {
    /// How many there were so far: what a read that begins now has to see.
    pub(crate) fn count(&self) -> usize {
        self.newest.len()
    }

    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// The newest version of each object, by uid, with the path it was written at.
    pub(crate) fn newest(&self) -> BTreeMap<String, (String, u64)> {
        let mut newest = BTreeMap::new();
        for (uid, written) in &self.objects {
            if let Some(version) = written.newest(usize::MAX) {
                newest.insert(uid.clone(), (written.path.clone(), version));
            }
        }
        newest
    }

    /// The versions that writes of an object were acknowledged with.
    pub(crate) fn versions(&self, uid: &str) -> BTreeSet<u64> {
        let written = self.objects.get(uid).into_iter();
        written.flat_map(|written| &written.versions).map(|(_, version)| *version).collect()
    }

    /// The earliest list in which each object was not that had been written before, by uid: its path and version.
    pub(crate) fn absent(&self) -> &BTreeMap<String, (String, u64)> {
        &self.absent
    }

    pub(crate) fn written(&mut self, path: &str, body: &[u8]) {
        let Some((uid, version)) = identity(body) else { return };
        self.newest.push(self.newest.last().copied().unwrap_or_default().max(version));
        let (path, collection) = (path.to_owned(), Collection::of(path));
        let entry = self.objects.entry(uid).or_insert_with(|| Written { path, collection, versions: Vec::new() });
        entry.versions.push((self.newest.len(), version));
    }

    /// An object or a list was read by a request that began after so many acknowledgements, and asked for the newest.
    pub(crate) fn read(&mut self, after: usize, path: &str, body: &[u8]) {
        if let Some((uid, version)) = identity(body) {
            self.shown(after, path, &uid, version);
        } else if let Some(list) = decoded::<ObjectsListed>(body, |kind| kind.ends_with("List")) {
            self.listed(after, path, &list);
        }
    }

    /// An object was shown at a version.
    fn shown(&mut self, after: usize, path: &str, uid: &str, version: u64) {
        let before = self.objects.get(uid).and_then(|written| written.newest(after));
        if let Some(known) = before.filter(|known| *known > version) {
            self.violated(format!("{path} was read at {version} after {known} was acknowledged"));
        }
    }

    /// A list shows what was there at one moment, which is not before the request.
    fn listed(&mut self, after: usize, path: &str, list: &ObjectsListed) {
        let (Ok(at), Some(own)) = (list.metadata.resource_version.parse::<u64>(), Collection::of(path)) else { return };
        // Further pages are of the moment of the first.
        if path.contains("continue=") {
            return;
        }
        let known = after.checked_sub(1).and_then(|last| self.newest.get(last).copied());
        if let Some(known) = known.filter(|known| *known > at) {
            self.violated(format!("{path} was listed at {at} after {known} was acknowledged"));
        }
        let mut there = BTreeSet::new();
        for item in &list.items {
            there.insert(item.metadata.uid.as_str());
            if let Ok(version) = item.metadata.resource_version.parse() {
                self.shown(after, path, &item.metadata.uid, version);
            }
        }
        if !list.metadata.continue_.is_empty() || SELECTORS.iter().any(|selector| path.contains(selector)) {
            return;
        }
        let is_missing = |(uid, written): &(&String, &Written)| {
            let is_of_list = written.collection.as_ref().is_some_and(|other| own.has(other));
            is_of_list && !there.contains(uid.as_str()) && written.newest(after).is_some()
        };
        for (uid, _) in self.objects.iter().filter(is_missing) {
            let earliest = self.absent.entry(uid.clone()).or_insert_with(|| (path.to_owned(), at));
            if at < earliest.1 {
                *earliest = (path.to_owned(), at);
            }
        }
    }

    fn violated(&mut self, what: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(what);
        }
    }
}

/// The uid and the version of the object that a body is, if it is one.
fn identity(body: &[u8]) -> Option<(String, u64)> {
    let object: PartialObjectMetadata = decoded(body, |kind| kind != "Status" && !kind.ends_with("List"))?;
    let version = object.metadata.resource_version.parse().ok()?;
    (!object.metadata.uid.is_empty()).then_some((object.metadata.uid, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(uid: &str, version: &str) -> Vec<u8> {
        format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}}}"#)
            .into_bytes()
    }

    #[test]
    fn an_older_read_is_seen() {
        // Written versions, after how many of them the read began, what it read, and whether that is too old.
        let cases: [(&[&str], usize, &str, bool); 5] = [
            (&["5"], 1, "5", false),
            (&["5", "7"], 2, "5", true),
            (&["5", "7"], 1, "5", false),
            (&["7", "5"], 2, "5", true),
            (&[], 0, "1", false),
        ];
        for (written, after, read, is_violated) in cases {
            let mut known = Acknowledged::default();
            written.iter().for_each(|version| known.written("/a", &body("u", version)));
            known.read(after, "/a", &body("u", read));
            assert_eq!(!known.violations().is_empty(), is_violated, "{written:?} {after} {read}");
        }
        let mut known = Acknowledged::default();
        known.written("/a", br#"{"kind":"Status","metadata":{}}"#);
        assert_eq!(known.count(), 0);
    }

    #[test]
    fn an_older_list_is_seen() {
        const PODS: &str = "/api/v1/namespaces/n/pods";
        let item = |uid: &str, version: &str| String::from_utf8(body(uid, version)).unwrap();
        let list = |at: &str, items: &[String]| {
            format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"{at}"}},"items":[{}]}}"#, items.join(","))
        };
        // The list's version, what is in it, after how many writes it began, and what is told of it.
        let cases: [(&str, &[String], usize, Option<&str>); 5] = [
            ("7", &[item("u", "5"), item("v", "7")], 2, None),
            ("6", &[item("u", "5")], 1, None),
            ("6", &[item("u", "5")], 2, Some("was listed at 6 after 7 was acknowledged")),
            ("7", &[item("u", "4"), item("v", "7")], 2, Some("was read at 4 after 5 was acknowledged")),
            ("4", &[], 1, Some("was listed at 4 after 5 was acknowledged")),
        ];
        for (at, items, after, expected) in cases {
            let mut known = Acknowledged::default();
            known.written(&format!("{PODS}/a/status"), &body("u", "5"));
            known.written("/api/v1/namespaces/m/pods", &body("v", "7"));
            known.read(after, "/api/v1/pods", list(at, items).as_bytes());
            assert_eq!(known.violations().len(), usize::from(expected.is_some()), "{:?}", known.violations());
            assert!(expected.is_none_or(|text| known.violations()[0].contains(text)), "{:?}", known.violations());
        }
    }

    #[test]
    fn what_is_not_in_a_list_is_known_with_the_earliest() {
        let list = |at: &str| format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"{at}"}},"items":[]}}"#);
        for (path, expected) in [
            ("/api/v1/pods", Some(8)),
            ("/api/v1/namespaces/n/pods", Some(8)),
            ("/api/v1/namespaces/m/pods", None),
            ("/api/v1/pods?labelSelector=a", None),
            ("/api/v1/pods?limit=5", Some(8)),
            ("/api/v1/pods?continue=x", None),
            ("/apis/apps/v1/pods", None),
            ("/api/v1/nodes", None),
        ] {
            let mut known = Acknowledged::default();
            known.written("/api/v1/namespaces/n/pods/a/status", &body("u", "5"));
            for at in ["9", "8", "10"] {
                known.read(1, path, list(at).as_bytes());
            }
            assert_eq!(known.absent().get("u").map(|(_, at)| *at), expected, "{path}");
            let mut known = Acknowledged::default();
            known.read(0, path, list("9").as_bytes());
            known.written("/api/v1/namespaces/n/pods/a/status", &body("u", "5"));
            known.read(1, path, list("9").replace('}', r#","continue":"x"}"#).as_bytes());
            assert!(known.absent().is_empty(), "nothing was acknowledged before, or there is more");
        }
    }
}
