//! What a slice looks like apart from its endpoints: name, owner, labels, ports.

use std::collections::BTreeMap;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_types::core_v1::constants::IS_HEADLESS_SERVICE;
use api_types::core_v1::{Pod, Service};
use api_types::discovery_v1::constants::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use api_types::discovery_v1::{EndpointPort, EndpointSlice};

use super::MANAGER;
use crate::network::backends::{Family, is_headless, target_port};

/// The ports of a slice as a set: slices with the same ones belong together.
pub(in crate::network) type PortKey = Vec<(String, String, i32, String)>;

/// The key of a list of ports; their order does not matter.
pub(in crate::network) fn port_key(ports: &[EndpointPort]) -> PortKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = |port: &EndpointPort| {
        (text(&port.name), text(&port.protocol), port.port.unwrap_or_default(), text(&port.app_protocol))
    };
    let mut key: PortKey = ports.iter().map(key).collect();
    key.sort();
    key
}

/// The service's ports as this pod offers them; those that it has not are left out.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let port = |port: &api_types::core_v1::ServicePort| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol.clone()),
            port: Some(target_port(pod, port)?),
            app_protocol: port.app_protocol.clone(),
        })
    };
    service.spec.ports.iter().filter_map(port).collect()
}

/// The service's labels and our own.
pub(super) fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone();
    labels.remove(IS_HEADLESS_SERVICE);
    labels.insert(LABEL_SERVICE_NAME.to_owned(), service.metadata.name.clone());
    labels.insert(LABEL_MANAGED_BY.to_owned(), MANAGER.to_owned());
    if is_headless(service) {
        labels.insert(IS_HEADLESS_SERVICE.to_owned(), String::new());
    }
    labels
}

/// A slice without endpoints.
pub(super) fn empty_slice(service: &Service, family: Family, ports: Vec<EndpointPort>) -> EndpointSlice {
    let metadata = ObjectMeta {
        generate_name: format!("{}-", service.metadata.name),
        namespace: service.metadata.namespace.clone(),
        labels: labels(service),
        owner_references: vec![owner(service)],
        ..ObjectMeta::default()
    };
    EndpointSlice { metadata, address_type: family.name().to_owned(), ports, ..EndpointSlice::default() }
}

fn owner(service: &Service) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: service.metadata.name.clone(),
        uid: service.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether the slice belongs to this service and not to an earlier one of its name.
pub(super) fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    let owners = &slice.metadata.owner_references;
    owners.iter().any(|owner| owner.kind == "Service" && owner.api_version == "v1" && owner.uid == service.metadata.uid)
}
