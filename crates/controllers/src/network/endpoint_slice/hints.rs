//! Hints to proxies which endpoints to prefer, from the service's annotations or `spec.trafficDistribution`.

use std::sync::Arc;

use api_types::core_v1::Service;
use api_types::core_v1::constants::{
    ANNOTATION_TOPOLOGY_MODE as MODE, DEPRECATED_ANNOTATION_TOPOLOGY_AWARE_HINTS as OLD_MODE,
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_CLOSE as PREFER_CLOSE,
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_NODE as PREFER_SAME_NODE,
    SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_ZONE as PREFER_SAME_ZONE,
};
use api_types::discovery_v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

use super::balance::balance;
use super::pack::Writes;
use super::zones::{Obstacle, Shares, ZoneCounts};

/// How far hints go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    None,
    Zone,
    Node,
}

/// What came of hints by annotation: the endpoints of each zone, or why there are none. None where they are not asked
/// for.
pub(super) type Balance = Option<Result<ZoneCounts, Obstacle>>;

/// Whether hints are asked for by annotation. The old one goes before the new one if both are there.
pub(super) fn are_asked_for(service: &Service) -> bool {
    let annotations = &service.metadata.annotations;
    let mode = annotations.get(OLD_MODE).or_else(|| annotations.get(MODE));
    mode.is_some_and(|mode| mode == "Auto" || mode == "auto")
}

/// The traffic distribution of a service, if it is a known one and no annotation overrides it.
pub(super) fn distribution(service: &Service) -> Option<&str> {
    let name = service.spec.traffic_distribution.as_deref().filter(|_| !are_asked_for(service))?;
    matches!(name, PREFER_CLOSE | PREFER_SAME_ZONE | PREFER_SAME_NODE).then_some(name)
}

/// Sets the hints of everything that is written, and writes what has wrong ones.
pub(super) fn apply(service: &Service, shares: &Shares, writes: &mut Writes) -> Balance {
    if are_asked_for(service) {
        return Some(balance(shares, writes));
    }
    let distribution = match distribution(service) {
        None => Distribution::None,
        Some(PREFER_SAME_NODE) => Distribution::Node,
        Some(_) => Distribution::Zone,
    };
    follow(distribution, writes);
    None
}

/// Removes all hints.
pub(super) fn clear(writes: &mut Writes) {
    follow(Distribution::None, writes);
}

fn follow(distribution: Distribution, writes: &mut Writes) {
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
    fn annotations_go_before_the_distribution() {
        for (annotations, distributed, expected) in [
            (vec![], None, (false, None)),
            (vec![], Some(PREFER_CLOSE), (false, Some(PREFER_CLOSE))),
            (vec![], Some("Elsewhere"), (false, None)),
            (vec![(MODE, "Auto")], Some(PREFER_CLOSE), (true, None)),
            (vec![(MODE, "auto")], None, (true, None)),
            (vec![(MODE, "AUTO")], Some(PREFER_SAME_NODE), (false, Some(PREFER_SAME_NODE))),
            (vec![(OLD_MODE, "Auto")], None, (true, None)),
            (vec![(OLD_MODE, "Disabled"), (MODE, "Auto")], None, (false, None)),
            (vec![(OLD_MODE, "auto"), (MODE, "Disabled")], None, (true, None)),
        ] {
            let mut service = Service::default();
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            service.metadata.annotations = annotations.iter().map(owned).collect();
            service.spec.traffic_distribution = distributed.map(str::to_owned);
            assert_eq!((are_asked_for(&service), distribution(&service)), expected, "{annotations:?} {distributed:?}");
        }
    }

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
