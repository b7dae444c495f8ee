//! Claims for devices, and the classes that say by which extended resources their devices can be had, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_machinery::gvk::GroupVersion;
use api_machinery::object::Kind as _;
use api_types::core_v1::Pod;
use api_types::resource_v1::{DeviceClass, ResourceClaim};
use client::{Discovered, Informer, ObjectKey, ServedResource};
use component_base::shared_gates::EXTENDED_RESOURCE;
use component_helpers::quota::ExtendedDevices;
use controller::{Build, CONTROLLER_UID, controller_uid, is_controlled_by};

/// Index of classes by the extended resource that they name.
const BY_RESOURCE: &str = "extended-resource";

/// What is known of devices. A server need not have them: nobody waits for their informers before it counts.
pub(super) struct Devices {
    pub(super) claims: Informer<ResourceClaim>,
    are_absent: AtomicBool,
    /// None where devices are no extended resources.
    extended: Option<Arc<Extended>>,
}

struct Extended {
    classes: Informer<DeviceClass>,
    claims: Informer<ResourceClaim>,
    pods: Informer<Pod>,
}

impl Devices {
    pub(super) fn new(build: &Build<'_>, pods: &Informer<Pod>) -> Self {
        let informers = build.informers();
        let claims = informers.of::<ResourceClaim>();
        let extended = build.gates().enabled(EXTENDED_RESOURCE).then(|| {
            claims.add_index(CONTROLLER_UID, |claim| controller_uid(&claim.metadata));
            let classes = informers.of::<DeviceClass>();
            classes.add_index(BY_RESOURCE, |class| class.spec.extended_resource_name.clone().into_iter().collect());
            Arc::new(Extended { classes, claims: claims.clone(), pods: pods.clone() })
        });
        Self { claims, are_absent: AtomicBool::new(false), extended }
    }

    /// Whether claims can be counted.
    pub(super) fn have_synced(&self) -> bool {
        self.claims.has_synced() && self.extended.as_ref().is_none_or(|extended| extended.classes.has_synced())
    }

    /// Sees whether the server has claims. Where it does not say, they are waited for.
    pub(super) fn look(&self, discovered: &Discovered) {
        let [group, version, resource] = ResourceClaim::TYPE.place();
        let is_it = |served: &ServedResource| {
            let own = &served.info.resource;
            own.group == group && own.version == version && own.resource == resource
        };
        let is_its = |failed: &GroupVersion| failed.group == group && failed.version == version;
        let may_be_there =
            discovered.resources.iter().any(is_it) || discovered.failed.iter().any(|(version, _)| is_its(version));
        self.are_absent.store(!may_be_there, Ordering::Relaxed);
    }

    /// Whether the server was found not to have claims.
    pub(super) fn are_absent(&self) -> bool {
        self.are_absent.load(Ordering::Relaxed)
    }

    /// What quotas ask of devices that are extended resources.
    pub(super) fn extended(&self) -> Option<Arc<dyn ExtendedDevices>> {
        self.extended.clone().map(|extended| extended as Arc<dyn ExtendedDevices>)
    }
}

impl ExtendedDevices for Extended {
    fn resource_of(&self, class: &str) -> Option<String> {
        self.classes.get(&ObjectKey::cluster(class))?.spec.extended_resource_name.clone()
    }

    /// As long as classes are not known, any resource may be.
    fn is_named(&self, resource: &str) -> bool {
        !self.classes.has_synced() || !self.classes.by_index(BY_RESOURCE, resource).is_empty()
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods.get(&ObjectKey::new(namespace, name))
    }

    fn claims_of(&self, pod: &Pod) -> Vec<Arc<ResourceClaim>> {
        let mut owned = self.claims.by_index(CONTROLLER_UID, &pod.metadata.uid);
        owned.retain(|claim| is_controlled_by(&claim.metadata, &pod.metadata));
        owned
    }
}
