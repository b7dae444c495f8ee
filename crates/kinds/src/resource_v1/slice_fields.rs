//! The fields of slices that came with features.

use api_types::resource_v1::{Device, DeviceAttribute, ResourceSlice};

use crate::gated::Gated;
use crate::gates;

fn any(slice: &ResourceSlice, used: fn(&Device) -> bool) -> bool {
    slice.spec.devices.iter().any(used)
}

fn each(slice: &mut ResourceSlice, change: fn(&mut Device)) {
    slice.spec.devices.iter_mut().for_each(change);
}

fn is_list(attribute: &DeviceAttribute) -> bool {
    let DeviceAttribute { ints, bools, strings, versions, .. } = attribute;
    !(ints.is_empty() && bools.is_empty() && strings.is_empty() && versions.is_empty())
}

/// All of them.
pub(super) const OF_SLICE: &[Gated<ResourceSlice>] = &[
    Gated {
        features: &[gates::DEVICE_TAINTS],
        used: |slice| any(slice, |device| !device.taints.is_empty()),
        drop: |slice| each(slice, |device| device.taints.clear()),
    },
    Gated {
        features: &[gates::PARTITIONABLE_DEVICES],
        used: |slice| {
            let spec = &slice.spec;
            let own = !spec.shared_counters.is_empty() || spec.per_device_node_selection.is_some();
            own || any(slice, |device| {
                let Device { consumes_counters, node_name, node_selector, all_nodes, .. } = device;
                !consumes_counters.is_empty() || node_name.is_some() || node_selector.is_some() || all_nodes.is_some()
            })
        },
        drop: |slice| {
            slice.spec.shared_counters.clear();
            slice.spec.per_device_node_selection = None;
            each(slice, |device| {
                device.consumes_counters.clear();
                (device.node_name, device.node_selector, device.all_nodes) = (None, None, None);
            });
        },
    },
    Gated {
        features: &[gates::CONSUMABLE_CAPACITY],
        used: |slice| {
            any(slice, |device| {
                let policies = device.capacity.values().any(|own| own.request_policy.is_some());
                device.allow_multiple_allocations.is_some() || policies
            })
        },
        drop: |slice| {
            each(slice, |device| {
                device.allow_multiple_allocations = None;
                device.capacity.values_mut().for_each(|own| own.request_policy = None);
            });
        },
    },
    Gated {
        features: &[gates::BINDING_CONDITIONS, gates::DEVICE_STATUS],
        used: |slice| {
            any(slice, |device| {
                let waits = !device.binding_conditions.is_empty() || !device.binding_failure_conditions.is_empty();
                waits || device.binds_to_node.is_some()
            })
        },
        drop: |slice| {
            each(slice, |device| {
                device.binds_to_node = None;
                device.binding_conditions.clear();
                device.binding_failure_conditions.clear();
            });
        },
    },
    Gated {
        features: &[gates::LIST_ATTRIBUTES],
        used: |slice| any(slice, |device| device.attributes.values().any(is_list)),
        drop: |slice| {
            each(slice, |device| {
                for DeviceAttribute { ints, bools, strings, versions, .. } in device.attributes.values_mut() {
                    (*ints, *bools) = (Vec::new(), Vec::new());
                    (*strings, *versions) = (Vec::new(), Vec::new());
                }
            });
        },
    },
    Gated {
        features: &[gates::NODE_ALLOCATABLE],
        used: |slice| any(slice, |device| !device.node_allocatable_resource_mappings.is_empty()),
        drop: |slice| each(slice, |device| device.node_allocatable_resource_mappings.clear()),
    },
];
