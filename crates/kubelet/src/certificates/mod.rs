//! The kubelet's own certificates: how it gets its first identity, keeps it valid, and what it serves with.

mod client;
mod request;
mod rotation;
mod serving;
mod store;

use std::path::Path;
use std::time::SystemTime;

use api_types::kubelet_config_v1beta1::KubeletConfiguration;

use crate::metrics::KubeletMetrics;
use store::Store;

/// What the files of the two purposes are called.
const CLIENT: &str = "kubelet-client";
const SERVER: &str = "kubelet-server";

pub(crate) use client::{ClientAccess, client_config};
pub(crate) use serving::{request_serving, self_signed};

/// Seconds until the certificate of a purpose expires, negative if it has; infinite where none is kept.
fn seconds_left(store: &Store, now: SystemTime) -> f64 {
    let Some(Ok(leaf)) = store.load().map(|pair| pair.leaf()) else { return f64::INFINITY };
    match leaf.not_after().duration_since(now) {
        Ok(left) => left.as_secs_f64(),
        Err(late) => -late.duration().as_secs_f64(),
    }
}

/// Sets the metrics of how long certificates will last: of those that are asked for by themselves.
pub(crate) fn show(config: &KubeletConfiguration, directory: &Path, metrics: &KubeletMetrics, now: SystemTime) {
    let purposes = [
        (config.rotate_certificates, CLIENT, &metrics.client_certificate_left),
        (config.server_tls_bootstrap, SERVER, &metrics.serving_certificate_left),
    ];
    for (kept, prefix, gauge) in purposes {
        let left = if kept { seconds_left(&Store::new(directory, prefix), now) } else { f64::INFINITY };
        gauge.with(&[]).set(left);
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The key could not be made or used.
    #[error("unable to generate a new private key: {0}")]
    Key(#[from] pki::KeyError),
    /// The API server refused or did not answer.
    #[error("cannot create certificate signing request: {0}")]
    Client(#[from] ::client::ClientError),
    /// The signer said no.
    #[error("certificate signing request is {refusal}: {reason} {message}")]
    Refused { refusal: &'static str, reason: String, message: String },
    /// Nobody signed in time.
    #[error("timed out waiting for the certificate")]
    Timeout,
    /// What was signed is no certificate.
    #[error("the certificate that was issued cannot be read: {0}")]
    Issued(#[from] pki::CertificateError),
    /// The self-signed pair could not be made.
    #[error("unable to generate self signed cert: {0}")]
    SelfSigned(#[from] pki::IssueError),
    /// A file.
    #[error("{what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    /// The pair cannot be used for TLS.
    #[error(transparent)]
    Tls(#[from] component_base::tls::TlsError),
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Config(#[from] ::client::ConfigError),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::Rng;
    use component_base::metrics::{Metrics, MetricsOptions};
    use pki::{CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
    use store::Pair;

    use super::*;

    #[test]
    fn what_is_left_of_certificates_shows() {
        let dir = tempfile::tempdir().unwrap();
        let (now, hour, rng) =
            (SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000), Duration::from_secs(3600), Rng::seeded(1));
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::create("ca", key(), hour * 48, now, &rng).unwrap();
        let own = key();
        let spec = CertificateSpec::client("system:node:n1", &[], hour);
        let leaf = authority.issue(&spec, own.public_key(), now, &rng).unwrap();
        let pair = Pair { chain: leaf.to_pem().into_bytes(), key: own.to_pem().unwrap().into_bytes() };
        Store::new(dir.path(), CLIENT).save(&pair, now).unwrap();
        let metrics = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&metrics, &metrics);
        let mut config = KubeletConfiguration { server_tls_bootstrap: true, ..KubeletConfiguration::default() };
        let shown = |config: &KubeletConfiguration, late: Duration| -> Vec<f64> {
            show(config, dir.path(), &own, now + late);
            [&own.client_certificate_left, &own.serving_certificate_left].map(|gauge| gauge.with(&[]).get()).to_vec()
        };
        assert_eq!(shown(&config, Duration::ZERO), [f64::INFINITY, f64::INFINITY], "nothing is kept");
        config.rotate_certificates = true;
        let left = shown(&config, hour / 2);
        assert!((1700.0..=1801.0).contains(&left[0]), "{left:?}");
        let left = shown(&config, hour * 2);
        assert!((-3700.0..=-3599.0).contains(&left[0]), "{left:?}");
    }
}
