//! How many devices of a class a node reaches, and how many of them are taken: what an extended resource that devices stand
//! for amounts to there (KEP-5004).

use std::sync::Arc;

use api_types::resource_v1::DeviceClass;

use crate::allocated::Allocated;
use crate::allocator::{AllocateError, CandidateNode};
use crate::eligible::selects;
use crate::pools::Slices;
use crate::selector::Selectors;

/// Counts devices, node by node.
pub struct DeviceCounts {
    slices: Arc<Slices>,
    allocated: Arc<Allocated>,
    selectors: Arc<Selectors>,
}

impl DeviceCounts {
    /// Counts the devices of all slices that there are.
    #[must_use]
    pub fn new(slices: Arc<Slices>, allocated: Arc<Allocated>, selectors: Arc<Selectors>) -> Self {
        Self { slices, allocated, selectors }
    }

    /// How many devices of a class the node reaches, and how many of these are taken.
    ///
    /// # Errors
    /// When the class's selectors do not tell.
    pub fn of(&self, node: CandidateNode<'_>, class: &DeviceClass) -> Result<(i64, i64), AllocateError> {
        let who = || format!("class {}", class.metadata.name);
        let expressions = self.slices.expressions(&class.spec.selectors);
        let (mut all, mut taken) = (0, 0);
        for pool in self.slices.pools_of(node) {
            for offer in pool.devices.iter().copied().filter(|offer| offer.is_reached(node)) {
                if !selects(&self.selectors, &expressions, offer, &who)? {
                    continue;
                }
                all += 1;
                taken += i64::from(self.allocated.of(pool.driver, pool.name, &offer.device.name).is_some());
            }
        }
        Ok((all, taken))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use api_machinery::json;
    use api_machinery::reflect::Reflect;
    use api_types::resource_v1::{AllocationResult, ResourceSlice};
    use serde_json::{Value, json};

    use super::*;

    fn read<T: Reflect + Default>(manifest: &Value) -> T {
        let mut object = T::default();
        json::decode(manifest.to_string().as_bytes(), &mut object).unwrap();
        object
    }

    #[test]
    fn devices_of_the_class_that_the_node_reaches_count() {
        let slice = |name: &str, node: &str, devices: Value| {
            Arc::new(read::<ResourceSlice>(
                &json!({"metadata": {"name": name}, "spec": {"driver": "d", "nodeName": node,
                "devices": devices, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}),
            ))
        };
        let fast = |name: &str, fast: bool| json!({"name": name, "attributes": {"fast": {"bool": fast}}});
        let slices = [
            slice("s", "n", json!([fast("one", true), fast("two", true), fast("three", false)])),
            slice("t", "m", json!([fast("four", true)])),
            slice("u", "o", json!([{"name": "five"}])),
        ];
        let mut allocated = Allocated::default();
        for device in ["one", "three"] {
            let result = json!({"request": "r", "driver": "d", "pool": "n", "device": device});
            allocated.add(&read::<AllocationResult>(&json!({"devices": {"results": [result]}})), true);
        }
        let counts =
            DeviceCounts::new(Arc::new(Slices::of(&slices)), Arc::new(allocated), Arc::new(Selectors::new(true)));
        let expression = json!({"cel": {"expression": "device.attributes['d'].fast"}});
        let class = read::<DeviceClass>(&json!({"metadata": {"name": "c"}, "spec": {"selectors": [expression]}}));
        let labels = BTreeMap::new();
        let of = |name| counts.of(CandidateNode { name, labels: &labels }, &class);
        assert_eq!((of("n"), of("m"), of("elsewhere")), (Ok((2, 1)), Ok((1, 0)), Ok((0, 0))));
        assert!(of("o").unwrap_err().to_string().starts_with("class c: selector #0: CEL runtime error"));
    }
}
