//! Answers that local plugins have given before. Most pods come in numbers and differ by name only; a node that did not
//! change since it was looked at for one of them answers the same to the next.
//!
//! An answer belongs to a shape of pods, a profile, the number of nodes, and a generation of the node, which is unique
//! among all nodes and their changes. Rejections are not kept: they are rarer, and carry reasons.

//!
//! A shape that comes for the first time leaves no more than a number: many never come again. Which shapes make room for
//! another is left to chance, so that a few more shapes in turn than there is room for cost a few more questions, not all.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base::Rng;

use crate::node_info::NodeView;
use crate::pod_shape::PodShape;

/// What all answers may take in memory.
const ROOM_BYTES: usize = 32 << 20;
/// What the answers for a shape take for each node: a generation, and a score with its generation for each of the five
/// plugins by default whose scores are local.
const BYTES_PER_NODE: usize = 8 + 5 * 16;
/// Shapes that are remembered, however large or small the cluster is.
const FEWEST_SHAPES: usize = 8;
const MOST_SHAPES: usize = 1024;
/// Shapes that came once and are known again by their number.
const SEEN_ONCE: usize = 4096;

/// The answers for each shape.
#[derive(Debug, Default)]
pub(crate) struct KnownAnswers {
    known: Vec<ShapeAnswers>,
    seen: SeenOnce,
}

/// How many shapes are remembered in a cluster of this size.
fn most_shapes(nodes: usize) -> usize {
    (ROOM_BYTES / BYTES_PER_NODE / nodes.max(1)).clamp(FEWEST_SHAPES, MOST_SHAPES)
}

impl KnownAnswers {
    /// What is known for pods of a shape; to be given back with [`KnownAnswers::put`].
    pub(crate) fn take(&mut self, profile: &str, shape: PodShape, nodes: usize) -> ShapeAnswers {
        let number = number_of(profile, &shape);
        let is_it = |known: &ShapeAnswers| known.number == number && known.shape == shape && known.profile == profile;
        let place = self.known.iter().position(is_it);
        let known = place.map(|place| self.known.swap_remove(place));
        let came_before = known.is_some() || self.seen.note(number);
        known.filter(|known| known.fits.len() == nodes).unwrap_or_else(|| ShapeAnswers {
            profile: profile.to_owned(),
            shape,
            number,
            fits: if came_before { vec![UNKNOWN; nodes] } else { Vec::new() },
            scores: Vec::new(),
        })
    }

    /// Remembers the answers, if there is anything to remember.
    pub(crate) fn put(&mut self, known: ShapeAnswers, rng: &Rng) {
        if known.fits.is_empty() {
            return;
        }
        while self.known.len() >= most_shapes(known.fits.len()) {
            let place = usize::try_from(rng.below(self.known.len() as u64)).unwrap_or(0);
            self.known.swap_remove(place);
        }
        self.known.push(known);
    }
}

fn number_of(profile: &str, shape: &PodShape) -> u64 {
    let mut hasher = DefaultHasher::new();
    (profile, shape).hash(&mut hasher);
    hasher.finish()
}

/// The numbers of the latest shapes.
#[derive(Debug, Default)]
struct SeenOnce {
    numbers: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl SeenOnce {
    /// Takes note of a shape; says whether it had come before.
    fn note(&mut self, number: u64) -> bool {
        if !self.numbers.insert(number) {
            return true;
        }
        self.order.push_back(number);
        if self.order.len() > SEEN_ONCE
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        false
    }
}

/// The generation of nodes that no cache keeps, as in tests: nothing is remembered of them.
const UNKNOWN: u64 = 0;

/// The answers for pods of one shape, by the node's place. Without places, nothing is remembered.
#[derive(Debug, Default)]
pub(crate) struct ShapeAnswers {
    profile: String,
    shape: PodShape,
    number: u64,
    /// The generation at which all local filters took the pod.
    fits: Vec<u64>,
    scores: Vec<Scores>,
}

/// The scores of one plugin with the generation each belongs to, not normalized yet.
#[derive(Debug)]
pub(crate) struct Scores {
    plugin: usize,
    by_node: Vec<(u64, i64)>,
}

impl ShapeAnswers {
    /// Whether the local filters are known to take the pod.
    pub(crate) fn fits(&self, node: NodeView<'_>) -> bool {
        node.generation != UNKNOWN && self.fits.get(node.index) == Some(&node.generation)
    }

    /// The local filters took the pod.
    pub(crate) fn note_fit(&mut self, node: NodeView<'_>) {
        if let Some(slot) = self.fits.get_mut(node.index) {
            *slot = node.generation;
        }
    }

    /// The scores of a local plugin, by its place in the profile.
    pub(crate) fn scores_of(&mut self, plugin: usize) -> Option<&mut Scores> {
        let place = self.scores.iter().position(|scores| scores.plugin == plugin).unwrap_or_else(|| {
            self.scores.push(Scores { plugin, by_node: vec![(UNKNOWN, 0); self.fits.len()] });
            self.scores.len() - 1
        });
        self.scores.get_mut(place)
    }
}

impl Scores {
    /// A node's score, computed where it is not known.
    pub(crate) fn get<E>(&mut self, node: NodeView<'_>, compute: impl FnOnce() -> Result<i64, E>) -> Result<i64, E> {
        let Some((generation, score)) = self.by_node.get_mut(node.index) else { return compute() };
        if *generation != node.generation || node.generation == UNKNOWN {
            *score = compute()?;
            *generation = node.generation;
        }
        Ok(*score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_info::NodeInfo;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{node, pod};

    fn shape(image: &str) -> PodShape {
        let mut pod = pod("p");
        pod.0.spec.containers[0].image = image.into();
        PodShape::of(&pod.info(&ClassTable::default()))
    }

    fn score(known: &mut ShapeAnswers, view: NodeView<'_>, fresh: i64) -> i64 {
        known.scores_of(3).unwrap().get(view, || Ok::<_, ()>(fresh)).unwrap()
    }

    /// A cache that has seen this shape before.
    fn seen(profile: &str, image: &str, nodes: usize) -> KnownAnswers {
        let mut all = KnownAnswers::default();
        assert!(all.take(profile, shape(image), nodes).fits.is_empty(), "nothing is kept of what comes once");
        all
    }

    #[test]
    fn answers_hold_until_the_node_changes() {
        let mut info = NodeInfo { generation: 7, ..NodeInfo::of(node("a").build()) };
        let mut known = seen("p", "a", 1).take("p", shape("a"), 1);
        let view = NodeView::new(&info, 0).unwrap();
        assert!(!known.fits(view));
        known.note_fit(view);
        assert!(known.fits(view));
        assert_eq!((score(&mut known, view, 1), score(&mut known, view, 2)), (1, 1));
        info.generation = 8;
        let view = NodeView::new(&info, 0).unwrap();
        assert!(!known.fits(view));
        assert_eq!(score(&mut known, view, 2), 2);
        info.generation = UNKNOWN;
        let view = NodeView::new(&info, 0).unwrap();
        known.note_fit(view);
        assert!(!known.fits(view));
        assert_eq!((score(&mut known, view, 3), score(&mut known, view, 4)), (3, 4));
    }

    /// Looks at a node for a pod; says whether the answer was known.
    fn look(all: &mut KnownAnswers, rng: &Rng, profile: &str, image: &str, nodes: usize) -> bool {
        let info = NodeInfo { generation: 7, ..NodeInfo::of(node("a").build()) };
        let view = NodeView::new(&info, 0).unwrap();
        let mut known = all.take(profile, shape(image), nodes);
        let fits = known.fits(view);
        known.note_fit(view);
        all.put(known, rng);
        fits
    }

    #[test]
    fn shapes_are_kept_for_each_profile_and_number_of_nodes() {
        let (mut all, rng) = (KnownAnswers::default(), Rng::seeded(1));
        let mut look = |profile: &str, image: &str, nodes| look(&mut all, &rng, profile, image, nodes);
        let first_three = |looks: [bool; 3]| assert_eq!(looks, [false, false, true]);
        first_three([look("p", "a", 1), look("p", "a", 1), look("p", "a", 1)]);
        first_three([look("q", "a", 1), look("q", "a", 1), look("q", "a", 1)]);
        first_three([look("p", "b", 1), look("p", "b", 1), look("p", "b", 1)]);
        assert!(look("p", "a", 1));
        assert!(!look("p", "a", 2) && look("p", "a", 2), "another number of nodes");
    }

    #[test]
    fn many_shapes_in_turn_are_known() {
        assert_eq!((most_shapes(1), most_shapes(5000), most_shapes(1_000_000)), (1024, 76, 8));
        for (shapes, known) in [(9, 9), (64, 64), (76, 76), (90, 20)] {
            let (mut all, rng) = (KnownAnswers::default(), Rng::seeded(1));
            let mut round =
                || (0..shapes).filter(|number| look(&mut all, &rng, "p", &number.to_string(), 5000)).count();
            round();
            round();
            let hits = round();
            assert!(hits >= known, "{hits} of {shapes}");
        }
    }

    #[test]
    fn what_comes_once_takes_no_room() {
        let (mut all, rng) = (KnownAnswers::default(), Rng::seeded(1));
        for number in 0..2 * SEEN_ONCE {
            look(&mut all, &rng, "p", &number.to_string(), 5000);
        }
        assert_eq!((all.known.len(), all.seen.order.len(), all.seen.numbers.len()), (0, SEEN_ONCE, SEEN_ONCE));
    }
}
