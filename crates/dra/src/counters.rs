//! What the devices of a pool take from the counters that they share (KEP-4815).

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::resource_v1::Device;

use crate::allocated::{Allocated, Devices};
use crate::pools::Pool;

/// What is left of the counters of a pool, by set and name.
pub(crate) struct Counters<'a>(BTreeMap<(&'a str, &'a str), Quantity>);

impl<'a> Counters<'a> {
    /// What the devices leave that are allocated, on whatever node.
    pub(crate) fn of(pool: &Pool<'a>, allocated: &Allocated) -> Self {
        let sets = pool.slices.iter().flat_map(|slice| &slice.spec.shared_counters);
        let all = sets.flat_map(|set| {
            set.counters.iter().map(move |(name, counter)| ((set.name.as_str(), name.as_str()), counter.value.clone()))
        });
        let mut left = Self(all.collect());
        if left.0.is_empty() {
            return left;
        }
        for name in allocated.in_pool(pool.driver, pool.name).into_iter().flat_map(Devices::keys) {
            let mut devices = pool.slices.iter().flat_map(|slice| &slice.spec.devices);
            if let Some(device) = devices.find(|device| device.name == *name) {
                left.change(device, Quantity::sub);
            }
        }
        left
    }

    fn change(&mut self, device: &'a Device, change: impl Fn(&mut Quantity, &Quantity)) {
        for taken in &device.consumes_counters {
            for (name, counter) in &taken.counters {
                if let Some(left) = self.0.get_mut(&(taken.counter_set.as_str(), name.as_str())) {
                    change(left, &counter.value);
                }
            }
        }
    }

    /// Takes what a device needs, if there is enough.
    pub(crate) fn take(&mut self, device: &'a Device) -> bool {
        self.change(device, Quantity::sub);
        let is_short =
            |set: &str, name: &String| self.0.get(&(set, name.as_str())).is_none_or(|left| left.cmp_i64(0).is_lt());
        let mut taken = device.consumes_counters.iter();
        let lacks = taken.any(|taken| taken.counters.keys().any(|name| is_short(&taken.counter_set, name)));
        if lacks {
            self.give_back(device);
        }
        !lacks
    }

    /// Gives back what a device took.
    pub(crate) fn give_back(&mut self, device: &'a Device) {
        self.change(device, Quantity::add);
    }
}
