//! Which services a change of a pod concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::core_v1::{Pod, Service};
use client::{Change, Informer, ObjectKey};
use component_helpers::pod_state;

use super::backends::{addresses, selects};

/// The keys of the services that a change of a pod concerns.
pub(super) fn concerned(services: &Informer<Service>, change: &Change<Pod>) -> Vec<ObjectKey> {
    let in_namespace = services.in_namespace(&change.object().metadata.namespace);
    match change {
        Change::Added { object, .. } | Change::Deleted { object, .. } => matching(&in_namespace, object),
        Change::Updated { .. } if change.is_resync() => Vec::new(),
        Change::Updated { old, new } => of_update(&in_namespace, old, new),
    }
}

fn of_update(services: &[Arc<Service>], old: &Pod, new: &Pod) -> Vec<ObjectKey> {
    let (changed, moved) = (differs(old, new), relabelled(old, new));
    let now = matching(services, new);
    if !moved {
        return if changed { now } else { Vec::new() };
    }
    let (before, now) = (BTreeSet::from_iter(matching(services, old)), BTreeSet::from_iter(now));
    if changed { before.union(&now).cloned().collect() } else { before.symmetric_difference(&now).cloned().collect() }
}

fn matching(services: &[Arc<Service>], pod: &Pod) -> Vec<ObjectKey> {
    let chosen = services.iter().filter(|service| selects(service, &pod.metadata.labels));
    chosen.map(|service| ObjectKey::of(&service.metadata)).collect()
}

/// Whether the pod itself changed in a way that shows in an endpoint. Every update of a dying pod counts, as upstream.
fn differs(old: &Pod, new: &Pod) -> bool {
    new.metadata.deletion_timestamp.is_some()
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || pod_state::is_ready(old) != pod_state::is_ready(new)
        || pod_state::is_terminal(old) != pod_state::is_terminal(new)
        || old.spec.hostname != new.spec.hostname
        || old.spec.subdomain != new.spec.subdomain
        || old.spec.node_name != new.spec.node_name
        || !addresses(old).eq(addresses(new))
}

fn relabelled(old: &Pod, new: &Pod) -> bool {
    old.metadata.labels != new.metadata.labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{meta, ready};

    fn service(name: &str, label: &str) -> Arc<Service> {
        let mut service = Service { metadata: meta(name), ..Service::default() };
        service.spec.selector.insert("app".into(), label.into());
        Arc::new(service)
    }

    #[test]
    fn services_are_found_by_old_and_new_labels() {
        let mut selectorless = Service { metadata: meta("none"), ..Service::default() };
        selectorless.spec.selector.clear();
        let services = [service("web", "web"), service("other", "other"), Arc::new(selectorless)];
        let plain = Pod { metadata: meta("p"), ..Pod::default() };
        let mut moved = plain.clone();
        moved.metadata.labels.insert("app".into(), "other".into());
        let mut more = plain.clone();
        more.metadata.labels.insert("more".into(), "x".into());
        for (name, old, new, expected) in [
            ("nothing relevant", plain.clone(), plain.clone(), vec![]),
            ("ready", plain.clone(), ready(plain.clone(), 1), vec!["web"]),
            ("moved", plain.clone(), moved.clone(), vec!["other", "web"]),
            ("moved and ready", plain.clone(), ready(moved, 1), vec!["other", "web"]),
            ("another label", plain.clone(), more.clone(), vec![]),
            ("another label and ready", plain.clone(), ready(more, 1), vec!["web"]),
        ] {
            let keys = of_update(&services, &old, &new);
            assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
