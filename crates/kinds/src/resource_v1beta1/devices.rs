//! ResourceSlice of resource.k8s.io/v1beta1: its names, and the way to the stored form and back.

use api_machinery::object::Kind;
use api_types::resource_v1 as stored;
use api_types::resource_v1beta1::{BasicDevice, Device, ResourceSlice, ResourceSliceSpec};

use super::INTRODUCED;
use crate::info::ResourceInfo;
use crate::other_form::OtherForm;
use crate::resource_v1::ResourceSliceRules;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> =
    ResourceInfo { version: ResourceSlice::TYPE.version, introduced: INTRODUCED, ..*ResourceSliceRules::INFO };

/// Slices of basic devices.
pub(super) struct FirstSlice;

impl OtherForm for FirstSlice {
    type Served = ResourceSlice;
    type Stored = ResourceSliceRules;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn to_stored(served: &ResourceSlice) -> stored::ResourceSlice {
        let spec = served.spec.clone();
        stored::ResourceSlice {
            metadata: served.metadata.clone(),
            spec: stored::ResourceSliceSpec {
                driver: spec.driver,
                pool: spec.pool,
                node_name: Some(spec.node_name).filter(|name| !name.is_empty()),
                node_selector: spec.node_selector,
                all_nodes: spec.all_nodes.then_some(true),
                devices: spec.devices.into_iter().map(stored_device).collect(),
                per_device_node_selection: spec.per_device_node_selection,
                shared_counters: spec.shared_counters,
            },
        }
    }

    fn to_served(from: &stored::ResourceSlice) -> ResourceSlice {
        let spec = from.spec.clone();
        ResourceSlice {
            metadata: from.metadata.clone(),
            spec: ResourceSliceSpec {
                driver: spec.driver,
                pool: spec.pool,
                node_name: spec.node_name.unwrap_or_default(),
                node_selector: spec.node_selector,
                all_nodes: spec.all_nodes.unwrap_or_default(),
                devices: spec.devices.into_iter().map(first_device).collect(),
                per_device_node_selection: spec.per_device_node_selection,
                shared_counters: spec.shared_counters,
            },
        }
    }
}

fn stored_device(device: Device) -> stored::Device {
    let basic = device.basic.unwrap_or_default();
    stored::Device {
        name: device.name,
        attributes: basic.attributes,
        capacity: basic.capacity,
        consumes_counters: basic.consumes_counters,
        node_name: basic.node_name,
        node_selector: basic.node_selector,
        all_nodes: basic.all_nodes,
        taints: basic.taints,
        binds_to_node: basic.binds_to_node,
        binding_conditions: basic.binding_conditions,
        binding_failure_conditions: basic.binding_failure_conditions,
        allow_multiple_allocations: basic.allow_multiple_allocations,
        node_allocatable_resource_mappings: basic.node_allocatable_resource_mappings,
    }
}

fn first_device(device: stored::Device) -> Device {
    let basic = BasicDevice {
        attributes: device.attributes,
        capacity: device.capacity,
        consumes_counters: device.consumes_counters,
        node_name: device.node_name,
        node_selector: device.node_selector,
        all_nodes: device.all_nodes,
        taints: device.taints,
        binds_to_node: device.binds_to_node,
        binding_conditions: device.binding_conditions,
        binding_failure_conditions: device.binding_failure_conditions,
        allow_multiple_allocations: device.allow_multiple_allocations,
        node_allocatable_resource_mappings: device.node_allocatable_resource_mappings,
    };
    Device { name: device.name, basic: Some(basic) }
}
