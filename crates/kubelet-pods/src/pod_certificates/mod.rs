//! Certificates of pods of their own: keys that are made here, and what signers say of them (KEP-4317, gate
//! `PodCertificateRequest`).
//!
//! A credential belongs to one source of a projected volume. It is looked after whenever the volume is: asked for, taken once
//! it is issued, and replaced in time. Keys are in memory and in the volume only; a kubelet that was restarted asks anew.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{Condition, ObjectMeta, OwnerReference};
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;
use api_types::certificates_v1beta1::constants::pod_certificate_condition::{DENIED, FAILED, ISSUED};
use api_types::certificates_v1beta1::{PodCertificateRequest, PodCertificateRequestSpec, PodCertificateRequestStatus};
use api_types::core_v1::{Pod, PodCertificateProjection, ServiceAccount};
use base::SharedRng;
use client::{Client, ClientError, object_reference};
use parking_lot::Mutex;
use pki::{AltNames, CertificateRequest, KeyAlgorithm, KeyError, Name, PrivateKey};

use crate::interfaces::{Events, Level, NodeView};
use crate::metrics::Counts;

/// Renewals of many pods are spread over this.
const JITTER: Duration = Duration::from_secs(5 * 60);
/// A request that is gone for so long is made anew, and a renewal that is so late is told.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The kinds of keys, by their names in the API.
const KEYS: [(&str, KeyAlgorithm); 6] = [
    ("RSA3072", KeyAlgorithm::Rsa3072),
    ("RSA4096", KeyAlgorithm::Rsa4096),
    ("ECDSAP256", KeyAlgorithm::EcdsaP256),
    ("ECDSAP384", KeyAlgorithm::EcdsaP384),
    ("ECDSAP521", KeyAlgorithm::EcdsaP521),
    ("ED25519", KeyAlgorithm::Ed25519),
];

/// Why there is no certificate, in upstream's words where it has some.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PodCertificateError {
    #[error("credential bundle is not issued yet")]
    NotIssued,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("unknown key type: {0:?}")]
    KeyType(String),
    #[error("while generating the key: {0}")]
    Key(#[from] KeyError),
    #[error("the node is not known yet")]
    NoNode,
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// What a signer decided for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PodCertificateRequest was permanently {how}: reason={reason:?} message={message:?}")]
pub(crate) struct Refusal {
    how: &'static str,
    reason: String,
    message: String,
}

/// A source of a projected volume: the pod's uid, the volume, the place among its sources.
pub(crate) type Place = (String, String, usize);

/// A key and its certificates, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) key: String,
    pub(crate) chain: String,
    /// When it is to be renewed, and when it ends.
    renewed_at: Time,
    not_after: Time,
    /// What was told of its age.
    told: Age,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Good,
    Overdue,
    Expired,
}

impl Age {
    fn at(renewed_at: Time, not_after: Time, now: Time) -> Self {
        match () {
            () if not_after <= now => Self::Expired,
            () if renewed_at + PATIENCE <= now => Self::Overdue,
            () => Self::Good,
        }
    }

    /// As metrics have it.
    fn name(self) -> &'static str {
        match self {
            Self::Good => "fresh",
            Self::Overdue => "overdue_for_refresh",
            Self::Expired => "expired",
        }
    }
}

/// A request on its way.
struct Asked {
    name: String,
    uid: String,
    key: String,
    since: Time,
}

/// How a source's certificate was when it was last looked after.
struct Told {
    signer: String,
    how: How,
}

enum How {
    Refused(&'static str),
    Issued { renewed_at: Time, not_after: Time },
}

#[derive(Default)]
struct Slot {
    asked: Option<Asked>,
    credential: Option<Credential>,
    refused: Option<Refusal>,
}

/// The credentials of the pods of a node.
pub struct PodCertificates {
    client: Client,
    node: Arc<dyn NodeView>,
    events: Arc<dyn Events>,
    rng: SharedRng,
    /// Bounded by the sources of the volumes of pods that are here.
    slots: Mutex<BTreeMap<Place, Arc<tokio::sync::Mutex<Slot>>>>,
    /// Bounded as they are; for metrics, which wait for nobody.
    told: Mutex<BTreeMap<Place, Told>>,
}

impl PodCertificates {
    /// Credentials that are asked for through `client`.
    #[must_use]
    pub fn new(client: Client, node: Arc<dyn NodeView>, events: Arc<dyn Events>, rng: SharedRng) -> Self {
        Self { client, node, events, rng, slots: Mutex::default(), told: Mutex::default() }
    }

    /// The credential of a source.
    pub(crate) async fn credential(
        &self,
        pod: &Pod,
        place: Place,
        wanted: &PodCertificateProjection,
    ) -> Result<Credential, PodCertificateError> {
        let slot = Arc::clone(self.slots.lock().entry(place.clone()).or_default());
        let mut slot = slot.lock().await;
        let ended = self.look_after(pod, wanted, &mut slot).await;
        self.note(place, &wanted.signer_name, &slot);
        ended
    }

    /// Notes how a source's certificate is, unless its pod has gone meanwhile.
    fn note(&self, place: Place, signer: &str, slot: &Slot) {
        let how = match (&slot.refused, &slot.credential) {
            (Some(refusal), _) => How::Refused(refusal.how),
            (None, Some(own)) => How::Issued { renewed_at: own.renewed_at, not_after: own.not_after },
            (None, None) => return,
        };
        let slots = self.slots.lock();
        if slots.contains_key(&place) {
            self.told.lock().insert(place, Told { signer: signer.to_owned(), how });
        }
    }

    /// How many certificates there are, by signer and state.
    pub(crate) fn states(&self) -> Counts {
        let now = Time::from(self.client.clock().wall());
        let mut counts = Counts::new();
        for Told { signer, how } in self.told.lock().values() {
            let state = match how {
                How::Refused(how) => how,
                How::Issued { renewed_at, not_after } => Age::at(*renewed_at, *not_after, now).name(),
            };
            *counts.entry((signer.clone(), state)).or_default() += 1;
        }
        counts
    }

    /// A pod is gone.
    pub(crate) fn forget(&self, uid: &str) {
        let mut slots = self.slots.lock();
        slots.retain(|(own, ..), _| own != uid);
        self.told.lock().retain(|(own, ..), _| own != uid);
    }

    async fn look_after(
        &self,
        pod: &Pod,
        wanted: &PodCertificateProjection,
        slot: &mut Slot,
    ) -> Result<Credential, PodCertificateError> {
        let now = Time::from(self.client.clock().wall());
        if slot.refused.is_none()
            && let Err(error) = self.move_on(pod, wanted, slot, now).await
        {
            if slot.credential.is_none() {
                return Err(error);
            }
            tracing::warn!(%error, pod = pod.metadata.name, namespace = pod.metadata.namespace, "Renewing a certificate of a pod failed");
        }
        if let Some(refusal) = &slot.refused {
            return Err(refusal.clone().into());
        }
        let credential = slot.credential.as_mut().ok_or(PodCertificateError::NotIssued)?;
        self.tell_age(pod, credential, now);
        Ok(credential.clone())
    }

    /// Takes what was issued, and asks where it is time to.
    async fn move_on(
        &self,
        pod: &Pod,
        wanted: &PodCertificateProjection,
        slot: &mut Slot,
        now: Time,
    ) -> Result<(), PodCertificateError> {
        if let Some(asked) = &slot.asked {
            let requests = self.client.namespaced::<PodCertificateRequest>(&pod.metadata.namespace);
            let is_late = asked.since + PATIENCE < now;
            match requests.get(&asked.name).await {
                Ok(request) if request.metadata.uid == asked.uid => self.take(pod, slot, &request.status),
                // The server lets nodes see their own requests only, and one that is gone is nobody's.
                Err(error) if !error.is_not_found() && !error.is_forbidden() => return Err(error.into()),
                Ok(_) | Err(_) if is_late => slot.asked = None,
                Ok(_) | Err(_) => {}
            }
        }
        let is_time = slot.credential.as_ref().is_none_or(|own| own.renewed_at <= now);
        if slot.asked.is_none() && slot.refused.is_none() && is_time {
            slot.asked = Some(self.ask(pod, wanted, now).await?);
        }
        Ok(())
    }

    /// Takes what a signer says of a request.
    fn take(&self, pod: &Pod, slot: &mut Slot, status: &PodCertificateRequestStatus) {
        let decided = status.conditions.iter().find(|own| [ISSUED, DENIED, FAILED].contains(&own.type_.as_str()));
        let Some(Condition { type_, reason, message, .. }) = decided else { return };
        let Some(asked) = slot.asked.take() else { return };
        if type_ != ISSUED {
            let how = if type_ == DENIED { "denied" } else { "failed" };
            let refusal = Refusal { how, reason: reason.clone(), message: message.clone() };
            self.tell(pod, type_, &refusal.to_string());
            slot.refused = Some(refusal);
            return;
        }
        let (renewed_at, not_after) =
            (status.begin_refresh_at.unwrap_or_default(), status.not_after.unwrap_or_default());
        slot.credential = Some(Credential {
            key: asked.key,
            chain: status.certificate_chain.clone(),
            renewed_at: renewed_at + JITTER.mul_f64(self.rng.unit()),
            not_after,
            told: Age::Good,
        });
    }

    async fn ask(
        &self,
        pod: &Pod,
        wanted: &PodCertificateProjection,
        since: Time,
    ) -> Result<Asked, PodCertificateError> {
        let (key, stub) = new_key(&wanted.key_type).await?;
        let (meta, account) = (&pod.metadata, &pod.spec.service_account_name);
        let node = self.node.node().filter(|node| !node.metadata.uid.is_empty()).ok_or(PodCertificateError::NoNode)?;
        let account = self.client.namespaced::<ServiceAccount>(&meta.namespace).get(account).await?;
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ..OwnerReference::default()
        };
        let request = PodCertificateRequest {
            metadata: ObjectMeta {
                generate_name: "req-".to_owned(),
                namespace: meta.namespace.clone(),
                owner_references: vec![owner],
                ..ObjectMeta::default()
            },
            spec: PodCertificateRequestSpec {
                signer_name: wanted.signer_name.clone(),
                pod_name: meta.name.clone(),
                pod_uid: meta.uid.clone(),
                service_account_name: account.metadata.name.clone(),
                service_account_uid: account.metadata.uid.clone(),
                node_name: node.metadata.name.clone(),
                node_uid: node.metadata.uid.clone(),
                max_expiration_seconds: wanted.max_expiration_seconds,
                stub_pkcs10_request: ByteString(stub),
                unverified_user_annotations: wanted.user_annotations.clone(),
                ..PodCertificateRequestSpec::default()
            },
            ..PodCertificateRequest::default()
        };
        let made = self.client.namespaced::<PodCertificateRequest>(&meta.namespace).create(&request).await?;
        Ok(Asked { name: made.metadata.name, uid: made.metadata.uid, key, since })
    }

    /// Tells once of a credential that should have been renewed, and once of one that has ended.
    fn tell_age(&self, pod: &Pod, credential: &mut Credential, now: Time) {
        let age = Age::at(credential.renewed_at, credential.not_after, now);
        if age <= credential.told {
            return;
        }
        credential.told = age;
        match age {
            Age::Good => {}
            Age::Overdue => self.tell(pod, "CertificateOverdueForRefresh", "PodCertificate refresh overdue"),
            Age::Expired => self.tell(pod, "CertificateExpired", "PodCertificate expired"),
        }
    }

    fn tell(&self, pod: &Pod, reason: &str, message: &str) {
        self.events.event(object_reference(pod), Level::Warning, reason, message);
    }
}

/// A new key in PEM, and a request that shows that whoever sends it has the key. Large ones take their time.
async fn new_key(kind: &str) -> Result<(String, Vec<u8>), PodCertificateError> {
    let algorithm = KEYS.iter().find(|(name, _)| *name == kind).map(|(_, algorithm)| *algorithm);
    let algorithm = algorithm.ok_or_else(|| PodCertificateError::KeyType(kind.to_owned()))?;
    let made = tokio::task::spawn_blocking(move || {
        let key = PrivateKey::generate(algorithm)?;
        let stub = CertificateRequest::create(&key, &Name::new("", &[]), &AltNames::default())?;
        Ok((pki::encode_block("PRIVATE KEY", &key.to_pkcs8()?), stub.der().to_vec()))
    });
    made.await.unwrap_or(Err(KeyError::Crypto("key generation"))).map_err(PodCertificateError::Key)
}
