//! What is counted of writes beside their requests, with upstream's names.

use std::time::Duration;

use api_machinery::object::Object;
use api_types::certificates_v1::CertificateSigningRequest;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use kinds::info::ResourceInfo;
use kinds::rules::Endpoint;
use pki::Certificate;
use registry::{Comparison, WriteObserver};

const REQUESTED: Desc = Desc::new(
    "apiserver_certificates_registry_csr_requested_duration_total",
    "Certificates that were issued to requests for a certain lifetime.",
    Stability::Alpha,
)
.labels(&["signerName"]);
const HONOURED: Desc = Desc::new(
    "apiserver_certificates_registry_csr_honored_duration_total",
    "Certificates that were issued with about the lifetime that was asked for.",
    Stability::Alpha,
)
.labels(&["signerName"]);
const COMPARED: Desc = Desc::new(
    "apiserver_request_timestamp_comparison_time",
    "Time that it took to see whether an update changes nothing but the times of field ownership.",
    Stability::Alpha,
)
.labels(&["code_path"])
.buckets(&[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0]);
const LEASE_OBJECTS: Desc =
    Desc::new("etcd_lease_object_counts", "Objects that shared a lease of the store.", Stability::Alpha)
        .buckets(&[10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0]);
/// Signers of others have any name.
const OWN_SIGNERS: &str = "kubernetes.io/";
/// By how much a lifetime may differ from what was asked for: this, and a part of what was asked for.
const TOLERANCE: Duration = Duration::from_secs(300);
const TOLERANCE_PART: u32 = 20;

/// The families.
pub(crate) struct WriteMetrics {
    requested: Counters,
    honoured: Counters,
    compared: [component_base::metrics::Histogram; 3],
    lease_objects: component_base::metrics::Histogram,
}

impl WriteMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let compared: Histograms = metrics.histograms(&COMPARED);
        let outcomes = [Comparison::Equal, Comparison::NotNeeded, Comparison::ObjectsDiffer];
        Self {
            requested: metrics.counters(&REQUESTED),
            honoured: metrics.counters(&HONOURED),
            compared: outcomes.map(|outcome| compared.with(&[outcome.as_str()])),
            lease_objects: metrics.histograms(&LEASE_OBJECTS).with(&[]),
        }
    }

    fn issued(&self, old: &CertificateSigningRequest, new: &CertificateSigningRequest) {
        let Some(wanted) = new.spec.expiration_seconds else { return };
        if !old.status.certificate.is_empty() || new.status.certificate.is_empty() {
            return;
        }
        let signer = new.spec.signer_name.as_str();
        let signer = if signer.starts_with(OWN_SIGNERS) { signer } else { "other" };
        self.requested.with(&[signer]).inc();
        let issued = Certificate::all_from_pem(&new.status.certificate.0).unwrap_or_default();
        if issued.first().is_some_and(|certificate| is_honoured(wanted, certificate)) {
            self.honoured.with(&[signer]).inc();
        }
    }
}

fn is_honoured(wanted_seconds: i32, certificate: &Certificate) -> bool {
    let wanted = Duration::from_secs(wanted_seconds.unsigned_abs().into());
    let lasts = certificate.not_after().duration_since(certificate.not_before()).unwrap_or_default();
    lasts.abs_diff(wanted) < TOLERANCE + wanted / TOLERANCE_PART
}

impl WriteObserver for WriteMetrics {
    fn updated(&self, resource: &ResourceInfo<'_>, endpoint: Endpoint, old: &dyn Object, new: &dyn Object) {
        if endpoint != Endpoint::Status || resource.resource != "certificatesigningrequests" {
            return;
        }
        if let (Some(old), Some(new)) = (old.downcast_ref(), new.downcast_ref()) {
            self.issued(old, new);
        }
    }

    fn compared(&self, outcome: Comparison, took: Duration) {
        let [equal, not_needed, differ] = &self.compared;
        let series = match outcome {
            Comparison::Equal => equal,
            Comparison::NotNeeded => not_needed,
            Comparison::ObjectsDiffer => differ,
        };
        series.observe(took.as_secs_f64());
    }

    #[expect(clippy::cast_precision_loss, reason = "a histogram of small numbers")]
    fn lease_full(&self, objects: u64) {
        self.lease_objects.observe(objects as f64);
    }
}

#[cfg(test)]
mod tests {
    use base::{Clock as _, Rng, SystemClock};
    use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_lifetime_is_honoured_within_five_minutes_and_a_twentieth() {
        let now = SystemClock.wall();
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::create("ca", key(), 30 * DAY, now, &Rng::seeded(1)).unwrap();
        for (wanted, lasts, expected) in [
            (3_600, 3_600, true),
            (3_600, 3_600 + 470, true),
            (3_600, 3_600 + 510, false),
            (3_600, 3_600 - 510, false),
            (86_400, 3_600, false),
        ] {
            let spec = CertificateSpec::server("s", AltNames::default(), Duration::from_secs(lasts));
            let certificate = authority.issue(&spec, key().public_key(), now, &Rng::seeded(2)).unwrap();
            let own = certificate.not_after().duration_since(certificate.not_before()).unwrap();
            // What is issued begins a little earlier, which counts.
            let early = i32::try_from(own.as_secs()).unwrap() - i32::try_from(lasts).unwrap();
            assert_eq!(is_honoured(wanted + early, &certificate), expected, "{wanted} {lasts}");
        }
    }
}
