//! The features of allocation that can be off.

pub use feature_gates::shared::{
    ADMIN_ACCESS, BINDING_CONDITIONS, CONSUMABLE_CAPACITY, DEVICE_STATUS, DEVICE_TAINTS, LIST_ATTRIBUTES,
    PARTITIONABLE_DEVICES, PRIORITIZED_LIST,
};
use feature_gates::{Feature, Gates};

/// What an allocator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Requests may ask for devices that others use, to look after them.
    pub admin_access: bool,
    /// Requests may have alternatives.
    pub prioritized_list: bool,
    /// Devices may take from counters that their pool shares.
    pub partitionable_devices: bool,
    /// Devices may have taints.
    pub device_taints: bool,
    /// Several claims may have parts of one device.
    pub consumable_capacity: bool,
    /// Devices may wait for conditions before their pod is bound.
    pub binding_conditions: bool,
    /// Constraints look at attributes that are lists.
    pub list_attributes: bool,
}

impl Features {
    /// The gates that are asked for.
    pub const GATES: &[Feature] = &[
        ADMIN_ACCESS,
        PRIORITIZED_LIST,
        PARTITIONABLE_DEVICES,
        DEVICE_TAINTS,
        CONSUMABLE_CAPACITY,
        BINDING_CONDITIONS,
        DEVICE_STATUS,
        LIST_ATTRIBUTES,
    ];

    /// What is on.
    #[must_use]
    pub fn of(gates: &Gates) -> Self {
        Self {
            admin_access: gates.enabled(ADMIN_ACCESS),
            prioritized_list: gates.enabled(PRIORITIZED_LIST),
            partitionable_devices: gates.enabled(PARTITIONABLE_DEVICES),
            device_taints: gates.enabled(DEVICE_TAINTS),
            consumable_capacity: gates.enabled(CONSUMABLE_CAPACITY),
            binding_conditions: gates.enabled(BINDING_CONDITIONS) && gates.enabled(DEVICE_STATUS),
            list_attributes: gates.enabled(LIST_ATTRIBUTES),
        }
    }
}
