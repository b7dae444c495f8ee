//! Whether a device can serve a request at all, whoever else has devices.

use api_types::resource_v1::constants::device_taint_effect::{NO_EXECUTE, NO_SCHEDULE};
use api_types::resource_v1::constants::device_toleration_operator::EXISTS;
use api_types::resource_v1::{Device, DeviceTaint, DeviceToleration};

use crate::allocator::AllocateError;
use crate::features::Features;
use crate::pools::Offer;
use crate::requests::{Part, Wanted, full_name};
use crate::selector::Selectors;
use crate::verdicts::Expression;

/// Whether all expressions want the device. `who` states them.
pub(crate) fn selects(
    selectors: &Selectors,
    expressions: &[Option<Expression>],
    offer: Offer<'_>,
    who: &dyn Fn() -> String,
) -> Result<bool, AllocateError> {
    for (place, expression) in expressions.iter().enumerate() {
        // A selector of a kind that this build does not know selects nothing.
        let Some(expression) = expression else { return Ok(false) };
        let wanted = expression.wants(selectors, offer);
        if !wanted.map_err(|error| AllocateError::Failed(format!("{}: selector #{place}: {error}", who())))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the class and the request want the device.
pub(crate) fn is_wanted(
    selectors: &Selectors,
    claim: &Wanted<'_>,
    part: &Part,
    offer: Offer<'_>,
) -> Result<bool, AllocateError> {
    let class = || format!("class {}", part.class.metadata.name);
    let own = || format!("claim {}", full_name(claim.claim));
    Ok(selects(selectors, &part.of_class, offer, &class)? && selects(selectors, &part.of_request, offer, &own)?)
}

/// Whether this build can allocate the device with the features that are on.
pub(crate) fn is_understood(device: &Device, features: Features) -> bool {
    (features.binding_conditions || device.binding_conditions.is_empty())
        && (features.partitionable_devices || device.consumes_counters.is_empty())
}

/// Whether the request puts up with the taints of the device.
pub(crate) fn is_tolerated(device: &Device, tolerations: &[DeviceToleration]) -> bool {
    let blocks = |taint: &&DeviceTaint| taint.effect == NO_SCHEDULE || taint.effect == NO_EXECUTE;
    let mut taints = device.taints.iter().filter(blocks);
    taints.all(|taint| tolerations.iter().any(|own| tolerates(own, taint)))
}

fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let suits = |own: &str, other: &str| own.is_empty() || own == other;
    let has_value = || match toleration.operator.as_str() {
        EXISTS => true,
        "" | "Equal" => toleration.value == taint.value,
        _ => false,
    };
    suits(&toleration.effect, &taint.effect) && suits(&toleration.key, &taint.key) && has_value()
}
