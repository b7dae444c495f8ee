//! What the topology manager is told, and what follows from a merged hint.

use std::collections::BTreeMap;

use super::hint::{Distances, Hint, Tie, merge, single_node};
use super::{MAX_NODE, NodeSet};

/// Nodes that are allowed where nobody says otherwise, and the least that may be said.
const USUAL_NODES: usize = 8;
/// Every set of nodes is looked at, so that more nodes than this are refused whatever is allowed.
const MOST_NODES: usize = 16;

const CLOSEST: &str = "prefer-closest-numa-nodes";
const NODES: &str = "max-allowable-numa-nodes";

/// `topologyManagerPolicy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    #[default]
    None,
    BestEffort,
    Restricted,
    SingleNumaNode,
}

/// `topologyManagerScope`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Container,
    Pod,
}

impl Scope {
    /// As metrics name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Pod => "pod",
        }
    }
}

/// The topology manager's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologySettings {
    pub policy: Policy,
    pub scope: Scope,
    /// Option `prefer-closest-numa-nodes`.
    pub closest: bool,
    /// Option `max-allowable-numa-nodes`; none for the usual.
    pub most_nodes: Option<usize>,
}

/// Why the topology manager cannot be as it is asked to be, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("unknown policy: {0:?}")]
    Policy(String),
    #[error("unknown scope: {0:?}")]
    Scope(String),
    #[error("unknown Topology Manager Policy option: {0:?}")]
    Option(String),
    #[error("bad value for option {option:?}: {why}")]
    Value { option: &'static str, why: String },
    #[error("the minimum value of {NODES:?} should not be less than {USUAL_NODES}")]
    FewNodes,
    #[error("unsupported on machines with more than {0} NUMA Nodes")]
    ManyNodes(usize),
}

impl TopologySettings {
    /// Reads the fields of the configuration; empty ones are the usual.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(policy: &str, scope: &str, options: &BTreeMap<String, String>) -> Result<Self, TopologyError> {
        let policy = match policy {
            "" | "none" => Policy::None,
            "best-effort" => Policy::BestEffort,
            "restricted" => Policy::Restricted,
            "single-numa-node" => Policy::SingleNumaNode,
            other => return Err(TopologyError::Policy(other.to_owned())),
        };
        let scope = match scope {
            "" | "container" => Scope::Container,
            "pod" => Scope::Pod,
            other => return Err(TopologyError::Scope(other.to_owned())),
        };
        let mut settings = Self { policy, scope, ..Self::default() };
        for (option, value) in options {
            match option.as_str() {
                CLOSEST => settings.closest = parse_bool(CLOSEST, value)?,
                NODES => settings.most_nodes = Some(parse_nodes(value)?),
                other => return Err(TopologyError::Option(other.to_owned())),
            }
        }
        Ok(settings)
    }

    /// # Errors
    /// The machine has more nodes of memory than are allowed.
    pub fn check(&self, nodes: &[u32]) -> Result<(), TopologyError> {
        let most = self.most_nodes.unwrap_or(USUAL_NODES).min(MOST_NODES);
        let many = nodes.len() > most || nodes.iter().any(|node| *node > MAX_NODE);
        if self.policy != Policy::None && many {
            return Err(TopologyError::ManyNodes(most));
        }
        Ok(())
    }

    /// Where all resources of one container or pod shall be, or that they shall not be at all.
    pub(super) fn decide(&self, all: NodeSet, lists: Vec<Vec<Hint>>, distances: &Distances) -> Option<Hint> {
        let tie = if self.closest { Tie::Closest(distances) } else { Tie::Lowest };
        match self.policy {
            Policy::None => Some(Hint::ANYWHERE),
            Policy::BestEffort => Some(merge(all, &lists, tie)),
            Policy::Restricted => Some(merge(all, &lists, tie)).filter(|hint| hint.preferred),
            Policy::SingleNumaNode => {
                let merged = merge(all, &single_node(lists), Tie::Lowest);
                let nodes = merged.nodes.filter(|nodes| *nodes != all);
                merged.preferred.then_some(Hint { nodes, ..merged })
            }
        }
    }
}

fn parse_bool(option: &'static str, value: &str) -> Result<bool, TopologyError> {
    component_base::flags::parse_bool(value).map_err(|error| TopologyError::Value { option, why: error.to_string() })
}

fn parse_nodes(value: &str) -> Result<usize, TopologyError> {
    let failed =
        |_| TopologyError::Value { option: NODES, why: format!("strconv.Atoi: parsing {value:?}: invalid syntax") };
    match value.parse::<usize>().map_err(failed)? {
        few if few < USUAL_NODES => Err(TopologyError::FewNodes),
        nodes => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused() {
        let parse = |policy: &str, scope: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            TopologySettings::parse(policy, scope, &options).map_err(|error| error.to_string())
        };
        assert_eq!(parse("", "", &[]), Ok(TopologySettings::default()));
        let read = parse("restricted", "pod", &[(CLOSEST, "true"), (NODES, "12")]).unwrap();
        let expected =
            TopologySettings { policy: Policy::Restricted, scope: Scope::Pod, closest: true, most_nodes: Some(12) };
        assert_eq!(read, expected);
        let few: Vec<u32> = (0..8).collect();
        let many: Vec<u32> = (0..9).collect();
        assert_eq!((expected.check(&many), TopologySettings::default().check(&many)), (Ok(()), Ok(())));
        let usual = parse("best-effort", "", &[]).unwrap();
        assert_eq!((usual.check(&few), usual.check(&many)), (Ok(()), Err(TopologyError::ManyNodes(8))));
        for (policy, scope, options, error) in [
            ("strict", "", &[][..], "unknown policy: \"strict\""),
            ("", "node", &[], "unknown scope: \"node\""),
            ("", "", &[("near", "true")], "unknown Topology Manager Policy option: \"near\""),
            ("", "", &[(NODES, "7")], "the minimum value of \"max-allowable-numa-nodes\" should not be less than 8"),
            (
                "",
                "",
                &[(CLOSEST, "maybe")],
                "bad value for option \"prefer-closest-numa-nodes\": strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
        ] {
            assert_eq!(parse(policy, scope, options), Err(error.to_owned()));
        }
    }

    #[test]
    fn policies_admit_what_they_may() {
        let all: NodeSet = [0, 1].into_iter().collect();
        let hint = |nodes: &[u32], preferred| Hint { nodes: Some(nodes.iter().copied().collect()), preferred };
        let agree = vec![vec![hint(&[0], true), hint(&[1], true), hint(&[0, 1], false)], vec![hint(&[1], true)]];
        let differ = vec![vec![hint(&[0], true)], vec![hint(&[0, 1], true)]];
        let wide = vec![vec![hint(&[0, 1], true)]];
        let cases = [
            (Policy::None, [Some(Hint::ANYWHERE); 3]),
            (Policy::BestEffort, [Some(hint(&[1], true)), Some(hint(&[0], false)), Some(hint(&[0, 1], true))]),
            (Policy::Restricted, [Some(hint(&[1], true)), None, Some(hint(&[0, 1], true))]),
            (Policy::SingleNumaNode, [Some(hint(&[1], true)), None, None]),
        ];
        for (policy, expected) in cases {
            let settings = TopologySettings { policy, ..TopologySettings::default() };
            let decided = [&agree, &differ, &wide].map(|lists| settings.decide(all, lists.clone(), &Distances::new()));
            assert_eq!(decided, expected, "{policy:?}");
        }
        let single = TopologySettings { policy: Policy::SingleNumaNode, ..TopologySettings::default() };
        let anywhere = single.decide(all, vec![vec![Hint::ANYWHERE]], &Distances::new());
        assert_eq!(anywhere, Some(Hint::ANYWHERE), "all nodes are anywhere");
    }
}
