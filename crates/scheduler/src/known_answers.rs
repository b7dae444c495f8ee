//! Answers that local plugins have given before. Most pods come in numbers and differ by name only; a node that did not
//! change since it was looked at for one of them answers the same to the next.
//!
//! An answer belongs to a shape of pods, a profile, the number of nodes, and a generation of the node, which is unique
//! among all nodes and their changes. Rejections are not kept: they are rarer, and carry reasons.

use crate::framework::Status;
use crate::node_info::NodeView;
use crate::pod_shape::PodShape;

/// Shapes that are remembered: pods of a few workloads come mixed. Each takes some 50 bytes for each node.
const MAX_SHAPES: usize = 8;

/// The answers for each shape, the latest first.
#[derive(Debug, Default)]
pub(crate) struct KnownAnswers(Vec<ShapeAnswers>);

impl KnownAnswers {
    /// What is known for pods of a shape; to be given back with [`KnownAnswers::put`].
    pub(crate) fn take(&mut self, profile: &str, shape: PodShape, nodes: usize) -> ShapeAnswers {
        let place = self.0.iter().position(|known| known.shape == shape && known.profile == profile);
        let known = place.map(|place| self.0.remove(place)).filter(|known| known.fits.len() == nodes);
        known.unwrap_or_else(|| ShapeAnswers {
            profile: profile.to_owned(),
            shape,
            fits: vec![UNKNOWN; nodes],
            scores: Vec::new(),
        })
    }

    /// Remembers the answers, in place of those that were not asked for longest.
    pub(crate) fn put(&mut self, known: ShapeAnswers) {
        self.0.truncate(MAX_SHAPES - 1);
        self.0.insert(0, known);
    }
}

/// The generation of nodes that no cache keeps, as in tests: nothing is remembered of them.
const UNKNOWN: u64 = 0;

/// The answers for pods of one shape, by the node's place.
#[derive(Debug, Default)]
pub(crate) struct ShapeAnswers {
    profile: String,
    shape: PodShape,
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
    pub(crate) fn get(
        &mut self,
        node: NodeView<'_>,
        compute: impl FnOnce() -> Result<i64, Status>,
    ) -> Result<i64, Status> {
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
        known.scores_of(3).unwrap().get(view, || Ok(fresh)).unwrap()
    }

    #[test]
    fn answers_hold_until_the_node_changes() {
        let mut info = NodeInfo { generation: 7, ..NodeInfo::of(node("a").build()) };
        let mut known = KnownAnswers::default().take("p", shape("a"), 1);
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

    #[test]
    fn the_latest_shapes_are_kept_for_each_profile_and_number_of_nodes() {
        let mut all = KnownAnswers::default();
        let info = NodeInfo { generation: 7, ..NodeInfo::of(node("a").build()) };
        let view = NodeView::new(&info, 0).unwrap();
        let mut look = |profile: &str, image: &str, nodes| {
            let mut known = all.take(profile, shape(image), nodes);
            let fits = known.fits(view);
            known.note_fit(view);
            all.put(known);
            fits
        };
        assert!(!look("p", "a", 1) && look("p", "a", 1));
        assert!(!look("q", "a", 1) && !look("p", "b", 1) && look("p", "a", 1));
        assert!(!look("p", "a", 2), "another number of nodes");
        for number in 0..MAX_SHAPES {
            assert!(!look("p", &number.to_string(), 1));
        }
        assert!(!look("p", "b", 1), "forgotten for later ones");
    }
}
