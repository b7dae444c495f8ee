//! CertificateSubjectRestriction: nobody becomes a superuser by a certificate that the cluster signs for clients.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::certificates_v1::CertificateSigningRequest;
use async_trait::async_trait;
use pki::CertificateRequest;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "CertificateSubjectRestriction",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(SubjectRestriction),
};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const SUPERUSERS: &str = "system:masters";

struct SubjectRestriction;

#[async_trait]
impl Plugin for SubjectRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is("certificates.k8s.io", "certificatesigningrequests")
    }

    async fn validate(
        &self,
        _: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let request = object.and_then(|object| object.downcast_ref::<CertificateSigningRequest>());
        let Some(request) = request.filter(|request| request.spec.signer_name == CLIENT_SIGNER) else { return Ok(()) };
        let parsed = CertificateRequest::from_pem(&request.spec.request.0)
            .map_err(|error| attributes.forbidden(format_args!("failed to parse CSR: {error}")))?;
        if parsed.subject().organizations().iter().any(|organization| organization == SUPERUSERS) {
            return Err(attributes
                .forbidden(format_args!("use of {CLIENT_SIGNER} signer with {SUPERUSERS} group is not allowed")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pki::{AltNames, KeyAlgorithm, Name, PrivateKey};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn request(groups: &[&str]) -> Vec<u8> {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        let made = CertificateRequest::create(&key, &Name::new("jane", &groups), &AltNames::default());
        made.unwrap().to_pem().into_bytes()
    }

    #[tokio::test]
    async fn the_client_signer_makes_no_superusers() {
        let superuser = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
        for (signer, pem, expected) in [
            (CLIENT_SIGNER, request(&["developers"]), None),
            (CLIENT_SIGNER, request(&["developers", "system:masters"]), Some(superuser)),
            (CLIENT_SIGNER, b"nonsense".to_vec(), Some("failed to parse CSR: ")),
            ("example.com/own", request(&["system:masters"]), None),
            ("example.com/own", b"nonsense".to_vec(), None),
        ] {
            let mut object = CertificateSigningRequest::default();
            object.spec.signer_name = signer.into();
            object.spec.request.0 = pem;
            let attributes = create("certificates.k8s.io", "certificatesigningrequests");
            let outcome = Fixture::default().validate(&ENTRY, &attributes, &object).await;
            match (outcome, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(text)) => {
                    let head = "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: ";
                    assert!(error.code == 403 && error.message.starts_with(&format!("{head}{text}")), "{error:?}");
                }
                (outcome, _) => panic!("{signer}: {outcome:?}"),
            }
        }
    }
}
