//! Two lists of tolerations made one, without those that another one covers.

use std::collections::{BTreeMap, BTreeSet};

use api_types::core_v1::Toleration;

/// The first list and then the second, each toleration once and none that another one covers.
pub(super) fn merged(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut later = Covering::default();
    let mut candidates: Vec<&Toleration> = Vec::new();
    for toleration in all.into_iter().rev() {
        if !later.covers_another(toleration) {
            candidates.push(toleration);
        }
        later.add(toleration);
    }
    let (mut former, mut seen, mut kept) = (Covering::default(), BTreeSet::new(), Vec::new());
    for toleration in candidates.into_iter().rev() {
        if !former.covers_another(toleration) && seen.insert(parts(toleration)) {
            former.add(toleration);
            kept.push(toleration.clone());
        }
    }
    kept
}

/// All that tells one toleration from another.
fn parts(own: &Toleration) -> (&str, &str, &str, &str, Option<i64>) {
    (&own.key, &own.operator, &own.value, &own.effect, own.toleration_seconds)
}

/// Tolerations by what they can cover. A pod may have as many as fit in a request, so that not each can be held against
/// all the others.
#[derive(Default)]
struct Covering<'t> {
    slots: BTreeMap<Slot<'t>, Widest<'t>>,
}

/// Key, effect, and value where that counts.
type Slot<'t> = (&'t str, &'t str, Option<&'t str>);

/// Of the tolerations of a slot the one that lasts longest, and the longest of those that are not just that one.
struct Widest<'t> {
    first: &'t Toleration,
    second: Option<&'t Toleration>,
}

impl<'t> Covering<'t> {
    fn add(&mut self, own: &'t Toleration) {
        let value = match own.operator.as_str() {
            "" | "Equal" => Some(own.value.as_str()),
            "Exists" => None,
            // Those that compare cover nothing but themselves.
            _ => return,
        };
        let slot = (own.key.as_str(), own.effect.as_str(), value);
        let widest = self.slots.entry(slot).or_insert(Widest { first: own, second: None });
        if widest.first == own {
            return;
        }
        let mut next = own;
        if lasts(own) > lasts(widest.first) {
            next = std::mem::replace(&mut widest.first, own);
        }
        if widest.second.is_none_or(|second| lasts(next) > lasts(second)) {
            widest.second = Some(next);
        }
    }

    /// Whether one that is not the same covers it.
    fn covers_another(&self, narrow: &Toleration) -> bool {
        let keys = [narrow.key.as_str(), ""];
        let effects = [narrow.effect.as_str(), ""];
        let slots = keys.into_iter().flat_map(|key| effects.map(|effect| (key, effect)));
        let mut slots =
            slots.flat_map(|(key, effect)| [None, Some(narrow.value.as_str())].map(|value| (key, effect, value)));
        slots.any(|slot| {
            let found = self.slots.get(&slot);
            let mut both = found.into_iter().flat_map(|widest| [Some(widest.first), widest.second]).flatten();
            both.any(|wide| wide != narrow && covers(wide, narrow))
        })
    }
}

/// How long a toleration lasts: for ever is the longest.
fn lasts(own: &Toleration) -> (bool, Option<i64>) {
    match own.toleration_seconds {
        Some(seconds) if own.effect == "NoExecute" => (false, Some(seconds)),
        _ => (true, None),
    }
}

/// Whether whatever the second tolerates is tolerated by the first, too.
pub(super) fn covers(wide: &Toleration, narrow: &Toleration) -> bool {
    if wide == narrow {
        return true;
    }
    let any_key = wide.key.is_empty() && wide.operator == "Exists";
    let lasts = |seconds: i64| narrow.toleration_seconds.is_some_and(|own| own <= seconds);
    let in_time = wide.effect != "NoExecute" || wide.toleration_seconds.is_none_or(lasts);
    let value = match wide.operator.as_str() {
        "" | "Equal" => narrow.operator == "Equal" && wide.value == narrow.value,
        operator => operator == "Exists",
    };
    (any_key || wide.key == narrow.key) && (wide.effect.is_empty() || wide.effect == narrow.effect) && in_time && value
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    fn list(text: &str) -> Vec<Toleration> {
        let mut spec = api_types::core_v1::PodSpec::default();
        let document = format!(r#"{{"tolerations": {text}}}"#);
        api_machinery::json::decode(document.as_bytes(), &mut spec).unwrap();
        spec.tolerations
    }

    #[test]
    fn what_is_covered_goes() {
        let (exists, equal) = (r#"{"key": "a", "operator": "Exists"}"#, r#"{"key": "a", "operator": "Equal"}"#);
        let short = r#"{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}"#;
        let long = r#"{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}"#;
        let (other, all) = (r#"{"key": "b", "operator": "Exists"}"#, r#"{"operator": "Exists"}"#);
        for (first, second, expected) in [
            (vec![exists], vec![exists], vec![exists]),
            (vec![exists], vec![equal, other], vec![exists, other]),
            (vec![equal, other], vec![exists], vec![other, exists]),
            (vec![short], vec![long], vec![long]),
            (vec![long], vec![short], vec![long]),
            (vec![equal, other], vec![all], vec![all]),
            (vec![], vec![other, exists], vec![other, exists]),
        ] {
            let read = |items: &[&str]| list(&format!("[{}]", items.join(",")));
            assert_eq!(merged(&read(&first), &read(&second)), read(&expected), "{first:?} {second:?}");
        }
    }

    /// Each held against all others.
    fn merged_by_pairs(all: &[Toleration]) -> Vec<Toleration> {
        let mut kept: Vec<Toleration> = Vec::new();
        for (index, own) in all.iter().enumerate() {
            let by_former = kept.iter().any(|former| covers(former, own));
            if !by_former && !all[index + 1..].iter().any(|later| later != own && covers(later, own)) {
                kept.push(own.clone());
            }
        }
        kept
    }

    #[test]
    fn whatever_is_merged_is_as_if_each_was_held_against_all() {
        let rng = Rng::seeded(7);
        let pick = |of: &[&str]| of[usize::try_from(rng.below(of.len() as u64)).unwrap()].to_owned();
        let random = || Toleration {
            key: pick(&["", "a", "b"]),
            operator: pick(&["", "Equal", "Exists", "Gt"]),
            value: pick(&["", "v"]),
            effect: pick(&["", "NoExecute", "NoSchedule"]),
            toleration_seconds: [None, Some(1), Some(2)][usize::try_from(rng.below(3)).unwrap()],
        };
        for _ in 0..5_000 {
            let all: Vec<Toleration> = (0..rng.below(8)).map(|_| random()).collect();
            let (first, second) = all.split_at(all.len() / 2);
            assert_eq!(merged(first, second), merged_by_pairs(&all), "{all:?}");
        }
    }
}
