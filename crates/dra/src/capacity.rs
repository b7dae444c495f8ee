//! How much of a device's capacities a request takes (KEP-5075).

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::resource_v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity};

/// Amounts by name of the capacity.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// How much of each capacity a request takes of a device; none where the device cannot give that.
pub(crate) fn consumed(device: &Device, asked: Option<&Amounts>) -> Option<Amounts> {
    if asked.is_some_and(|asked| asked.keys().any(|name| !device.capacity.contains_key(name))) {
        return None;
    }
    let mut consumed = Amounts::new();
    for (name, capacity) in &device.capacity {
        let taken = match asked.and_then(|asked| asked.get(name)) {
            Some(amount) => granted(capacity, amount)?,
            None => untold(capacity),
        };
        if taken > capacity.value {
            return None;
        }
        consumed.insert(name.clone(), taken);
    }
    Some(consumed)
}

/// What is taken where nothing is asked for: the default, or all of it.
fn untold(capacity: &DeviceCapacity) -> Quantity {
    let default = capacity.request_policy.as_ref().and_then(|policy| policy.default.as_ref());
    default.unwrap_or(&capacity.value).clone()
}

/// The amount that is given for one that is asked for; none where the policy refuses it.
fn granted(capacity: &DeviceCapacity, asked: &Quantity) -> Option<Quantity> {
    let Some(policy) = &capacity.request_policy else { return Some(asked.clone()) };
    let given = rounded(policy, asked)?;
    if policy.default.as_ref() == Some(&given) {
        return Some(given);
    }
    let max = policy.valid_range.as_ref().and_then(|range| range.max.as_ref());
    if max.is_some_and(|max| given > *max) { None } else { Some(given) }
}

/// The smallest amount that the policy knows and that is enough.
fn rounded(policy: &CapacityRequestPolicy, asked: &Quantity) -> Option<Quantity> {
    if let Some(range) = &policy.valid_range {
        return Some(stepped(range, asked));
    }
    if policy.valid_values.is_empty() {
        return Some(asked.clone());
    }
    policy.valid_values.iter().filter(|value| *value >= asked).min().cloned()
}

fn stepped(range: &CapacityRequestPolicyRange, asked: &Quantity) -> Quantity {
    let Some(min) = &range.min else { return asked.clone() };
    if asked < min {
        return min.clone();
    }
    let Some(step) = range.step.as_ref().map(Quantity::value).filter(|step| *step > 0) else { return asked.clone() };
    let mut above = asked.clone();
    above.sub(min);
    let (above, mut given) = (above.value(), min.clone());
    let mut added = range.step.clone().unwrap_or_default();
    added.mul(above / step + i64::from(above % step != 0));
    given.add(&added);
    given
}
