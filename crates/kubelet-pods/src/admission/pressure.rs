//! A node that runs out of something takes no more pods that would be the first to be evicted.

use api_types::core_v1::Taint;
use component_helpers::{qos, taints};

use super::{Attempt, Reason, Refusal};
use crate::pod::is_critical;

const MEMORY_PRESSURE: &str = "MemoryPressure";

pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let Attempt { pod, situation, .. } = attempt;
    if situation.pressures.is_empty() || is_critical(pod) {
        return Ok(());
    }
    if situation.pressures == [MEMORY_PRESSURE] {
        let taint =
            Taint { key: "node.kubernetes.io/memory-pressure".into(), effect: "NoSchedule".into(), ..Taint::default() };
        if qos::class_of(pod) != "BestEffort" || taints::any_tolerates(&pod.spec.tolerations, &taint) {
            return Ok(());
        }
    }
    let text = format!("The node had condition: [{}]. ", situation.pressures.join(" "));
    Err(Refusal::new(Reason::Evicted, text))
}
