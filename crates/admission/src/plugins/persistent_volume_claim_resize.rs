//! PersistentVolumeClaimResize: only a bound claim grows, and only where its class says that volumes can.

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::PersistentVolumeClaim;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;
use component_helpers::pod_requests::amount;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PersistentVolumeClaimResize",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&StorageClass::TYPE],
    configuration: None,
    build: |_| Box::new(ClaimResize),
};

struct ClaimResize;

fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION).map(String::as_str);
    annotated.or(claim.spec.storage_class_name.as_deref()).unwrap_or_default()
}

fn can_grow(cx: &Context, claim: &PersistentVolumeClaim, old: &PersistentVolumeClaim) -> bool {
    let class = class_of(claim);
    let grows = || {
        let found = cx.lookup.get::<StorageClass>("", class);
        found.is_some_and(|own| own.allow_volume_expansion == Some(true))
    };
    !class.is_empty() && class == class_of(old) && grows()
}

#[async_trait]
impl Plugin for ClaimResize {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.is("", "persistentvolumeclaims")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (Some(object), Some(old)) = (object, old) else { return Ok(()) };
        let (Some(claim), Some(old)) = (object.downcast_ref::<PersistentVolumeClaim>(), old.downcast_ref()) else {
            return Ok(());
        };
        let size = |claim: &PersistentVolumeClaim| amount(&claim.spec.resources.requests, "storage");
        if size(claim) <= size(old) {
            return Ok(());
        }
        if old.status.phase != "Bound" {
            return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
        }
        if can_grow(cx, claim, old) {
            return Ok(());
        }
        Err(attributes.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
             resize",
        ))
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::storage_v1::StorageClass;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn claim(size: &str, class: &str, phase: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        claim.spec.resources.requests.insert("storage".into(), Quantity::parse(size).unwrap());
        claim.spec.storage_class_name = Some(class.to_owned());
        claim.status.phase = phase.into();
        claim
    }

    fn class(name: &str, allow_volume_expansion: Option<bool>) -> StorageClass {
        let mut class = StorageClass { allow_volume_expansion, ..StorageClass::default() };
        class.metadata.name = name.into();
        class
    }

    #[tokio::test]
    async fn only_what_can_grow_grows() {
        let storage_classes = vec![class("grows", Some(true)), class("stays", Some(false)), class("silent", None)];
        let fixture = Fixture::default().with(storage_classes);
        let update = Attributes { operation: Operation::Update, ..create("", "persistentvolumeclaims") };
        let (bound, fixed) = (
            "Only bound persistent volume claims can be expanded",
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
             resize",
        );
        let annotated = |size: &str| {
            let mut claim = claim(size, "", "Bound");
            claim.metadata.annotations.insert(BETA_STORAGE_CLASS_ANNOTATION.into(), "grows".into());
            claim
        };
        for (old, new, expected) in [
            (claim("1Gi", "grows", "Bound"), claim("2Gi", "grows", "Bound"), None),
            (claim("1Gi", "stays", "Pending"), claim("1024Mi", "stays", "Pending"), None),
            (claim("2Gi", "stays", "Bound"), claim("1Gi", "stays", "Bound"), None),
            (claim("1Gi", "grows", "Pending"), claim("2Gi", "grows", "Bound"), Some(bound)),
            (claim("1Gi", "grows", "Lost"), claim("2Gi", "grows", "Lost"), Some(bound)),
            (claim("1Gi", "stays", "Bound"), claim("2Gi", "stays", "Bound"), Some(fixed)),
            (claim("1Gi", "silent", "Bound"), claim("2Gi", "silent", "Bound"), Some(fixed)),
            (claim("1Gi", "unknown", "Bound"), claim("2Gi", "unknown", "Bound"), Some(fixed)),
            (claim("1Gi", "", "Bound"), claim("2Gi", "", "Bound"), Some(fixed)),
            (claim("1Gi", "stays", "Bound"), claim("2Gi", "grows", "Bound"), Some(fixed)),
            (annotated("1Gi"), annotated("2Gi"), None),
        ] {
            let outcome = fixture.validate_update(&ENTRY, &update, &new, &old).await;
            let text = outcome.map_err(|error| (error.code, error.message));
            let expected = expected
                .map_or(Ok(()), |text| Err((403, format!("persistentvolumeclaims \"x\" is forbidden: {text}"))));
            assert_eq!(text, expected, "{old:?} {new:?}");
        }
    }
}
