//! The one order of names that several servers list in orders of their own.

use std::collections::{BTreeMap, BTreeSet};

/// All names once. Where the lists say the same it is theirs; where one has all of them, its; else every list's order is
/// kept, and names that no list orders come by the alphabet. Lists that contradict each other come to that alone.
pub(super) fn merged(lists: &[Vec<String>]) -> Vec<String> {
    let all: BTreeSet<&String> = lists.iter().flatten().collect();
    if let Some(whole) = lists.iter().find(|list| list.len() == all.len()) {
        return whole.clone();
    }
    topological(lists, &all).unwrap_or_else(|| all.into_iter().cloned().collect())
}

/// Nothing where the lists contradict each other.
fn topological(lists: &[Vec<String>], all: &BTreeSet<&String>) -> Option<Vec<String>> {
    let mut before: BTreeMap<&String, BTreeSet<&String>> = all.iter().map(|name| (*name, BTreeSet::new())).collect();
    for (earlier, later) in lists.iter().flat_map(|list| list.iter().zip(list.iter().skip(1))) {
        before.entry(later).or_default().insert(earlier);
    }
    let mut order = Vec::with_capacity(all.len());
    while !before.is_empty() {
        let next = before.iter().find(|(_, earlier)| earlier.is_empty()).map(|(name, _)| *name)?;
        before.remove(next);
        for earlier in before.values_mut() {
            earlier.remove(next);
        }
        order.push(next.clone());
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_kept_where_they_agree() {
        for (lists, expected) in [
            (&["b a", "b a"] as &[&str], "b a"),
            (&["c a", "c b a"], "c b a"),
            (&["b a", "c a"], "b c a"),
            (&["z a", "z m"], "z a m"),
            (&["a b x", "b a y"], "a b x y"),
            (&["", "b a"], "b a"),
            (&[], ""),
        ] {
            let words = |text: &&str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let lists: Vec<Vec<String>> = lists.iter().map(words).collect();
            assert_eq!(merged(&lists).join(" "), expected, "{lists:?}");
        }
    }
}
