//! Where volumes are to be reachable from, and where they are. Pure.

use std::collections::BTreeSet;

use api_types::core_v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, TopologySelectorTerm, VolumeNodeAffinity,
};
use api_types::storage_v1::CSINode;
use node_api::csi::v1::{Topology, TopologyRequirement};
use sha2::{Digest as _, Sha256};

use crate::driver::{Segment, to_topology};

/// Segments that a class may allow, at most: what its terms multiply to is bounded.
const MOST_ALLOWED: usize = 10_000;

/// Why it cannot be said where a volume should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TopologyError {
    #[error("no topology key found on CSINode {0}")]
    NoKeys(String),
    #[error("topology labels from selected node {node} do not match topology keys from CSINode {keys:?}")]
    NoLabels { node: String, keys: Vec<String> },
    #[error("selected node '{node}' is not in allowed topologies: {allowed} segments")]
    NotAllowed { node: String, allowed: usize },
    #[error("the allowed topologies of the class are more than {MOST_ALLOWED}")]
    TooMany,
}

/// The keys that a driver tells places on a node apart by; `None` where it is not there.
fn keys<'a>(driver: &str, node: &'a CSINode) -> Option<&'a [String]> {
    let own = node.spec.drivers.iter().find(|own| own.name == driver)?;
    Some(own.topology_keys.as_slice())
}

fn segment_of(node: &Node, keys: &[String]) -> Option<Segment> {
    let label = |key: &String| Some((key.clone(), node.metadata.labels.get(key)?.clone()));
    keys.iter().map(label).collect()
}

/// The segment of a node that was chosen.
///
/// # Errors
/// When the driver has not told of it, or its labels are not there yet.
pub(crate) fn segment_of_node(driver: &str, node: &Node, csi: Option<&CSINode>) -> Result<Segment, TopologyError> {
    let name = &node.metadata.name;
    let keys = csi.and_then(|csi| keys(driver, csi)).filter(|keys| !keys.is_empty());
    let keys = keys.ok_or_else(|| TopologyError::NoKeys(name.clone()))?;
    segment_of(node, keys).ok_or_else(|| TopologyError::NoLabels { node: name.clone(), keys: keys.to_vec() })
}

/// All segments that the driver is in.
pub(crate) fn segments<'a>(
    driver: &str,
    nodes: impl Iterator<Item = (&'a Node, Option<&'a CSINode>)>,
) -> BTreeSet<Segment> {
    nodes.filter_map(|(node, csi)| segment_of_node(driver, node, csi).ok()).collect()
}

/// The segments that a class allows; none where it says nothing.
fn allowed(terms: &[TopologySelectorTerm]) -> Result<BTreeSet<Segment>, TopologyError> {
    let mut all = BTreeSet::new();
    for term in terms {
        let mut of_term = vec![Segment::new()];
        for requirement in &term.match_label_expressions {
            if of_term.len().saturating_mul(requirement.values.len()) > MOST_ALLOWED {
                return Err(TopologyError::TooMany);
            }
            let with = |segment: &Segment, value: &String| {
                let mut segment = segment.clone();
                segment.insert(requirement.key.clone(), value.clone());
                segment
            };
            of_term =
                of_term.iter().flat_map(|one| requirement.values.iter().map(move |value| with(one, value))).collect();
        }
        all.extend(of_term.into_iter().filter(|segment| !segment.is_empty()));
        if all.len() > MOST_ALLOWED {
            return Err(TopologyError::TooMany);
        }
    }
    Ok(all)
}

fn holds(wide: &Segment, narrow: &Segment) -> bool {
    wide.iter().all(|(key, value)| narrow.get(key) == Some(value))
}

/// What is wanted of a volume.
pub(crate) struct Wanted<'a> {
    /// Of the class.
    pub(crate) allowed: &'a [TopologySelectorTerm],
    /// The name of the chosen node and its segment.
    pub(crate) chosen: Option<(&'a str, Segment)>,
    /// All that the driver is in.
    pub(crate) everywhere: BTreeSet<Segment>,
    /// The segment of the chosen node, and no other.
    pub(crate) is_strict: bool,
    /// Whether the driver is told of the cluster where nothing was chosen.
    pub(crate) tells_cluster: bool,
    /// Spreads volumes of which no place was chosen.
    pub(crate) claim: &'a str,
}

impl Wanted<'_> {
    /// What the driver is asked for; nothing where any place is as good.
    ///
    /// # Errors
    /// When the chosen node is not in what the class allows.
    pub(crate) fn requirement(self) -> Result<Option<TopologyRequirement>, TopologyError> {
        let allowed = allowed(self.allowed)?;
        let Some((node, chosen)) = self.chosen else {
            let requisite = match (allowed.is_empty(), self.tells_cluster) {
                (false, _) => allowed,
                (true, true) => self.everywhere,
                (true, false) => return Ok(None),
            };
            let first = start_of(self.claim, requisite.len());
            return Ok(told(requisite, first));
        };
        if !allowed.is_empty() && !allowed.iter().any(|wide| holds(wide, &chosen)) {
            return Err(TopologyError::NotAllowed { node: node.to_owned(), allowed: allowed.len() });
        }
        let mut requisite = match (self.is_strict, allowed.is_empty()) {
            (true, _) => BTreeSet::new(),
            (false, false) => allowed,
            (false, true) => self.everywhere,
        };
        let first = match requisite.iter().position(|wide| holds(wide, &chosen)) {
            Some(first) => first,
            None => {
                requisite.insert(chosen.clone());
                requisite.iter().position(|one| *one == chosen).unwrap_or_default()
            }
        };
        Ok(told(requisite, first))
    }
}

/// Requisite in order, preferred in the same order from the first on.
fn told(requisite: BTreeSet<Segment>, first: usize) -> Option<TopologyRequirement> {
    let requisite: Vec<Topology> = requisite.iter().map(to_topology).collect();
    let mut preferred = requisite.clone();
    if preferred.is_empty() {
        return None;
    }
    preferred.rotate_left(first % requisite.len());
    Some(TopologyRequirement { requisite, preferred })
}

/// Where to begin for a claim. Claims of a StatefulSet that follow each other begin one after the other.
fn start_of(claim: &str, count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let (base, number) = match claim.rsplit_once('-') {
        Some((base, number)) => number.parse::<u32>().map_or((claim, 0), |number| (base, number)),
        None => (claim, 0),
    };
    let digest = Sha256::digest(base.as_bytes());
    let hash = digest.iter().take(4).fold(0u32, |hash, byte| hash << 8 | u32::from(*byte));
    usize::try_from(hash.wrapping_add(number)).unwrap_or_default() % count
}

/// Which nodes can use a volume that its driver says is in these places; all where it says nothing.
pub(crate) fn affinity(places: &[Topology]) -> Option<VolumeNodeAffinity> {
    let term = |place: &Topology| {
        let mut segment: Vec<_> = place.segments.iter().collect();
        segment.sort();
        let expressions = segment.into_iter().map(|(key, value)| NodeSelectorRequirement {
            key: key.clone(),
            operator: "In".to_owned(),
            values: vec![value.clone()],
        });
        NodeSelectorTerm { match_expressions: expressions.collect(), match_fields: Vec::new() }
    };
    let terms: Vec<_> = places.iter().filter(|place| !place.segments.is_empty()).map(term).collect();
    (!terms.is_empty()).then_some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: terms }) })
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::TopologySelectorLabelRequirement;

    use super::*;

    fn zone(name: &str) -> Segment {
        Segment::from([("zone".to_owned(), name.to_owned())])
    }

    fn allow(zones: &[&str]) -> Vec<TopologySelectorTerm> {
        let values = zones.iter().map(ToString::to_string).collect();
        let expression = TopologySelectorLabelRequirement { key: "zone".into(), values };
        vec![TopologySelectorTerm { match_label_expressions: vec![expression] }]
    }

    fn names(list: &[Topology]) -> Vec<&str> {
        list.iter().map(|one| one.segments["zone"].as_str()).collect()
    }

    #[test]
    fn where_a_volume_may_be_and_should_be() {
        let everywhere = || BTreeSet::from([zone("a"), zone("b"), zone("c")]);
        for (name, allowed, chosen, strict, requisite, first) in [
            ("chosen", vec![], "b", false, vec!["a", "b", "c"], "b"),
            ("strict", vec![], "b", true, vec!["b"], "b"),
            ("allowed", allow(&["b", "c"]), "c", false, vec!["b", "c"], "c"),
            ("allowed and strict", allow(&["b", "c"]), "c", true, vec!["c"], "c"),
        ] {
            let wanted = Wanted {
                allowed: &allowed,
                chosen: Some(("node", zone(chosen))),
                everywhere: everywhere(),
                is_strict: strict,
                tells_cluster: true,
                claim: "c",
            };
            let told = wanted.requirement().unwrap().unwrap();
            assert_eq!(names(&told.requisite), requisite, "{name}");
            assert_eq!(names(&told.preferred)[0], first, "{name}");
        }
        let allowed = allow(&["a"]);
        let wanted = Wanted {
            allowed: &allowed,
            chosen: Some(("node", zone("b"))),
            everywhere: everywhere(),
            is_strict: false,
            tells_cluster: true,
            claim: "c",
        };
        assert_eq!(wanted.requirement(), Err(TopologyError::NotAllowed { node: "node".into(), allowed: 1 }));
    }

    #[test]
    fn without_a_node_volumes_are_spread() {
        let of = |claim: &str, tells_cluster: bool| {
            let everywhere = BTreeSet::from([zone("a"), zone("b"), zone("c")]);
            let wanted = Wanted { allowed: &[], chosen: None, everywhere, is_strict: false, tells_cluster, claim };
            wanted.requirement().unwrap()
        };
        let firsts: BTreeSet<String> =
            (0..3).map(|n| names(&of(&format!("data-{n}"), true).unwrap().preferred)[0].to_owned()).collect();
        assert_eq!(firsts.len(), 3, "each of three claims begins elsewhere");
        assert_eq!(of("data-0", false), None);
    }

    #[test]
    fn terms_that_multiply_are_bounded() {
        let values: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let expression = |key: &str| TopologySelectorLabelRequirement { key: key.into(), values: values.clone() };
        let terms = [TopologySelectorTerm { match_label_expressions: vec![expression("x"), expression("y")] }];
        assert_eq!(allowed(&terms), Err(TopologyError::TooMany));
    }

    #[test]
    fn places_become_terms() {
        let affinity = affinity(&[to_topology(&zone("a")), to_topology(&zone("b"))]).unwrap();
        let terms = affinity.required.unwrap().node_selector_terms;
        assert_eq!(terms.len(), 2);
        assert_eq!(terms[1].match_expressions[0].values, ["b"]);
        assert_eq!(super::affinity(&[]), None);
        assert_eq!(super::affinity(&[Topology::default()]), None, "anywhere");
    }
}
