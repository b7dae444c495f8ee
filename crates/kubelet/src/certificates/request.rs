//! One certificate by CertificateSigningRequest.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_types::certificates_v1::CertificateSigningRequest;
use client::{Client, ClientError, WatchEvent};
use pki::{AltNames, Certificate, CertificateRequest, KeyAlgorithm, Name, PrivateKey};

use super::CertificateError;
use super::store::Pair;
use crate::metrics::KubeletMetrics;

/// How long a signature is waited for.
pub(super) const SIGNATURE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Pause before a broken watch is begun again.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// What is asked for.
pub(super) struct Template {
    pub(super) signer: &'static str,
    pub(super) subject: Name,
    pub(super) alt_names: AltNames,
    /// `client auth` or `server auth`.
    pub(super) usage: &'static str,
    /// Where attempts that fail are counted.
    pub(super) metrics: Arc<KubeletMetrics>,
}

impl Template {
    /// An attempt to fulfil it failed.
    pub(super) fn count_failure(&self) {
        let family = match self.usage {
            "client auth" => &self.metrics.client_certificate_errors,
            _ => &self.metrics.serving_certificate_errors,
        };
        family.with(&[]).inc();
    }
}

/// Makes a key, asks for its certificate and waits until it is there.
pub(super) async fn obtain(client: &Client, template: &Template) -> Result<Pair, CertificateError> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
    let request = CertificateRequest::create(&key, &template.subject, &template.alt_names)?;
    let mut object = CertificateSigningRequest::default();
    object.metadata.generate_name = "csr-".to_owned();
    object.spec.request = request.to_pem().into_bytes().into();
    object.spec.signer_name = template.signer.to_owned();
    object.spec.usages = vec!["digital signature".to_owned(), template.usage.to_owned()];
    let made = client.all::<CertificateSigningRequest>().create(&object).await?;
    tracing::info!(name = made.metadata.name, signer = template.signer, "Certificate signing request created, waiting");
    let wait = signed(client, &made.metadata.name);
    let chain = tokio::time::timeout(SIGNATURE_TIMEOUT, wait).await.map_err(|_| CertificateError::Timeout)??;
    Certificate::one_from_pem(&chain)?;
    Ok(Pair { chain, key: key.to_pem()?.into_bytes() })
}

/// Waits until a request is signed or refused, whatever happens to the watch.
async fn signed(client: &Client, name: &str) -> Result<Vec<u8>, CertificateError> {
    loop {
        match follow(client, name).await {
            Ok(Some(signed)) => return signed,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, name, "Watching a certificate signing request failed"),
        }
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

/// What the signer made of it: a chain, or why not.
type Signed = Result<Vec<u8>, CertificateError>;

async fn follow(client: &Client, name: &str) -> Result<Option<Signed>, ClientError> {
    let api = client.all::<CertificateSigningRequest>();
    let mut options = ListOptions { field_selector: format!("metadata.name={name}"), ..ListOptions::default() };
    let list = api.list(&options).await?;
    if let Some(signed) = list.items.iter().find_map(signed_or_refused) {
        return Ok(Some(signed));
    }
    options.resource_version = list.metadata.resource_version;
    let mut stream = api.watch(&options).await?;
    while let Some(event) = stream.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                if let Some(signed) = signed_or_refused(&object) {
                    return Ok(Some(signed));
                }
            }
            WatchEvent::Error(error) => return Err(ClientError::Api(error)),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark { .. } => {}
        }
    }
    Ok(None)
}

fn signed_or_refused(object: &CertificateSigningRequest) -> Option<Signed> {
    let refused = |type_: &str, refusal: &'static str| {
        let condition = object.status.conditions.iter().find(|condition| condition.type_ == type_)?;
        let (reason, message) = (condition.reason.clone(), condition.message.clone());
        Some(Err(CertificateError::Refused { refusal, reason, message }))
    };
    let approved = object.status.conditions.iter().any(|condition| condition.type_ == "Approved");
    refused("Denied", "denied")
        .or_else(|| refused("Failed", "failed"))
        .or_else(|| (approved && !object.status.certificate.is_empty()).then(|| Ok(object.status.certificate.to_vec())))
}
