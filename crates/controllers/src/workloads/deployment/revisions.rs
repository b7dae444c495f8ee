//! Annotations: which revision a replica set is, and what it was told at its last scaling.

use std::collections::BTreeMap;

use api_types::apps_v1::constants::DEPRECATED_ROLLBACK_TO;
use api_types::apps_v1::{Deployment, ReplicaSet};

use super::arithmetic::{max_surge, wanted};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Most characters of the history.
const HISTORY_LIMIT: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// Whether an annotation belongs to one object and is never copied between deployment and replica set.
pub(super) fn stays(key: &str) -> bool {
    [REVISION, HISTORY, DESIRED, MAX, DEPRECATED_ROLLBACK_TO, LAST_APPLIED].contains(&key)
}

/// The revision of a replica set: 0 without one, an error where it cannot be read.
pub(super) fn revision(annotations: &Annotations) -> Result<i64, std::num::ParseIntError> {
    annotations.get(REVISION).filter(|text| !text.is_empty()).map_or(Ok(0), |text| text.parse())
}

/// The highest revision of some replica sets; those that cannot be read do not count.
pub(super) fn highest<'a>(sets: impl Iterator<Item = &'a ReplicaSet>) -> i64 {
    sets.filter_map(|set| revision(&set.metadata.annotations).ok()).max().unwrap_or(0)
}

/// The second highest revision, 0 where there is none.
pub(super) fn previous(sets: &[ReplicaSet]) -> i64 {
    let mut all: Vec<_> = sets.iter().filter_map(|set| revision(&set.metadata.annotations).ok()).collect();
    all.sort_unstable();
    all.iter().rev().nth(1).copied().unwrap_or(0)
}

/// Copies the deployment's annotations to its new replica set and raises the revision to `next`; says whether that
/// changed anything. A revision that cannot be read stops it.
pub(super) fn sync(deployment: &Deployment, annotations: &mut Annotations, next: i64) -> bool {
    let before = annotations.clone();
    let copied = deployment.metadata.annotations.iter().filter(|(key, _)| !stays(key));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let Ok(current) = revision(annotations) else {
        *annotations = before;
        return false;
    };
    if current < next {
        let former = annotations.insert(REVISION.to_owned(), next.to_string()).unwrap_or_default();
        if !former.is_empty() {
            remember(annotations, &former);
        }
    }
    *annotations != before
}

/// Adds a former revision to the history, dropping the oldest ones where it gets too long.
fn remember(annotations: &mut Annotations, former: &str) {
    let history = annotations.get(HISTORY).map_or("", String::as_str);
    if history.is_empty() {
        annotations.insert(HISTORY.to_owned(), former.to_owned());
        return;
    }
    let mut kept = history;
    while kept.len() + former.len() + 1 > HISTORY_LIMIT {
        let Some((_, rest)) = kept.split_once(',') else { return };
        kept = rest;
    }
    let longer = format!("{kept},{former}");
    annotations.insert(HISTORY.to_owned(), longer);
}

/// What the replica set is told about the deployment's size; says whether that is news.
pub(super) fn note_size(deployment: &Deployment, annotations: &mut Annotations) -> bool {
    let before = annotations.clone();
    let most = wanted(deployment).saturating_add(max_surge(deployment));
    annotations.insert(DESIRED.to_owned(), wanted(deployment).to_string());
    annotations.insert(MAX.to_owned(), most.to_string());
    *annotations != before
}

fn number(set: &ReplicaSet, key: &str) -> Option<i32> {
    let number = set.metadata.annotations.get(key)?.parse::<u32>().ok()?;
    i32::try_from(number).ok()
}

/// The deployment's size when the replica set was last scaled.
pub(super) fn desired(set: &ReplicaSet) -> Option<i32> {
    number(set, DESIRED)
}

/// The deployment's size and surge when the replica set was last scaled.
pub(super) fn most(set: &ReplicaSet) -> Option<i32> {
    number(set, MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn revisions_only_rise() {
        let mut deployment = Deployment::default();
        deployment.metadata.annotations = annotated(&[("note", "x"), (LAST_APPLIED, "{}"), (REVISION, "9")]);
        let mut annotations = annotated(&[(REVISION, "2")]);
        assert!(sync(&deployment, &mut annotations, 5));
        assert_eq!(annotations, annotated(&[("note", "x"), (REVISION, "5"), (HISTORY, "2")]));
        assert!(!sync(&deployment, &mut annotations, 4));
        assert!(sync(&deployment, &mut annotations, 7));
        assert_eq!(annotations[HISTORY], "2,5");
        let mut unreadable = annotated(&[(REVISION, "x")]);
        assert!(!sync(&deployment, &mut unreadable, 7));
        assert_eq!(unreadable, annotated(&[(REVISION, "x")]));
    }

    #[test]
    fn the_history_forgets_the_oldest() {
        let mut annotations = annotated(&[(HISTORY, &vec!["1234"; 400].join(","))]);
        remember(&mut annotations, "77");
        assert!(annotations[HISTORY].len() <= HISTORY_LIMIT && annotations[HISTORY].ends_with(",1234,77"));
        let long = "9".repeat(HISTORY_LIMIT);
        let mut full = annotated(&[(HISTORY, &long)]);
        remember(&mut full, "77");
        assert_eq!(full[HISTORY], long, "left unchanged where one cannot fit");
    }
}
