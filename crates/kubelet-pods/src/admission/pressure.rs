//! A node that runs out of something takes no more pods that would be the first to be evicted.

use api_types::core_v1::Taint;
use component_helpers::qos;
use component_helpers::taints::{self, Comparing};

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
        // The taint has no value, so that there is nothing to compare.
        let tolerations = &pod.spec.tolerations;
        if qos::class_of(pod) != "BestEffort" || taints::any_tolerates(tolerations, &taint, Comparing::Texts) {
            return Ok(());
        }
    }
    let text = format!("The node had condition: [{}]. ", situation.pressures.join(" "));
    Err(Refusal::new(Reason::Evicted, text))
}
