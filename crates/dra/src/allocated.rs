//! What of which device is allocated.

use std::collections::{BTreeMap, HashMap};

use api_machinery::quantity::Quantity;
use api_types::resource_v1::{AllocationResult, DeviceRequestAllocationResult};

/// What of a device is allocated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// How many claims have it for themselves; more than one only when something went wrong.
    exclusive: usize,
    /// How many have a part of it.
    shared: usize,
    /// How much of its capacities they have together.
    consumed: BTreeMap<String, Quantity>,
}

impl DeviceUse {
    /// Whether somebody has it for himself.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive > 0
    }

    /// How much of a capacity is taken.
    #[must_use]
    pub fn consumed(&self, capacity: &str) -> Option<&Quantity> {
        self.consumed.get(capacity)
    }
}

/// The devices of a pool that are allocated, by name.
pub(crate) type Devices = BTreeMap<String, DeviceUse>;

/// The devices that are allocated, by driver, pool and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocated {
    pools: HashMap<String, HashMap<String, Devices>>,
}

impl Allocated {
    /// What is taken of a device.
    #[must_use]
    pub fn of(&self, driver: &str, pool: &str, device: &str) -> Option<&DeviceUse> {
        self.in_pool(driver, pool)?.get(device)
    }

    /// The devices of a pool of which something is taken; none where all of it is free.
    pub(crate) fn in_pool(&self, driver: &str, pool: &str) -> Option<&Devices> {
        self.pools.get(driver)?.get(pool)
    }

    /// Adds what a claim has. Whether parts of devices are told apart from whole ones is `shares`.
    pub fn add(&mut self, allocation: &AllocationResult, shares: bool) {
        for result in counted(allocation) {
            let pools = self.pools.entry(result.driver.clone()).or_default();
            let device = pools.entry(result.pool.clone()).or_default().entry(result.device.clone()).or_default();
            if shares && result.share_id.is_some() {
                device.shared += 1;
                for (name, amount) in &result.consumed_capacity {
                    device.consumed.entry(name.clone()).or_default().add(amount);
                }
            } else {
                device.exclusive += 1;
            }
        }
    }

    /// Takes away what a claim had, as it was added.
    pub fn remove(&mut self, allocation: &AllocationResult, shares: bool) {
        for result in counted(allocation) {
            let Some(pools) = self.pools.get_mut(&result.driver) else { continue };
            let Some(devices) = pools.get_mut(&result.pool) else { continue };
            let Some(device) = devices.get_mut(&result.device) else { continue };
            if shares && result.share_id.is_some() {
                device.shared = device.shared.saturating_sub(1);
                for (name, amount) in &result.consumed_capacity {
                    device.consumed.entry(name.clone()).or_default().sub(amount);
                }
            } else {
                device.exclusive = device.exclusive.saturating_sub(1);
            }
            if device.exclusive == 0 && device.shared == 0 {
                devices.remove(&result.device);
            }
            if devices.is_empty() {
                pools.remove(&result.pool);
            }
        }
    }
}

/// Who only looks after a device does not take it.
fn counted(allocation: &AllocationResult) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    allocation.devices.results.iter().filter(|result| result.admin_access != Some(true))
}
