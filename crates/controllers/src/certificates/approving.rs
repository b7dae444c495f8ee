//! Approves requests of kubelets for their client certificates, where the requestor may have them.

use std::sync::Arc;

use api_types::authorization_v1::{ResourceAttributes, SubjectAccessReview};
use api_types::certificates_v1::CertificateSigningRequest;
use api_types::certificates_v1::constants::KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME;
use api_types::certificates_v1::constants::request_condition_type::{APPROVED, DENIED};
use client::{Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use pki::CertificateRequest;

use super::{WORKERS, condition, has, rate_limit, rules};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "certificatesigningrequest-approving-controller",
    aliases: &["csrapproving"],
    gates: &[],
    identity: "certificate-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// One kind of request that is known.
struct Recognizer {
    /// What the requestor must be allowed to create, below `certificatesigningrequests`.
    subresource: &'static str,
    message: &'static str,
    /// Whether the requestor asks for itself.
    own: bool,
}

const RECOGNIZERS: &[Recognizer] = &[
    Recognizer {
        subresource: "selfnodeclient",
        message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
        own: true,
    },
    Recognizer {
        subresource: "nodeclient",
        message: "Auto approving kubelet client certificate after SubjectAccessReview.",
        own: false,
    },
];

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue_with("certificate", rate_limit());
    let requests = build.watch::<CertificateSigningRequest>().enqueue_self(&queue).informer();
    build.run(&queue, WORKERS, Arc::new(Approving { requests }));
    Ok(())
}

struct Approving {
    requests: Informer<CertificateSigningRequest>,
}

/// The recognizers that a request matches.
fn recognized(request: &CertificateSigningRequest) -> Result<Vec<&'static Recognizer>, ReconcileError> {
    let parsed = CertificateRequest::from_pem(&request.spec.request.0)
        .map_err(|error| ReconcileError::failed(format!("unable to parse csr {:?}: {error}", request.metadata.name)))?;
    let kubelet = request.spec.signer_name == KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME
        && rules::kubelet_client(&parsed, &request.spec.usages).is_ok();
    let own = request.spec.username == parsed.subject().common_name();
    Ok(RECOGNIZERS.iter().filter(|one| kubelet && (own || !one.own)).collect())
}

#[async_trait::async_trait]
impl Controller for Approving {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(request) = self.requests.get(key) else { return Ok(Next::Done) };
        if !request.status.certificate.0.is_empty() || has(&request, APPROVED) || has(&request, DENIED) {
            return Ok(Next::Done);
        }
        let matching = recognized(&request)?;
        for recognizer in &matching {
            if may(cx, &request, recognizer.subresource).await? {
                let mut approved = CertificateSigningRequest::clone(&request);
                let message = recognizer.message.to_owned();
                let holds = condition(APPROVED, "AutoApproved", message, api_machinery::time::Time::default());
                approved.status.conditions.push(holds);
                let requests = cx.client.all::<CertificateSigningRequest>();
                requests.update_part(&approved, "approval").await?;
                return Ok(Next::Done);
            }
        }
        if matching.is_empty() {
            return Ok(Next::Done);
        }
        // A role may be granted later, which no event tells.
        let tried: Vec<&str> = matching.iter().map(|one| one.subresource).collect();
        Err(ReconcileError::failed(format!(
            "recognized csr {:?} as [{}] but subject access review was not approved",
            key.name,
            tried.join(" ")
        )))
    }
}

async fn may(cx: &Cx, request: &CertificateSigningRequest, subresource: &str) -> Result<bool, ReconcileError> {
    let mut review = SubjectAccessReview::default();
    let (from, spec) = (&request.spec, &mut review.spec);
    spec.user.clone_from(&from.username);
    spec.uid.clone_from(&from.uid);
    spec.groups.clone_from(&from.groups);
    spec.extra.clone_from(&from.extra);
    spec.resource_attributes = Some(ResourceAttributes {
        group: "certificates.k8s.io".to_owned(),
        version: "*".to_owned(),
        resource: "certificatesigningrequests".to_owned(),
        subresource: subresource.to_owned(),
        verb: "create".to_owned(),
        ..ResourceAttributes::default()
    });
    Ok(cx.client.all::<SubjectAccessReview>().create(&review).await?.status.allowed)
}

#[cfg(test)]
mod tests {
    use api_machinery::reflect::ByteString;
    use pki::{AltNames, KeyAlgorithm, Name, PrivateKey};

    use super::*;

    #[test]
    fn kubelets_are_recognized() {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let name = Name::new("system:node:n", &["system:nodes".to_owned()]);
        let pem = CertificateRequest::create(&key, &name, &AltNames::default()).unwrap().to_pem();
        let request = |user: &str, signer: &str| {
            let mut request = CertificateSigningRequest::default();
            request.spec.request = ByteString(pem.clone().into_bytes());
            request.spec.username = user.into();
            request.spec.signer_name = signer.into();
            request.spec.usages = vec!["client auth".into(), "digital signature".into()];
            request
        };
        let kubelet = KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME;
        for (name, request, expected) in [
            ("for itself", request("system:node:n", kubelet), vec!["selfnodeclient", "nodeclient"]),
            ("with a token", request("system:bootstrap:abcdef", kubelet), vec!["nodeclient"]),
            ("another signer", request("system:node:n", "kubernetes.io/kubelet-serving"), vec![]),
        ] {
            let found: Vec<_> = recognized(&request).unwrap_or_default().iter().map(|one| one.subresource).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}
