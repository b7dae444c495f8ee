//! Turns complete sets of pods per source into what changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::Pod;

use super::{CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, Source, SourceSet};

/// A change to the configured pods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Remove(Vec<Arc<Pod>>),
    Add(Vec<Arc<Pod>>),
    Update(Vec<Arc<Pod>>),
    /// The pod shall go, gracefully.
    Delete(Vec<Arc<Pod>>),
    /// Only the status differs.
    Reconcile(Vec<Arc<Pod>>),
}

/// What a set changed, in the order in which it is applied.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) ops: Vec<Op>,
    /// Pods left out because another one of the set has their name.
    pub(crate) duplicates: Vec<Pod>,
}

/// The pods of all sources as they were last.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    known: BTreeMap<Source, BTreeMap<String, Arc<Pod>>>,
    seen: BTreeSet<Source>,
}

impl Merger {
    /// Sources that have delivered all of their pods at least once.
    pub(crate) fn seen(&self) -> impl Iterator<Item = Source> + '_ {
        self.seen.iter().copied()
    }

    /// Takes a set and says what it changed.
    pub(crate) fn apply(&mut self, set: SourceSet, now: Time) -> Changes {
        let first = !self.known.contains_key(&set.source);
        self.seen.extend(set.whole.then_some(set.source));
        let known = self.known.entry(set.source).or_default();
        let (mut add, mut update, mut delete, mut reconcile) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut changes = Changes::default();
        let mut names = HashSet::new();
        let mut uids = HashSet::new();
        for mut pod in set.pods {
            if !names.insert((pod.metadata.namespace.clone(), pod.metadata.name.clone())) {
                changes.duplicates.push(pod);
                continue;
            }
            let uid = pod.metadata.uid.clone();
            uids.insert(uid.clone());
            stamp(&mut pod, set.source);
            let Some(old) = known.get(&uid) else {
                pod.metadata.annotations.insert(CONFIG_SEEN.to_owned(), now.to_string());
                let pod = Arc::new(pod);
                known.insert(uid, Arc::clone(&pod));
                add.push(pod);
                continue;
            };
            let Some(difference) = difference(old, &pod) else { continue };
            let merged = Arc::new(merged(old, pod));
            known.insert(uid, Arc::clone(&merged));
            match difference {
                Difference::Deletion => delete.push(merged),
                Difference::Content => update.push(merged),
                Difference::Status => reconcile.push(merged),
            }
        }
        let gone: Vec<String> = known.keys().filter(|uid| !uids.contains(*uid)).cloned().collect();
        let remove: Vec<_> = gone.iter().filter_map(|uid| known.remove(uid)).collect();
        let full = |pods: &Vec<Arc<Pod>>| !pods.is_empty();
        changes.ops.extend(Some(remove).filter(full).map(Op::Remove));
        changes.ops.extend(Some(add).filter(|pods| first || full(pods)).map(Op::Add));
        changes.ops.extend(Some(update).filter(full).map(Op::Update));
        changes.ops.extend(Some(delete).filter(full).map(Op::Delete));
        changes.ops.extend(Some(reconcile).filter(full).map(Op::Reconcile));
        changes
    }
}

fn stamp(pod: &mut Pod, source: Source) {
    pod.metadata.annotations.insert(CONFIG_SOURCE.to_owned(), source.name().to_owned());
}

enum Difference {
    Content,
    Deletion,
    Status,
}

fn is_local(key: &str) -> bool {
    matches!(key, CONFIG_SOURCE | CONFIG_MIRROR | CONFIG_SEEN)
}

fn difference(old: &Pod, new: &Pod) -> Option<Difference> {
    let annotations = |pod: &Pod| {
        let mut own = pod.metadata.annotations.clone();
        own.retain(|key, _| !is_local(key));
        own
    };
    let (old_meta, new_meta) = (&old.metadata, &new.metadata);
    let same = old.spec == new.spec
        && old_meta.labels == new_meta.labels
        && old_meta.deletion_timestamp == new_meta.deletion_timestamp
        && old_meta.deletion_grace_period_seconds == new_meta.deletion_grace_period_seconds
        && annotations(old) == annotations(new);
    if !same {
        let deleted = new_meta.deletion_timestamp.is_some();
        return Some(if deleted { Difference::Deletion } else { Difference::Content });
    }
    (old.status != new.status).then_some(Difference::Status)
}

/// The new content on the metadata of the first sighting.
fn merged(old: &Pod, new: Pod) -> Pod {
    let mut out = old.clone();
    out.spec = new.spec;
    out.status = new.status;
    out.metadata.labels = new.metadata.labels;
    out.metadata.deletion_timestamp = new.metadata.deletion_timestamp;
    out.metadata.deletion_grace_period_seconds = new.metadata.deletion_grace_period_seconds;
    out.metadata.generation = new.metadata.generation;
    out.metadata.resource_version = new.metadata.resource_version;
    let mut annotations = new.metadata.annotations;
    for key in [CONFIG_SOURCE, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_HASH] {
        if let Some(value) = old.metadata.annotations.get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    out.metadata.annotations = annotations;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, name: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.uid = uid.into();
        pod.metadata.name = name.into();
        pod
    }

    fn apply(merger: &mut Merger, pods: &[Pod]) -> Vec<String> {
        let set = SourceSet { source: Source::Api, pods: pods.to_vec(), whole: true, written: BTreeMap::new() };
        let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>().join(",");
        merger
            .apply(set, Time::from_unix_seconds(1))
            .ops
            .iter()
            .map(|op| match op {
                Op::Remove(pods) => format!("remove {}", names(pods)),
                Op::Add(pods) => format!("add {}", names(pods)),
                Op::Update(pods) => format!("update {}", names(pods)),
                Op::Delete(pods) => format!("delete {}", names(pods)),
                Op::Reconcile(pods) => format!("reconcile {}", names(pods)),
            })
            .collect()
    }

    #[test]
    fn changes_are_told_apart() {
        let mut merger = Merger::default();
        assert_eq!(apply(&mut merger, &[]), ["add "], "the first set is told of even when it is empty");
        let mut one = pod("1", "a");
        assert_eq!(apply(&mut merger, &[one.clone(), pod("2", "b")]), ["add a,b"]);
        assert_eq!(apply(&mut merger, &[one.clone(), pod("2", "b")]), Vec::<String>::new());
        one.status.phase = "Running".into();
        assert_eq!(apply(&mut merger, &[one.clone(), pod("2", "b")]), ["reconcile a"]);
        one.metadata.labels.insert("k".into(), "v".into());
        assert_eq!(apply(&mut merger, &[one.clone()]), ["remove b", "update a"]);
        one.metadata.deletion_timestamp = Some(Time::from_unix_seconds(5));
        assert_eq!(apply(&mut merger, &[one.clone(), pod("3", "c")]), ["add c", "delete a"]);
    }

    #[test]
    fn a_source_is_seen_once_it_has_told_all() {
        let mut merger = Merger::default();
        for (whole, seen) in [(false, 0), (true, 1), (false, 1)] {
            let set = SourceSet { source: Source::File, pods: vec![pod("1", "a")], whole, written: BTreeMap::new() };
            merger.apply(set, Time::from_unix_seconds(1));
            assert_eq!(merger.seen().count(), seen);
        }
    }

    #[test]
    fn names_are_unique_within_a_set() {
        let mut merger = Merger::default();
        let set = SourceSet {
            source: Source::File,
            pods: vec![pod("1", "a"), pod("2", "a")],
            whole: true,
            written: BTreeMap::new(),
        };
        let changes = merger.apply(set, Time::from_unix_seconds(1));
        assert_eq!(changes.duplicates.len(), 1);
        let Some(Op::Add(added)) = changes.ops.first() else { panic!("{:?}", changes.ops) };
        assert_eq!(added[0].metadata.annotations[CONFIG_SOURCE], "file");
        assert!(super::super::is_static(&added[0]));
    }
}
