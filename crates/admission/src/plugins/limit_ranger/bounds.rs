//! What a limit range refuses: too little, too much, or limits too far above requests.

use api_machinery::quantity::Quantity;
use api_types::core_v1::{LimitRangeItem, PersistentVolumeClaim, Pod, ResourceList};
use component_helpers::pod_requests;

/// What something asks for and may use at most.
struct Asked<'a> {
    kind: &'a str,
    requests: &'a ResourceList,
    limits: &'a ResourceList,
}

/// Adds what a pod breaks of one entry.
pub(super) fn of_pod(pod: &Pod, item: &LimitRangeItem, broken: &mut Vec<String>) {
    match item.type_.as_str() {
        "Container" => {
            for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
                let resources = &container.resources;
                let asked = Asked { kind: &item.type_, requests: &resources.requests, limits: &resources.limits };
                asked.check(item, broken);
            }
        }
        "Pod" => {
            let mut requests = pod_requests::aggregate(&pod.spec, |own| own.resources.requests.clone());
            let mut limits = pod_requests::aggregate(&pod.spec, |own| own.resources.limits.clone());
            if let Some(own) = &pod.spec.resources {
                replace(&mut requests, &own.requests);
                replace(&mut limits, &own.limits);
            }
            Asked { kind: &item.type_, requests: &requests, limits: &limits }.check(item, broken);
        }
        _ => {}
    }
}

/// Amounts of the pod as a whole stand for the sums.
fn replace(sums: &mut ResourceList, own: &ResourceList) {
    let whole = own.iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
    sums.extend(whole.map(|(name, amount)| (name.clone(), amount.clone())));
}

/// Adds what a claim breaks of one entry.
pub(super) fn of_claim(claim: &PersistentVolumeClaim, item: &LimitRangeItem, broken: &mut Vec<String>) {
    if item.type_ != "PersistentVolumeClaim" {
        return;
    }
    let limits = ResourceList::new();
    let asked = Asked { kind: &item.type_, requests: &claim.spec.resources.requests, limits: &limits };
    for (name, least) in &item.min {
        broken.extend(asked.too_little(name, least));
    }
    for (name, most) in &item.max {
        let head = format!("maximum {name} usage per {} is {most}", asked.kind);
        broken.extend(match asked.requests.get(name) {
            None => Some(format!("{head}.  No request is specified")),
            Some(request) if request > most => Some(format!("{head}, but request is {request}")),
            Some(_) => None,
        });
    }
}

impl Asked<'_> {
    fn check(&self, item: &LimitRangeItem, broken: &mut Vec<String>) {
        for (name, least) in &item.min {
            broken.extend(self.too_little(name, least));
        }
        for (name, most) in &item.max {
            broken.extend(self.too_much(name, most));
        }
        for (name, ratio) in &item.max_limit_request_ratio {
            broken.extend(self.too_far_apart(name, ratio));
        }
    }

    fn too_little(&self, name: &str, least: &Quantity) -> Option<String> {
        let head = format!("minimum {name} usage per {} is {least}", self.kind);
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{head}.  No request is specified")),
            (Some(request), _) if request < least => Some(format!("{head}, but request is {request}")),
            (_, Some(limit)) if limit < least => Some(format!("{head}, but limit is {limit}")),
            _ => None,
        }
    }

    fn too_much(&self, name: &str, most: &Quantity) -> Option<String> {
        let head = format!("maximum {name} usage per {} is {most}", self.kind);
        match (self.requests.get(name), self.limits.get(name)) {
            (_, None) => Some(format!("{head}.  No limit is specified")),
            (_, Some(limit)) if limit > most => Some(format!("{head}, but limit is {limit}")),
            (Some(request), _) if request > most => Some(format!("{head}, but request is {request}")),
            _ => None,
        }
    }

    fn too_far_apart(&self, name: &str, most: &Quantity) -> Option<String> {
        let head = format!("{name} max limit to request ratio per {} is {most}, but", self.kind);
        let some = |amount: Option<&Quantity>| amount.map(Quantity::as_f64).filter(|amount| *amount != 0.0);
        let Some(request) = some(self.requests.get(name)) else {
            return Some(format!("{head} no request is specified or request is 0"));
        };
        let Some(limit) = some(self.limits.get(name)) else {
            return Some(format!("{head} no limit is specified or limit is 0"));
        };
        let ratio = limit / request;
        (ratio > most.as_f64()).then(|| format!("{head} provided ratio is {ratio:.6}"))
    }
}
