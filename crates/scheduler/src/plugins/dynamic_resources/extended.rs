//! Extended resources of a pod that devices stand for (KEP-5004): one claim for all of them, which the scheduler makes itself
//! once it has chosen a node. What it asks for depends on the node, as some list such a resource themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Container, ContainerExtendedResourceRequest, Pod, PodExtendedResourceClaimStatus};
use api_types::resource_v1::constants::device_allocation_mode::EXACT_COUNT;
use api_types::resource_v1::constants::{EXTENDED_RESOURCE_CLAIM, EXTENDED_RESOURCE_CLAIM_ANNOTATION};
use api_types::resource_v1::{DeviceRequest, ExactDeviceRequest, ResourceClaim};
use component_helpers::owners::controller_reference;
use component_helpers::pod_state::is_sidecar;
use component_helpers::resource_names::can_be_devices;

use super::tracker::Tracker;
use crate::extended_resources::ExtendedResources;
use crate::framework::Status;
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;

/// The name of the claim while it is in memory only.
const IN_MEMORY: &str = "<extended-resources>";

/// What a pod asks for by names that devices may stand for.
#[derive(Clone)]
pub(super) struct Extended {
    /// Every such name, with the class that it stands for, if any.
    resources: BTreeMap<Arc<str>, Option<String>>,
    /// The claim on nodes that list nothing of it themselves.
    whole: Arc<SpecialClaim>,
    /// One that the pod has from an earlier attempt.
    pub(super) earlier: Option<Arc<ResourceClaim>>,
}

/// The claim for the extended resources of a pod on a node.
#[derive(Debug)]
pub(super) struct SpecialClaim {
    pub(super) claim: ResourceClaim,
    /// Which container has which request.
    pub(super) mappings: Vec<ContainerExtendedResourceRequest>,
}

impl Extended {
    /// What a pod asks for; none where no class stands for any of it.
    pub(super) fn of(pod: &PodInfo, names: &ExtendedResources, claims: &Tracker) -> Option<Self> {
        let asked = pod.request.scalars.iter().filter(|(name, amount)| *amount != 0 && can_be_devices(name));
        let resources: BTreeMap<_, _> = asked
            .map(|(name, _)| (Arc::clone(name), names.class_of(name).map(|class| class.metadata.name.clone())))
            .collect();
        if resources.values().all(Option::is_none) {
            return None;
        }
        let by_devices = resources.iter().filter_map(|(name, class)| Some((&**name, class.as_deref()?)));
        let whole = Arc::new(SpecialClaim::of(&pod.pod, by_devices));
        Some(Self { whole, earlier: claims.made_for(pod.uid()), resources })
    }

    /// The claim that the pod would have on a node; none where the node has all of it itself.
    ///
    /// # Errors
    /// Where the node has some of it in no way.
    pub(super) fn on(&self, pod: &Pod, node: NodeView<'_>) -> Result<Option<Arc<SpecialClaim>>, Status> {
        if self.earlier.is_some() {
            return Err(Status::unresolvable("cannot schedule extended resource claim"));
        }
        let mut by_devices = BTreeMap::new();
        let mut by_node = 0;
        for (name, class) in &self.resources {
            match class {
                Some(class) if node.allocatable.scalar(name) == 0 => drop(by_devices.insert(&**name, class.as_str())),
                _ if node.node.status.allocatable.contains_key(&**name) => by_node += 1,
                _ => return Err(Status::unresolvable("cannot fit resource")),
            }
        }
        if by_devices.is_empty() {
            return Ok(None);
        }
        Ok(Some(if by_node == 0 { Arc::clone(&self.whole) } else { Arc::new(SpecialClaim::of(pod, by_devices)) }))
    }
}

impl SpecialClaim {
    /// The claim for resources, each with its class.
    pub(super) fn of<'a>(pod: &Pod, resources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut requests, mut mappings) = (Vec::new(), Vec::new());
        for (resource, class) in resources {
            let mut shares = Shares { pod, resource, requests: Vec::new(), mappings: Vec::new() };
            shares.fill();
            mappings.append(&mut shares.mappings);
            requests.extend(shares.requests.into_iter().map(|own| DeviceRequest {
                name: own.name,
                exactly: Some(ExactDeviceRequest {
                    device_class_name: class.to_owned(),
                    allocation_mode: EXACT_COUNT.to_owned(),
                    count: own.count,
                    ..ExactDeviceRequest::default()
                }),
                ..DeviceRequest::default()
            }));
        }
        requests.sort_by(|one, other| one.name.cmp(&other.name));
        let mut claim = ResourceClaim::default();
        claim.metadata.namespace.clone_from(&pod.metadata.namespace);
        claim.metadata.name = IN_MEMORY.to_owned();
        claim.spec.devices.requests = requests;
        Self { claim, mappings }
    }

    /// The claim as it is made.
    pub(super) fn to_be_made(&self, pod: &Pod) -> ResourceClaim {
        let metadata = ObjectMeta {
            namespace: pod.metadata.namespace.clone(),
            generate_name: format!("{}-extended-resources-", pod.metadata.name),
            annotations: [(EXTENDED_RESOURCE_CLAIM_ANNOTATION.to_owned(), EXTENDED_RESOURCE_CLAIM.to_owned())].into(),
            owner_references: vec![controller_reference(pod)],
            ..ObjectMeta::default()
        };
        ResourceClaim { metadata, spec: self.claim.spec.clone(), ..ResourceClaim::default() }
    }

    /// What the pod's status tells of the claim once it is made.
    pub(super) fn status(&self, made: &ResourceClaim) -> PodExtendedResourceClaimStatus {
        PodExtendedResourceClaimStatus {
            request_mappings: self.mappings.clone(),
            resource_claim_name: made.metadata.name.clone(),
        }
    }
}

/// How the containers of a pod share the devices that an extended resource stands for.
struct Shares<'a> {
    pod: &'a Pod,
    resource: &'a str,
    requests: Vec<Share>,
    mappings: Vec<ContainerExtendedResourceRequest>,
}

/// Devices that are asked for together.
struct Share {
    name: String,
    count: i64,
    /// The place of the container that they are for.
    container: usize,
}

impl Shares<'_> {
    /// Containers that run beside each other have devices of their own. Init containers that end take those that are not in
    /// use yet, and what they need beyond that they share, as they run one after the other.
    fn fill(&mut self) {
        let pod = self.pod;
        let init = pod.spec.init_containers.iter().map(|container| (container, is_sidecar(container)));
        let all: Vec<_> = init.chain(pod.spec.containers.iter().map(|container| (container, true))).collect();
        for (place, (container, _)) in all.iter().enumerate().filter(|(_, (_, stays))| *stays) {
            let count = self.asked(container);
            if count > 0 {
                let name = self.ask(place, container, count);
                self.map(container, &name);
            }
        }
        let mut short: Vec<(usize, &Container, i64)> = Vec::new();
        for (place, (container, _)) in all.iter().enumerate().filter(|(_, (_, stays))| !*stays) {
            let left = self.take_later(place, container);
            if left > 0 {
                short.push((place, container, left));
            }
        }
        let Some((place, largest, count)) = short.iter().rev().max_by_key(|(.., left)| *left).copied() else { return };
        let name = self.ask(place, largest, count);
        for (_, container, _) in short {
            self.map(container, &name);
        }
    }

    fn asked(&self, container: &Container) -> i64 {
        container.resources.requests.get(self.resource).map_or(0, api_machinery::quantity::Quantity::value)
    }

    /// Takes the devices of containers that start later; how many are missing then.
    fn take_later(&mut self, place: usize, container: &Container) -> i64 {
        let mut left = self.asked(container);
        let later = self.requests.iter().filter(|own| own.container >= place);
        let mut taken = Vec::new();
        for own in later {
            if left <= 0 {
                break;
            }
            left -= own.count;
            taken.push(own.name.clone());
        }
        for name in taken {
            self.map(container, &name);
        }
        left
    }

    /// Asks for devices in the name of a container: its place, and the resource's among those that it asks for.
    fn ask(&mut self, container: usize, of: &Container, count: i64) -> String {
        let place = of.resources.requests.keys().position(|own| own == self.resource).unwrap_or(0);
        let name = format!("container-{container}-request-{place}");
        self.requests.push(Share { name: name.clone(), count, container });
        name
    }

    fn map(&mut self, container: &Container, request: &str) {
        self.mappings.push(ContainerExtendedResourceRequest {
            container_name: container.name.clone(),
            resource_name: self.resource.to_owned(),
            request_name: request.to_owned(),
        });
    }
}
