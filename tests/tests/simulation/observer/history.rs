//! What the events of one kind told, in order, and what of it must not be, whatever the kind: an event that comes twice,
//! late or before what it follows (I3), two objects of one name or a uid that comes back (I4), an object that is not as new
//! as a write of it was acknowledged (I1), an end that is put off or held by somebody new.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::meta::ObjectMeta;
use testing::Collection;

use super::rules::{Change, Watched};

/// More violations than these say nothing new.
const MAX_VIOLATIONS: usize = 20;
/// Finalizers that a deletion itself adds, as its way of dealing with dependents.
const OF_DELETIONS: [&str; 2] = ["foregroundDeletion", "orphan"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    Added,
    Modified,
    Deleted,
}

/// All objects of a kind, as the events told of them.
pub(crate) struct History<T: Watched> {
    /// The version of the last event; nothing before the first list, and after a watch that was too old.
    pub(super) version: Option<u64>,
    /// The objects that exist, by uid.
    objects: BTreeMap<String, T>,
    /// The uids of objects that are gone, with the version of the event that told of it, if one did.
    gone: BTreeMap<String, Option<u64>>,
    events: usize,
    /// How often they had to be listed: between two lists, an object may have come and gone untold.
    lists: usize,
    violations: Vec<String>,
    memory: T::Memory,
}

impl<T: Watched> Default for History<T> {
    fn default() -> Self {
        Self {
            version: None,
            objects: BTreeMap::new(),
            gone: BTreeMap::new(),
            events: 0,
            lists: 0,
            violations: Vec::new(),
            memory: T::Memory::default(),
        }
    }
}

impl<T: Watched> History<T> {
    /// What the kind's rules remember.
    pub(super) fn memory(&self) -> &T::Memory {
        &self.memory
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &T> {
        self.objects.values()
    }

    /// Whether every object there was has been told of.
    pub(super) fn is_complete(&self) -> bool {
        self.lists == 1
    }

    pub(super) fn events(&self) -> usize {
        self.events
    }

    pub(super) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// The version of each object, by uid.
    pub(super) fn versions(&self) -> BTreeMap<String, u64> {
        self.objects.iter().map(|(uid, object)| (uid.clone(), version(object.meta()))).collect()
    }

    /// Which objects of this kind are not as new as a write was acknowledged, of all that were, by uid.
    pub(super) fn lost(&self, acknowledged: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        let is_lost = |uid: &String, newest: u64| match self.objects.get(uid) {
            Some(object) => version(object.meta()) < newest,
            None => self.is_complete() && !self.gone.contains_key(uid),
        };
        let own = acknowledged.iter().filter(|(_, (path, _))| is_path_of::<T>(path));
        let lost = own.filter(|(uid, (_, newest))| is_lost(uid, *newest));
        lost.map(|(uid, (path, newest))| format!("{path} ({uid}) was acknowledged at {newest}, and is not there"))
            .collect()
    }

    /// Which objects of this kind were not in a list, though they were there at that moment, of all that were not, by uid.
    pub(super) fn hidden(&self, absent: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        let is_hidden = |uid: &String, at: u64| match self.gone.get(uid) {
            Some(gone) => gone.is_some_and(|gone| gone > at),
            None => self.objects.contains_key(uid),
        };
        let own = absent.iter().filter(|(_, (path, _))| is_path_of::<T>(path));
        let hidden = own.filter(|(uid, (_, at))| is_hidden(uid, *at));
        hidden.map(|(uid, (path, at))| format!("{uid} was not in the list {path} at {at}, and was there")).collect()
    }

    fn violated(&mut self, what: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(format!("{}: {what}", T::TYPE.kind));
        }
    }

    pub(super) fn relist(&mut self, version_of_list: &str, objects: Vec<T>) {
        self.version = version_of_list.parse().ok();
        self.lists += 1;
        let now: BTreeSet<&String> = objects.iter().map(|object| &object.meta().uid).collect();
        let left: Vec<String> = self.objects.keys().filter(|uid| !now.contains(uid)).cloned().collect();
        for uid in left {
            self.objects.remove(&uid);
            self.gone.insert(uid, None);
        }
        // All of a list is of one moment: none of it is held against what has been before.
        let uid = |object: &T| object.meta().uid.clone();
        let changed = objects.into_iter().map(|object| (self.objects.insert(uid(&object), object.clone()), object));
        for (before, object) in changed.collect::<Vec<_>>() {
            if before.as_ref().is_some_and(|before| version(before.meta()) > version(object.meta())) {
                self.violated(format!("a list has {} older than an event told", object.meta().name));
            }
            self.check(before.as_ref(), &object);
        }
    }

    pub(super) fn happened(&mut self, what: Happened, object: T) {
        self.events += 1;
        let ObjectMeta { name, uid, .. } = object.meta().clone();
        let at = version(object.meta());
        if self.version.is_some_and(|last| at <= last) {
            self.violated(format!("{what:?} {name} at {at} came after {:?}", self.version));
        }
        self.version = Some(at);
        if self.objects.contains_key(&uid) == (what == Happened::Added) {
            self.violated(format!("{what:?} {name} ({uid}) does not follow what was told before"));
        }
        if what == Happened::Deleted {
            self.objects.remove(&uid);
            self.gone.insert(uid, Some(at));
        } else {
            self.put(object);
        }
    }

    fn put(&mut self, object: T) {
        let before = self.objects.insert(object.meta().uid.clone(), object.clone());
        self.check(before.as_ref(), &object);
    }

    /// Looks at a change of an object that has been taken over.
    fn check(&mut self, before: Option<&T>, object: &T) {
        let ObjectMeta { name, namespace, uid, .. } = object.meta().clone();
        if self.gone.contains_key(&uid) {
            self.violated(format!("{name} ({uid}) is back after it was deleted"));
        }
        let is_namesake = |other: &&T| other.meta().name == name && other.meta().namespace == namespace;
        if self.objects.values().filter(is_namesake).count() > 1 {
            self.violated(format!("there are two {name} at once"));
        }
        let turned = before.map(|before| turned_back(before.meta(), object.meta())).unwrap_or_default();
        turned.into_iter().for_each(|what| self.violated(format!("{name} {what}")));
        let change = Change { before, now: object, all: &self.objects };
        let broken = T::check(&mut self.memory, &change);
        broken.into_iter().for_each(|what| self.violated(what));
    }
}

/// What has changed from `before` to `now` and never may.
fn turned_back(before: &ObjectMeta, now: &ObjectMeta) -> Vec<String> {
    let mut found = Vec::new();
    if now.creation_timestamp != before.creation_timestamp {
        found.push("was created at another time than before".to_owned());
    }
    if now.generation < before.generation {
        found.push(format!("went from generation {} to {}", before.generation, now.generation));
    }
    let Some(end) = &before.deletion_timestamp else { return found };
    // One that is over is set anew when it is shortened to at most a second.
    let grace = now.deletion_grace_period_seconds;
    let is_shortened = grace < before.deletion_grace_period_seconds && grace.is_some_and(|seconds| seconds <= 1);
    if now.deletion_timestamp.as_ref().is_none_or(|now| now > end && !is_shortened) {
        found.push(format!("was to end at {end:?}, now at {:?}", now.deletion_timestamp));
    }
    let is_new = |own: &&String| !before.finalizers.contains(own) && !OF_DELETIONS.contains(&own.as_str());
    found.extend(now.finalizers.iter().filter(is_new).map(|own| format!("is held by {own} since its end began")));
    found
}

pub(super) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.parse().unwrap_or_default()
}

/// Whether a request with this path is about objects of the kind.
fn is_path_of<T: Watched>(path: &str) -> bool {
    Collection::of(path).is_some_and(|own| own.group == T::TYPE.group && own.resource == T::TYPE.resource)
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;
    use api_types::apps_v1::Deployment;
    use api_types::core_v1::{Namespace, Pod};
    use serde_json::json;

    use super::*;

    fn pod(name: &str, uid: &str, version: &str, node: &str, cpu: &str) -> Pod {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": version});
        let (spec, status) = (json!({"nodeName": node, "containers": [container]}), json!({"phase": "Running"}));
        from_value(&json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn violations_are_seen() {
        use Happened::{Added, Deleted, Modified};
        let one = |version: &str, node: &str| pod("a", "1", version, node, "1");
        let cases = [
            (vec![(Added, one("1", "")), (Modified, one("2", "n")), (Deleted, one("3", "n"))], None),
            (vec![(Added, one("2", "")), (Modified, one("2", ""))], Some("came after")),
            (vec![(Added, one("1", "")), (Added, one("2", ""))], Some("does not follow")),
            (vec![(Modified, one("1", ""))], Some("does not follow")),
            (vec![(Added, one("1", "")), (Deleted, one("2", "")), (Added, one("3", ""))], Some("is back")),
            (vec![(Added, one("1", "n")), (Modified, one("2", "m"))], Some("moved from n to m")),
            (vec![(Added, one("1", "")), (Added, pod("a", "2", "2", "", "1"))], Some("two a")),
            (
                vec![(Added, pod("a", "1", "1", "n", "5")), (Added, pod("b", "2", "2", "n", "4"))],
                Some("has given 9000"),
            ),
        ];
        for (events, expected) in cases {
            let mut history = History::<Pod>::default();
            for (what, pod) in events.clone() {
                history.happened(what, pod);
            }
            match expected {
                None => assert_eq!(history.violations, Vec::<String>::new()),
                Some(text) => assert!(history.violations.iter().any(|line| line.contains(text)), "{events:?}"),
            }
        }
    }

    #[test]
    fn all_of_a_list_is_of_one_moment() {
        let first = pod("a", "1", "1", "n", "5");
        let mut ended = pod("a", "1", "2", "n", "5");
        ended.status.phase = "Succeeded".to_owned();
        // The second has the room of the first, which the list tells of last.
        for (then, expected) in [(ended, 0), (first.clone(), 2)] {
            let mut history = History::<Pod>::default();
            history.relist("1", vec![first.clone()]);
            history.relist("3", vec![pod("b", "2", "3", "n", "5"), then]);
            assert_eq!(history.violations.len(), expected, "{:?}", history.violations);
        }
    }

    #[test]
    fn what_never_may_turn_back_is_seen() {
        let meta = |value| from_value::<ObjectMeta>(&value).unwrap();
        let time = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
        let ending = json!({"generation": 2, "deletionTimestamp": time(30), "finalizers": ["a", "b"]});
        for (before, now, expected) in [
            (json!({"generation": 2}), json!({"generation": 1}), Some("went from generation 2 to 1")),
            (json!({"creationTimestamp": time(1)}), json!({"creationTimestamp": time(2)}), Some("created at another")),
            (ending.clone(), json!({"generation": 2}), Some("was to end")),
            (ending.clone(), json!({"generation": 2, "deletionTimestamp": time(31)}), Some("was to end")),
            (
                json!({"deletionTimestamp": time(30), "deletionGracePeriodSeconds": 30}),
                json!({"deletionTimestamp": time(40), "deletionGracePeriodSeconds": 0}),
                None,
            ),
            (
                json!({"deletionTimestamp": time(30), "deletionGracePeriodSeconds": 0}),
                json!({"deletionTimestamp": time(40), "deletionGracePeriodSeconds": 0}),
                Some("was to end"),
            ),
            (ending.clone(), json!({"generation": 3, "deletionTimestamp": time(1), "finalizers": ["b"]}), None),
            (
                ending.clone(),
                json!({"generation": 2, "deletionTimestamp": time(30), "finalizers": ["a", "c"]}),
                Some("is held by c"),
            ),
            (ending, json!({"generation": 2, "deletionTimestamp": time(30), "finalizers": ["orphan"]}), None),
        ] {
            let found = turned_back(&meta(before), &meta(now.clone()));
            match expected {
                None => assert_eq!(found, Vec::<String>::new()),
                Some(text) => assert!(found.iter().any(|line| line.contains(text)), "{now}: {found:?}"),
            }
        }
    }

    #[test]
    fn an_acknowledged_write_is_of_the_kind_that_its_path_names() {
        for (path, expected) in [
            ("/api/v1/namespaces/default/pods/a/status?x=y", [true, false, false]),
            ("/api/v1/namespaces/pods", [false, true, false]),
            ("/api/v1/namespaces?fieldManager=x", [false, true, false]),
            ("/api/v1/namespaces/default/finalize", [false, true, false]),
            ("/apis/apps/v1/namespaces/default/deployments", [false, false, true]),
            ("/apis/apps/v1/namespaces/default/replicasets/pods", [false, false, false]),
        ] {
            let found = [is_path_of::<Pod>(path), is_path_of::<Namespace>(path), is_path_of::<Deployment>(path)];
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        let path = "/api/v1/namespaces/default/pods".to_owned();
        let acknowledged = |newest| BTreeMap::from([("1".to_owned(), (path.clone(), newest))]);
        let mut history = History::<Pod>::default();
        assert!(history.lost(&acknowledged(2)).is_empty(), "nothing was listed yet");
        history.relist("1", Vec::new());
        assert_eq!(history.lost(&acknowledged(2)).len(), 1);
        history.happened(Happened::Added, pod("a", "1", "2", "", "1"));
        assert!(history.lost(&acknowledged(2)).is_empty());
        assert_eq!(history.lost(&acknowledged(3)).len(), 1);
        history.happened(Happened::Deleted, pod("a", "1", "4", "", "1"));
        assert!(history.lost(&acknowledged(3)).is_empty());
    }

    #[test]
    fn what_is_there_and_not_in_a_list_is_hidden() {
        let path = "/api/v1/namespaces/default/pods".to_owned();
        let absent = |at| BTreeMap::from([("1".to_owned(), (path.clone(), at))]);
        let mut history = History::<Pod>::default();
        history.relist("1", Vec::new());
        assert!(history.hidden(&absent(1)).is_empty(), "nobody has heard of it");
        history.happened(Happened::Added, pod("a", "1", "2", "", "1"));
        assert_eq!(history.hidden(&absent(3)).len(), 1);
        history.happened(Happened::Deleted, pod("a", "1", "4", "", "1"));
        assert_eq!(history.hidden(&absent(3)).len(), 1);
        assert!(history.hidden(&absent(4)).is_empty());
    }
}
