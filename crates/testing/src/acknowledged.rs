//! What the servers have said of objects: which version a write was acknowledged with, and whether anybody read an older
//! one afterwards.

use std::collections::BTreeMap;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::{json, protobuf};

/// More violations than these say nothing new.
const MAX_VIOLATIONS: usize = 20;

/// All acknowledged writes, by the object's uid.
#[derive(Default)]
pub(crate) struct Acknowledged {
    /// The path it was written at, and the newest version with the number of the acknowledgement, in order.
    objects: BTreeMap<String, (String, Vec<(usize, u64)>)>,
    count: usize,
    violations: Vec<String>,
}

impl Acknowledged {
    /// How many there were so far: what a read that begins now has to see.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// The newest version of each object, by uid, with the path it was written at.
    pub(crate) fn newest(&self) -> BTreeMap<String, (String, u64)> {
        let mut newest = BTreeMap::new();
        for (uid, (path, versions)) in &self.objects {
            if let Some(version) = versions.iter().map(|(_, version)| *version).max() {
                newest.insert(uid.clone(), (path.clone(), version));
            }
        }
        newest
    }

    pub(crate) fn written(&mut self, path: &str, body: &[u8]) {
        let Some((uid, version)) = identity(body) else { return };
        self.count += 1;
        let entry = self.objects.entry(uid).or_insert_with(|| (path.to_owned(), Vec::new()));
        entry.1.push((self.count, version));
    }

    /// An object was read by a request that began after so many acknowledgements, and asked for the newest.
    pub(crate) fn read(&mut self, after: usize, path: &str, body: &[u8]) {
        let Some((uid, version)) = identity(body) else { return };
        let Some((_, versions)) = self.objects.get(&uid) else { return };
        let before = versions.iter().filter(|(number, _)| *number <= after).map(|(_, version)| *version).max();
        if let Some(known) = before.filter(|known| *known > version)
            && self.violations.len() < MAX_VIOLATIONS
        {
            self.violations.push(format!("{path} was read at {version} after {known} was acknowledged"));
        }
    }
}

/// The uid and the version of the object that a body is, if it is one.
fn identity(body: &[u8]) -> Option<(String, u64)> {
    let mut object = PartialObjectMetadata::default();
    if protobuf::is_enveloped(body) {
        let envelope = protobuf::open(body).ok()?;
        if envelope.kind == "Status" || envelope.kind.ends_with("List") {
            return None;
        }
        protobuf::decode(envelope.raw, &mut object).ok()?;
    } else {
        json::decode(body, &mut object).ok()?;
    }
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
}
