//! What single objects use of a quota.

use std::time::Duration;

use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;
use api_types::core_v1::{PersistentVolumeClaim, Pod, ResourceList, Service};

use super::whole;
use crate::resource_names::can_be_devices;
use crate::{pod_requests, pod_state};

const STORAGE: &str = "requests.storage";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Whether a name is about pods.
pub(super) fn of_pods(name: &str) -> bool {
    let plain = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    match name.split_once('.') {
        _ if matches!(name, "count/pods" | "pods") || plain(name) => true,
        Some(("requests", resource)) => plain(resource) || can_be_devices(resource),
        Some(("limits", resource)) => plain(resource) && !resource.starts_with("hugepages-"),
        _ => false,
    }
}

/// Whether a name is about claims.
pub(super) fn of_claims(name: &str) -> bool {
    let plain = |name: &str| matches!(name, "persistentvolumeclaims" | STORAGE);
    name == "count/persistentvolumeclaims"
        || plain(name)
        || name.split_once(OF_CLASS).is_some_and(|(_, own)| plain(own))
}

/// Whether a pod still uses anything but its place in the store.
fn is_live(pod: &Pod, now: Time) -> bool {
    if pod_state::is_terminal(pod) {
        return false;
    }
    let (Some(since), Some(grace)) = (pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds)
    else {
        return true;
    };
    now <= since + Duration::from_secs(u64::try_from(grace).unwrap_or(0))
}

pub(super) fn pod(pod: &Pod, now: Time) -> ResourceList {
    let mut used = ResourceList::from([("count/pods".to_owned(), whole(1))]);
    if !is_live(pod, now) {
        return used;
    }
    used.insert("pods".to_owned(), whole(1));
    for (name, amount) in pod_requests::booked_requests(pod) {
        match name.as_str() {
            "cpu" | "memory" | "ephemeral-storage" => {
                used.insert(format!("requests.{name}"), amount.clone());
                used.insert(name, amount);
            }
            _ if name.starts_with("hugepages-") => {
                used.insert(format!("requests.{name}"), amount.clone());
                used.insert(name, amount);
            }
            _ if can_be_devices(&name) => drop(used.insert(format!("requests.{name}"), amount)),
            _ => {}
        }
    }
    let limits = pod_requests::booked_limits(pod).into_iter();
    let counted = limits.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage"));
    used.extend(counted.map(|(name, amount)| (format!("limits.{name}"), amount)));
    used
}

pub(super) fn service(service: &Service) -> ResourceList {
    let all = service.spec.ports.len();
    let (ports, balancers) = match service.spec.type_.as_str() {
        "NodePort" => (all, 0),
        "LoadBalancer" if service.spec.allocate_load_balancer_node_ports == Some(false) => {
            (service.spec.ports.iter().filter(|port| port.node_port != 0).count(), 1)
        }
        "LoadBalancer" => (all, 1),
        _ => (0, 0),
    };
    [("count/services", 1), ("services", 1), ("services.nodeports", ports), ("services.loadbalancers", balancers)]
        .map(|(name, count)| (name.to_owned(), whole(u64::try_from(count).unwrap_or(u64::MAX))))
        .into()
}

pub(super) fn claim(claim: &PersistentVolumeClaim) -> ResourceList {
    let mut used = ResourceList::new();
    let asked = storage(&claim.spec.resources.requests);
    let allocated = storage(&claim.status.allocated_resources);
    let storage = asked.max(allocated);
    let annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION).map(String::as_str);
    let class = annotated.or(claim.spec.storage_class_name.as_deref()).unwrap_or_default();
    used.insert("count/persistentvolumeclaims".to_owned(), whole(1));
    for prefix in [String::new(), format!("{class}{OF_CLASS}")] {
        if prefix.starts_with('.') {
            continue;
        }
        used.insert(format!("{prefix}persistentvolumeclaims"), whole(1));
        if let Some(storage) = &storage {
            used.insert(format!("{prefix}{STORAGE}"), storage.clone());
        }
    }
    used
}

/// Storage in whole bytes.
fn storage(amounts: &ResourceList) -> Option<Quantity> {
    let amount = amounts.get("storage")?;
    if amount.is_integer() { Some(amount.clone()) } else { u64::try_from(amount.value()).ok().map(whole) }
}
