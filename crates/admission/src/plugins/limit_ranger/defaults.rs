//! What a limit range fills into the containers of a pod.

use api_types::core_v1::{Container, LimitRange, Pod, ResourceList};

const NOTE: &str = "kubernetes.io/limit-ranger";

/// Fills in missing requests and limits, and notes on the pod what was filled in.
pub(super) fn fill_in(pod: &mut Pod, range: &LimitRange) {
    let (mut requests, mut limits) = (ResourceList::new(), ResourceList::new());
    for item in range.spec.limits.iter().filter(|item| item.type_ == "Container") {
        requests.extend(item.default_request.clone());
        limits.extend(item.default.clone());
    }
    let mut notes = Vec::new();
    for container in &mut pod.spec.containers {
        fill_container(container, "container", &requests, &limits, &mut notes);
    }
    for container in &mut pod.spec.init_containers {
        fill_container(container, "init container", &requests, &limits, &mut notes);
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        pod.metadata.annotations.insert(NOTE.to_owned(), note);
    }
}

fn fill_container(
    container: &mut Container,
    what: &str,
    requests: &ResourceList,
    limits: &ResourceList,
    notes: &mut Vec<String>,
) {
    let name = &container.name;
    for (amounts, defaults, kind) in
        [(&mut container.resources.requests, requests, "request"), (&mut container.resources.limits, limits, "limit")]
    {
        let missing: Vec<&String> = defaults.keys().filter(|key| !amounts.contains_key(*key)).collect();
        if missing.is_empty() {
            continue;
        }
        let listed: Vec<&str> = missing.iter().map(|key| key.as_str()).collect();
        notes.push(format!("{} {kind} for {what} {name}", listed.join(", ")));
        amounts.extend(missing.into_iter().filter_map(|key| Some((key.clone(), defaults.get(key)?.clone()))));
    }
}
