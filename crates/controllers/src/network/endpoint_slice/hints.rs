//! Hints to proxies which endpoints to prefer, from `spec.trafficDistribution`.

use std::sync::Arc;

use api_types::core_v1::Service;
use api_types::core_v1::constants::{
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_CLOSE as PREFER_CLOSE,
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_NODE as PREFER_SAME_NODE,
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_ZONE as PREFER_SAME_ZONE,
};
use api_types::discovery_v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

use super::pack::Writes;

/// How far hints go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    None,
    Zone,
    Node,
}

/// Sets the hints of everything that is written, and writes what has wrong ones.
pub(super) fn apply(service: &Service, writes: &mut Writes) {
    let distribution = match service.spec.traffic_distribution.as_deref() {
        Some(PREFER_CLOSE | PREFER_SAME_ZONE) => Distribution::Zone,
        Some(PREFER_SAME_NODE) => Distribution::Node,
        _ => Distribution::None,
    };
    let deviates = |slice: &&mut Arc<EndpointSlice>| {
        slice.endpoints.iter().any(|endpoint| wanted(distribution, endpoint) != endpoint.hints)
    };
    let wrong: Vec<Arc<EndpointSlice>> = writes.unchanged.extract_if(.., |slice| deviates(&slice)).collect();
    writes.update.extend(wrong.iter().map(|slice| EndpointSlice::clone(slice)));
    for endpoint in writes.create.iter_mut().chain(&mut writes.update).flat_map(|slice| &mut slice.endpoints) {
        endpoint.hints = wanted(distribution, endpoint);
    }
}

/// The hints that an endpoint should have. Those of an endpoint that is not ready stay, for it is not chosen anyway.
fn wanted(distribution: Distribution, endpoint: &Endpoint) -> Option<EndpointHints> {
    if distribution == Distribution::None {
        return None;
    }
    if endpoint.conditions.ready != Some(true) {
        return endpoint.hints.clone();
    }
    let zone = |name: &String| ForZone { name: name.clone() };
    let node = |name: &String| ForNode { name: name.clone() };
    let node_name = endpoint.node_name.as_ref().filter(|_| distribution == Distribution::Node);
    let hints = EndpointHints {
        for_zones: endpoint.zone.as_ref().map(zone).into_iter().collect(),
        for_nodes: node_name.map(node).into_iter().collect(),
    };
    (hints != EndpointHints::default()).then_some(hints)
}

#[cfg(test)]
mod tests {
    use api_types::discovery_v1::EndpointConditions;

    use super::*;

    #[test]
    fn hints_follow_the_distribution() {
        let endpoint = |zone: Option<&str>, ready| Endpoint {
            zone: zone.map(str::to_owned),
            node_name: Some("n".into()),
            conditions: EndpointConditions { ready: Some(ready), ..EndpointConditions::default() },
            ..Endpoint::default()
        };
        let shown = |hints: Option<EndpointHints>| {
            hints.map(|hints| (hints.for_zones.len(), hints.for_nodes.len())).unwrap_or_default()
        };
        for (name, distribution, endpoint, expected) in [
            ("none", Distribution::None, endpoint(Some("z"), true), (0, 0)),
            ("zone", Distribution::Zone, endpoint(Some("z"), true), (1, 0)),
            ("zone not known", Distribution::Zone, endpoint(None, true), (0, 0)),
            ("node", Distribution::Node, endpoint(Some("z"), true), (1, 1)),
            ("not ready", Distribution::Node, endpoint(Some("z"), false), (0, 0)),
        ] {
            assert_eq!(shown(wanted(distribution, &endpoint)), expected, "{name}");
        }
    }
}
