//! What those who give resources say about where they could, and how their answers are brought together. Pure.
//!
//! Upstream: the topology manager's hint providers and its merger; KEP-693.

use std::collections::{BTreeMap, BTreeSet};

use super::NodeSet;

/// A place for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// On these nodes of memory; `None` for anywhere.
    pub nodes: Option<NodeSet>,
    /// Whether no narrower place would do on this machine.
    pub preferred: bool,
}

impl Hint {
    /// Anywhere is as good.
    pub const ANYWHERE: Self = Self { nodes: None, preferred: true };
}

/// What a provider says of each resource; one that is not there, or is `None`, may be anywhere. An empty list says that
/// no place will do.
pub type Answer = BTreeMap<String, Option<Vec<Hint>>>;

/// The places of a resource among all nodes: those that `can` hold it now. They are preferred where they are as narrow as
/// any that `could` hold it on the empty machine. Returns also how many nodes that is.
pub(crate) fn places(
    all: NodeSet,
    could: impl Fn(NodeSet) -> bool,
    can: impl Fn(NodeSet) -> bool,
) -> (Vec<Hint>, usize) {
    let least = all.subsets().filter(|nodes| could(*nodes)).map(NodeSet::len).min().unwrap_or(all.len());
    let hint = |nodes: NodeSet| Hint { nodes: Some(nodes), preferred: nodes.len() == least };
    (all.subsets().filter(|nodes| can(*nodes)).map(hint).collect(), least)
}

/// How far nodes are from each other, in the kernel's measure.
pub type Distances = BTreeMap<u32, BTreeMap<u32, u32>>;

/// Which of two equally narrow places is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie<'a> {
    /// The one with the lower numbers.
    Lowest,
    /// The one whose nodes are nearer to each other.
    Closest(&'a Distances),
}

/// The answers of all providers as lists, one for each resource.
pub(super) fn lists(answers: impl IntoIterator<Item = Answer>) -> Vec<Vec<Hint>> {
    let mut all = Vec::new();
    for answer in answers {
        if answer.is_empty() {
            all.push(vec![Hint::ANYWHERE]);
        }
        for hints in answer.into_values() {
            all.push(match hints {
                None => vec![Hint::ANYWHERE],
                Some(hints) if hints.is_empty() => vec![Hint { nodes: None, preferred: false }],
                Some(hints) => hints,
            });
        }
    }
    all
}

/// Of each list what is for one node alone, or anywhere, and preferred.
pub(super) fn single_node(lists: Vec<Vec<Hint>>) -> Vec<Vec<Hint>> {
    let single = |hint: &Hint| hint.preferred && hint.nodes.is_none_or(|nodes| nodes.len() == 1);
    lists.into_iter().map(|hints| hints.into_iter().filter(single).collect()).collect()
}

/// How far the hints of one combination agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Agreement {
    /// All say anywhere.
    Anywhere,
    /// All that do not say anywhere say this.
    On(NodeSet),
    /// They differ, or one is not preferred.
    None,
}

impl Agreement {
    fn with(self, hint: &Hint) -> Self {
        match (self, hint.nodes) {
            _ if !hint.preferred => Self::None,
            (Self::None, _) => Self::None,
            (own, None) => own,
            (Self::Anywhere, Some(nodes)) => Self::On(nodes),
            (Self::On(own), Some(nodes)) if own == nodes => self,
            (Self::On(_), Some(_)) => Self::None,
        }
    }
}

/// The best place for all resources together: each combination of one hint of each list is where all of its hints overlap.
///
/// Combinations are not gone through one by one: they only differ in where they overlap and how far they agree, of which
/// there are no more than sets of nodes, twice.
pub(super) fn merge(all: NodeSet, lists: &[Vec<Hint>], tie: Tie<'_>) -> Hint {
    let mut combined = BTreeSet::from([(all, Agreement::Anywhere)]);
    for hints in lists {
        let with = |(overlap, agreement): &(NodeSet, Agreement), hint: &Hint| {
            let overlap = overlap.and(hint.nodes.unwrap_or(all));
            (!overlap.is_empty()).then(|| (overlap, agreement.with(hint)))
        };
        combined = combined.iter().flat_map(|one| hints.iter().filter_map(move |hint| with(one, hint))).collect();
    }
    let wide = widest_need(lists);
    let best = combined.into_iter().map(|(overlap, agreement)| (overlap, agreement != Agreement::None)).min_by_key(
        |(overlap, preferred)| {
            let width = if *preferred { overlap.len() } else { off(overlap.len(), wide, all.len()) };
            (!preferred, width, spread(*overlap, tie), *overlap)
        },
    );
    best.map_or(Hint { nodes: Some(all), preferred: false }, |(overlap, preferred)| Hint {
        nodes: Some(overlap),
        preferred,
    })
}

/// The nodes that the resource needs which needs the most of them.
fn widest_need(lists: &[Vec<Hint>]) -> usize {
    let least = |hints: &Vec<Hint>| hints.iter().filter_map(|hint| hint.nodes).map(NodeSet::len).min();
    lists.iter().filter_map(least).max().unwrap_or_default()
}

/// How bad a place that is not preferred is: best is one of the width that is needed, then the next narrower ones, then
/// wider ones.
fn off(width: usize, needed: usize, all: usize) -> usize {
    match width.cmp(&needed) {
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Less => needed - width,
        std::cmp::Ordering::Greater => all + width,
    }
}

/// The sum of all distances within a set, which orders sets of one width as their average does.
fn spread(nodes: NodeSet, tie: Tie<'_>) -> u64 {
    let Tie::Closest(distances) = tie else { return 0 };
    let from = |one: u32| distances.get(&one).into_iter().flatten().filter(|(other, _)| nodes.contains(**other));
    nodes.iter().flat_map(from).map(|(_, distance)| u64::from(*distance)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[u32]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    fn yes(nodes: &[u32]) -> Hint {
        Hint { nodes: Some(set(nodes)), preferred: true }
    }

    fn no(nodes: &[u32]) -> Hint {
        Hint { nodes: Some(set(nodes)), preferred: false }
    }

    #[test]
    fn answers_are_merged_as_upstream_does() {
        let any = Hint::ANYWHERE;
        let cases: [(&str, Vec<Vec<Hint>>, Hint); 12] = [
            ("nobody asks for anything", vec![], yes(&[0, 1, 2, 3])),
            ("anywhere", vec![vec![any], vec![any]], yes(&[0, 1, 2, 3])),
            ("one has a wish", vec![vec![yes(&[1]), no(&[0, 1])], vec![any]], yes(&[1])),
            ("both can agree", vec![vec![yes(&[0]), yes(&[1])], vec![yes(&[1]), no(&[0, 1])]], yes(&[1])),
            ("the lower of two", vec![vec![yes(&[2]), yes(&[1])], vec![yes(&[1]), yes(&[2])]], yes(&[1])),
            ("they overlap and do not agree", vec![vec![yes(&[0, 1])], vec![yes(&[1])]], no(&[1])),
            ("they do not overlap", vec![vec![yes(&[0])], vec![yes(&[1])]], no(&[0, 1, 2, 3])),
            ("one cannot", vec![vec![Hint { nodes: None, preferred: false }], vec![yes(&[1])]], no(&[1])),
            ("as wide as is needed", vec![vec![no(&[0]), no(&[0, 1])], vec![no(&[0, 1, 2]), no(&[0, 1])]], no(&[0, 1])),
            (
                "rather narrower than wider",
                vec![vec![no(&[0]), no(&[0, 1, 2])], vec![no(&[0, 3]), no(&[0, 1, 2, 3])]],
                no(&[0]),
            ),
            ("the widest of the narrower", vec![vec![no(&[0, 1, 2])], vec![no(&[0, 1, 3]), no(&[0, 3])]], no(&[0, 1])),
            ("an empty list leaves nothing", vec![vec![], vec![yes(&[1])]], no(&[0, 1, 2, 3])),
        ];
        for (what, lists, expected) in cases {
            assert_eq!(merge(set(&[0, 1, 2, 3]), &lists, Tie::Lowest), expected, "{what}");
        }
    }

    #[test]
    fn the_closest_nodes_are_taken_where_that_is_wanted() {
        let row = |far: [u32; 4]| (0..).zip(far).collect();
        let distances: Distances = [
            (0, row([10, 30, 20, 20])),
            (1, row([30, 10, 20, 20])),
            (2, row([20, 20, 10, 12])),
            (3, row([20, 20, 12, 10])),
        ]
        .into();
        let all = set(&[0, 1, 2, 3]);
        let (hints, least) = places(all, |nodes| nodes.len() >= 2, |nodes| nodes.len() >= 2);
        assert_eq!((hints.len(), least), (11, 2));
        let lists = [hints];
        assert_eq!(merge(all, &lists, Tie::Lowest), yes(&[0, 1]));
        assert_eq!(merge(all, &lists, Tie::Closest(&distances)), yes(&[2, 3]));
    }

    #[test]
    fn answers_become_lists() {
        let answer: Answer = [("a".to_owned(), None), ("b".to_owned(), Some(vec![]))].into();
        let nowhere = Hint { nodes: None, preferred: false };
        assert_eq!(lists([answer, Answer::new()]), [vec![Hint::ANYWHERE], vec![nowhere], vec![Hint::ANYWHERE]]);
        let filtered = single_node(vec![vec![yes(&[1]), yes(&[0, 1]), no(&[0])], vec![Hint::ANYWHERE, nowhere]]);
        assert_eq!(filtered, [vec![yes(&[1])], vec![Hint::ANYWHERE]]);
    }

    /// The merge as it is written down, one combination after the other.
    fn one_by_one(all: NodeSet, lists: &[Vec<Hint>]) -> Vec<(NodeSet, bool)> {
        let mut found = vec![(all, true, Vec::new())];
        for hints in lists {
            found = found
                .into_iter()
                .flat_map(|(overlap, preferred, sets): (NodeSet, bool, Vec<NodeSet>)| {
                    hints.iter().map(move |hint| {
                        let sets = sets.iter().copied().chain(hint.nodes).collect();
                        (overlap.and(hint.nodes.unwrap_or(all)), preferred && hint.preferred, sets)
                    })
                })
                .collect();
        }
        let mut out: Vec<(NodeSet, bool)> = found
            .into_iter()
            .filter(|(overlap, ..)| !overlap.is_empty())
            .map(|(overlap, preferred, sets)| (overlap, preferred && sets.windows(2).all(|pair| pair[0] == pair[1])))
            .collect();
        out.sort();
        out.dedup();
        out
    }

    #[test]
    fn nothing_is_lost_by_not_going_through_all_combinations() {
        let all = set(&[0, 1, 2]);
        let every: Vec<Hint> = all
            .subsets()
            .flat_map(|nodes| [yes(&nodes.iter().collect::<Vec<_>>()), no(&nodes.iter().collect::<Vec<_>>())])
            .collect();
        for (first, second) in [(0, 5), (3, 9), (2, 13), (7, 7)] {
            let lists = [every[first..].to_vec(), every[..=second].to_vec(), vec![Hint::ANYWHERE]];
            let merged = merge(all, &lists, Tie::Lowest);
            let all_found = one_by_one(all, &lists);
            let preferred = all_found.iter().any(|(_, preferred)| *preferred);
            assert_eq!(merged.preferred, preferred);
            assert!(all_found.contains(&(merged.nodes.unwrap(), preferred)));
        }
    }
}
