//! What the cluster knows of the devices that a claim asks for.

use std::sync::Arc;

use api_machinery::meta::OwnerReference;
use api_machinery::object::Kind as _;
use api_machinery::status::{ApiError, reason};
use api_types::core_v1::Pod;
use api_types::resource_v1::{DeviceClass, ResourceClaim};
use component_helpers::owners::{controller_of, is_controlled_by};
use component_helpers::quota::ExtendedDevices;
use component_helpers::resource_claims::is_for_extended_resources;

use crate::Context;

/// What concerns one claim.
pub(super) struct Gathered {
    classes: Vec<Arc<DeviceClass>>,
    /// The pod that the claim says it was made for, and all claims of its namespace.
    pod: Option<(Arc<Pod>, Vec<Arc<ResourceClaim>>)>,
}

impl Gathered {
    /// Looks up what concerns a claim in a namespace; nothing where the server does not have the version in which classes name
    /// extended resources. A cache that is still filling is waited for: what it does not show would not be charged.
    ///
    /// # Errors
    /// Where the cluster cannot be looked at.
    pub(super) async fn for_claim(
        cx: &Context,
        namespace: &str,
        claim: &ResourceClaim,
    ) -> Result<Option<Self>, ApiError> {
        if !cx.lookup.is_served(DeviceClass::TYPE.place()) {
            return Ok(None);
        }
        let classes = cx.lookup.list_filled("").await?;
        let owner = controller_of(&claim.metadata).filter(|_| is_for_extended_resources(claim));
        let pod = match owner {
            Some(owner) => pod(cx, namespace, owner).await?,
            None => None,
        };
        let pod = match pod {
            Some(pod) => Some((pod, cx.lookup.list_filled(namespace).await?)),
            None => None,
        };
        Ok(Some(Self { classes, pod }))
    }
}

/// The pod that owns a claim, which may be newer than the cache.
async fn pod(cx: &Context, namespace: &str, owner: &OwnerReference) -> Result<Option<Arc<Pod>>, ApiError> {
    let cached = cx.lookup.get::<Pod>(namespace, &owner.name).filter(|pod| pod.metadata.uid == owner.uid);
    if cached.is_some() {
        return Ok(cached);
    }
    match cx.lookup.get_live(namespace, &owner.name).await {
        Ok(pod) => Ok(Some(pod)),
        Err(error) if error.reason == reason::NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

impl ExtendedDevices for Gathered {
    fn resource_of(&self, class: &str) -> Option<String> {
        self.classes.iter().find(|own| own.metadata.name == class)?.spec.extended_resource_name.clone()
    }

    fn is_named(&self, resource: &str) -> bool {
        self.classes.iter().any(|own| own.spec.extended_resource_name.as_deref() == Some(resource))
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let (pod, _) = self.pod.as_ref()?;
        let is_it = pod.metadata.namespace == namespace && pod.metadata.name == name;
        is_it.then(|| Arc::clone(pod))
    }

    fn claims_of(&self, pod: &Pod) -> Vec<Arc<ResourceClaim>> {
        let all = self.pod.iter().flat_map(|(_, claims)| claims);
        all.filter(|claim| is_controlled_by(&claim.metadata, &pod.metadata.uid)).cloned().collect()
    }
}
