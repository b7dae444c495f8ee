//! What a hollow node refuses: pods that it has no cores for. Schedulers see to it that there are none, but for one that was
//! deposed while a binding of its was under way.

use api_machinery::quantity::Quantity;
use api_machinery::value::Value;
use api_types::core_v1::Pod;
use component_helpers::pod_requests::requests;
use serde_json::json;

use crate::node::CORES_PER_NODE;

/// Why a kubelet refuses a pod that it has no cores for.
pub const OUT_OF_CPU: &str = "OutOfcpu";

/// How many thousandths of a core a pod asks for.
#[must_use]
pub fn millicores(pod: &Pod) -> i64 {
    requests(pod).get("cpu").map_or(0, Quantity::milli_value)
}

/// The status of a pod that is refused beside those that run; nothing where there is room for it.
pub(crate) fn refusal<'a>(pod: &Pod, running: impl Iterator<Item = &'a Pod>) -> Option<Value> {
    let (requested, used, capacity) = (millicores(pod), running.map(millicores).sum::<i64>(), CORES_PER_NODE * 1000);
    let has_room = requested == 0 || requested + used <= capacity;
    (!has_room).then(|| {
        let lack = format!(
            "Node didn't have enough resource: cpu, requested: {requested}, used: {used}, capacity: {capacity}"
        );
        json!({"phase": "Failed", "reason": OUT_OF_CPU, "message": format!("Pod was rejected: {lack}")})
    })
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;

    use super::*;

    #[test]
    fn a_pod_has_to_fit_beside_those_that_run() {
        let pod = |cpu: &str| {
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            from_value::<Pod>(&json!({"spec": {"containers": [container]}})).unwrap()
        };
        for (asked, running, is_refused) in [
            ("8", &[][..], false),
            ("8001m", &[], true),
            ("3", &["5"], false),
            ("3", &["2", "3001m"], true),
            ("0", &["9"], false),
        ] {
            let running: Vec<Pod> = running.iter().map(|cpu| pod(cpu)).collect();
            let found = refusal(&pod(asked), running.iter());
            assert_eq!(found.is_some(), is_refused, "{asked}: {found:?}");
        }
        let told = refusal(&pod("3"), [pod("6")].iter()).unwrap();
        assert_eq!(
            told["message"],
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 6000, capacity: 8000"
        );
    }
}
