//! `TopologyPlacementGenerator`: a group of pods goes to one domain of the topology that it names (KEP-5732).

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::scheduling_v1alpha2::PodGroup;

use crate::framework::{BuildCx, GroupCx, Placement, PlacementGenerate, Plugin, PluginError, Status};
use crate::plugin_args::PluginArgs;

pub(super) const NAME: &str = "TopologyPlacementGenerator";

struct TopologyPlacement;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    Ok(Plugin::new(NAME).placement_generate(Arc::new(TopologyPlacement)).wakes_on(Vec::new()))
}

/// The label whose values are the domains; the API takes one constraint at most.
fn topology_key(group: &PodGroup) -> Option<&str> {
    let constraints = group.spec.scheduling_constraints.as_ref()?;
    constraints.topology.first().map(|topology| topology.key.as_str())
}

/// The domain that the placed pods of a group are in; none where no pod is placed.
fn domain_of_placed<'a>(cx: GroupCx<'a>, key: &str) -> Result<Option<&'a str>, String> {
    let mut known: Option<&str> = None;
    for member in cx.placed {
        let Some(node) = cx.snapshot.by_name(&member.node) else {
            return Err(format!(
                "getting node for pod {}: nodeinfo not found for node name {:?}",
                member.pod, member.node
            ));
        };
        let domain = node.info.label(key).ok_or_else(|| format!("no topology domain found for pod {}", member.pod))?;
        if let Some(other) = known.filter(|other| *other != domain) {
            return Err(format!("more than 1 domain found for pod group: {other}, {domain}"));
        }
        known = Some(domain);
    }
    Ok(known)
}

impl PlacementGenerate for TopologyPlacement {
    fn placements(&self, cx: GroupCx<'_>) -> Result<Vec<Placement>, Status> {
        let Some(key) = topology_key(cx.group) else { return Ok(vec![Placement::default()]) };
        let required = domain_of_placed(cx, key)
            .map_err(|why| Status::error(format!("cannot determine domain for already scheduled pods: {why}")))?;
        let mut domains: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        for node in cx.snapshot.views() {
            if let Some(domain) = node.info.label(key).filter(|own| required.is_none_or(|required| required == *own)) {
                domains.entry(domain).or_default().push(Arc::clone(&node.info.name));
            }
        }
        let placement = |(name, nodes): (&str, _)| Placement { name: name.to_owned(), nodes: Some(nodes) };
        Ok(domains.into_iter().map(placement).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cache::Snapshot;
    use crate::framework::PlacedMember;
    use crate::node_info::NodeInfo;
    use crate::test_objects::{node, object};

    fn group(keys: &[&str]) -> PodGroup {
        let topology: Vec<_> = keys.iter().map(|key| json!({"key": key})).collect();
        object(json!({"metadata": {"name": "g"}, "spec": {"schedulingConstraints": {"topology": topology}}}))
    }

    fn cluster() -> Snapshot {
        let nodes = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "")];
        let info = |(name, zone): (&str, &str)| {
            let builder = if zone.is_empty() { node(name) } else { node(name).label("zone", zone) };
            Arc::new(NodeInfo::of(builder.build()))
        };
        Snapshot::of(nodes.into_iter().map(info).collect())
    }

    #[test]
    fn placements_are_the_domains_of_the_label() {
        let snapshot = cluster();
        let cases: [(&[&str], &[&str], &str); 7] = [
            (&[], &[], "*"),
            (&["zone"], &[], "x=a,c y=b"),
            (&["rack"], &[], ""),
            (&["zone"], &["b"], "y=b"),
            (
                &["zone"],
                &["a", "b"],
                "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: x, y",
            ),
            (
                &["zone"],
                &["d"],
                "cannot determine domain for already scheduled pods: no topology domain found for pod ns/on-d",
            ),
            (
                &["zone"],
                &["e"],
                "cannot determine domain for already scheduled pods: getting node for pod ns/on-e: nodeinfo not found \
                 for node name \"e\"",
            ),
        ];
        for (keys, placed, expected) in cases {
            let placed: Vec<_> =
                placed.iter().map(|node| PlacedMember { pod: format!("ns/on-{node}"), node: (*node).into() }).collect();
            let group = group(keys);
            let found = TopologyPlacement.placements(GroupCx { snapshot: &snapshot, group: &group, placed: &placed });
            let told = |one: &Placement| match &one.nodes {
                Some(nodes) => format!("{}={}", one.name, nodes.join(",")),
                None => "*".to_owned(),
            };
            let text = match found {
                Ok(placements) => placements.iter().map(told).collect::<Vec<_>>().join(" "),
                Err(status) => status.message(),
            };
            assert_eq!(text, expected, "{keys:?} {placed:?}");
        }
    }
}
