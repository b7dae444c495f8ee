//! CertificateApproval, CertificateSigning and ClusterTrustBundleAttest: who approves or signs a request, or says which
//! certificates verify those of a signer, needs the right to do so for the signer.

use api_machinery::object::Object;
use api_machinery::reflect::equal;
use api_machinery::status::ApiError;
use api_types::certificates_v1::CertificateSigningRequest;
use api_types::certificates_v1beta1::ClusterTrustBundle;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry, ResourceAttributes};

pub(super) const APPROVAL: PluginEntry = PluginEntry {
    name: "CertificateApproval",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(Approval),
};
pub(super) const SIGNING: PluginEntry = PluginEntry {
    name: "CertificateSigning",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(Signing),
};
pub(super) const ATTEST: PluginEntry = PluginEntry {
    name: "ClusterTrustBundleAttest",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(Attest),
};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";

struct Approval;
struct Signing;
struct Attest;

/// Whether the user may do this for the signer, or for all signers of its domain.
async fn may(cx: &Context, attributes: &Attributes, verb: &str, signer: &str) -> bool {
    let domain = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
    for name in [signer].into_iter().chain(domain.as_deref()) {
        let access =
            ResourceAttributes { verb, group: GROUP, resource: "signers", name, ..ResourceAttributes::default() };
        if cx.lookup.is_allowed(&attributes.user, &access).await {
            return true;
        }
    }
    false
}

#[async_trait]
impl Plugin for Approval {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.is_sub(GROUP, REQUESTS, "approval")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        _: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(old) = old.and_then(|old| old.downcast_ref::<CertificateSigningRequest>()) else { return Ok(()) };
        let signer = &old.spec.signer_name;
        if may(cx, attributes, "approve", signer).await {
            return Ok(());
        }
        Err(attributes.forbidden(format_args!("user not permitted to approve requests with signerName {signer:?}")))
    }
}

#[async_trait]
impl Plugin for Signing {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.is_sub(GROUP, REQUESTS, "status")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let read = |object: Option<&'_ dyn Object>| {
            let request = object?.downcast_ref::<CertificateSigningRequest>()?;
            Some((request.status.certificate.clone(), request.status.conditions.clone(), request.spec.clone()))
        };
        let (Some(new), Some(old)) = (read(object), read(old)) else { return Ok(()) };
        let signer = &old.2.signer_name;
        if (new.0 == old.0 && new.1 == old.1) || may(cx, attributes, "sign", signer).await {
            return Ok(());
        }
        Err(attributes.forbidden(format_args!("user not permitted to sign requests with signerName {signer:?}")))
    }
}

/// Whether nothing changed but what the garbage collector changes.
fn only_collected(new: &ClusterTrustBundle, old: &ClusterTrustBundle) -> bool {
    let mut old = old.clone();
    old.metadata.owner_references.clone_from(&new.metadata.owner_references);
    old.metadata.finalizers.clone_from(&new.metadata.finalizers);
    old.metadata.managed_fields.clone_from(&new.metadata.managed_fields);
    old.metadata.resource_version.clone_from(&new.metadata.resource_version);
    equal(new, &old)
}

#[async_trait]
impl Plugin for Attest {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update) && attributes.is_sub(GROUP, BUNDLES, "")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(new) = object.and_then(|own| own.downcast_ref::<ClusterTrustBundle>()) else { return Ok(()) };
        let old = old.and_then(|own| own.downcast_ref::<ClusterTrustBundle>());
        let signer = &new.spec.signer_name;
        if signer.is_empty() || old.is_some_and(|old| only_collected(new, old)) {
            return Ok(());
        }
        if may(cx, attributes, "attest", signer).await {
            return Ok(());
        }
        Err(attributes.forbidden(format_args!("user not permitted to attest for signerName {signer:?}")))
    }
}

#[cfg(test)]
mod tests {
    use api_types::certificates_v1::CertificateSigningRequestCondition;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn update(subresource: &str) -> Attributes {
        let (operation, subresource) = (Operation::Update, subresource.to_owned());
        Attributes { operation, subresource, ..create(GROUP, REQUESTS) }
    }

    #[tokio::test]
    async fn rights_are_by_signer() {
        let mut old = CertificateSigningRequest::default();
        old.spec.signer_name = "example.com/one".into();
        let mut new = old.clone();
        new.status.conditions.push(CertificateSigningRequestCondition::default());
        for (granted, fits) in [("example.com/one", true), ("example.com/*", true), ("example.com/two", false)] {
            for (entry, verb, subresource) in [(&APPROVAL, "approve", "approval"), (&SIGNING, "sign", "status")] {
                let fixture = Fixture { allowed: vec![(verb, granted)], ..Fixture::default() };
                let outcome = fixture.validate_update(entry, &update(subresource), &new, &old).await;
                assert_eq!(outcome.is_ok(), fits, "{verb} {granted}: {outcome:?}");
            }
        }
        let nobody = Fixture::default();
        nobody.validate_update(&SIGNING, &update("status"), &old, &old).await.unwrap();
    }

    #[tokio::test]
    async fn bundles_of_a_signer_are_attested() {
        let attributes = Attributes { operation: Operation::Update, ..create(GROUP, BUNDLES) };
        let mut old = ClusterTrustBundle::default();
        old.spec.signer_name = "example.com/one".into();
        let mut changed = old.clone();
        changed.spec.trust_bundle = "x".into();
        let mut collected = old.clone();
        collected.metadata.finalizers.push("example.com/f".into());
        let mut unsigned = changed.clone();
        unsigned.spec.signer_name.clear();
        let nobody = Fixture::default();
        let somebody = Fixture { allowed: vec![("attest", "example.com/*")], ..Fixture::default() };
        for (fixture, new, fits) in [
            (&nobody, &changed, false),
            (&nobody, &collected, true),
            (&nobody, &unsigned, true),
            (&somebody, &changed, true),
        ] {
            let outcome = fixture.validate_update(&ATTEST, &attributes, new, &old).await;
            assert_eq!(outcome.is_ok(), fits, "{new:?}: {outcome:?}");
        }
    }
}
