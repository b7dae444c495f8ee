//! Certificates of ClusterTrustBundles for the files of pods (KEP-3257, gate `ClusterTrustBundleProjection`).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::labels::{Selector, SelectorError};
use api_types::certificates_v1beta1::ClusterTrustBundle;
use api_types::core_v1::ClusterTrustBundleProjection;
use base::SharedRng;
use client::{Informer, Informers};
use tokio::sync::OnceCell;

/// How long the first look at the bundles may take.
const SYNC_LIMIT: Duration = Duration::from_secs(10);
const CERTIFICATE: &str = "CERTIFICATE";

/// Why there are no certificates, in upstream's words but where there is no bundle of a name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustBundleError {
    #[error("ClusterTrustBundle projection is not supported in static kubelet mode")]
    Static,
    #[error("timed out waiting for the ClusterTrustBundles of the API server")]
    NotSynced,
    #[error("while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io {0:?} not found")]
    NotFound(String),
    #[error("combination of signerName and labelSelector matched zero ClusterTrustBundles")]
    NoMatch,
    #[error(transparent)]
    Selector(#[from] SelectorError),
}

/// The trust bundles of the cluster, watched from when a pod first wants one.
pub struct TrustBundles {
    /// None without an API server.
    informers: Option<Informers>,
    known: OnceCell<Informer<ClusterTrustBundle>>,
    /// What the order of certificates depends on, so that nobody can depend on it.
    seed: u64,
}

impl TrustBundles {
    /// Bundles as these informers see them.
    #[must_use]
    pub fn new(informers: Option<Informers>, rng: &SharedRng) -> Self {
        Self { informers, known: OnceCell::new(), seed: rng.unit().to_bits() }
    }

    /// The certificates that a projection wants, each once, in PEM.
    pub(crate) async fn pem(&self, wanted: &ClusterTrustBundleProjection) -> Result<String, TrustBundleError> {
        let known = self.known().await?;
        let is_optional = wanted.optional == Some(true);
        let bundles = match (&wanted.name, &wanted.signer_name) {
            (Some(name), _) => match known.find("", name) {
                None if !is_optional => return Err(TrustBundleError::NotFound(name.clone())),
                found => found.into_iter().collect(),
            },
            (None, Some(signer)) => {
                let found = of_signer(known, signer, wanted)?;
                if found.is_empty() && !is_optional {
                    return Err(TrustBundleError::NoMatch);
                }
                found
            }
            (None, None) => Vec::new(),
        };
        Ok(self.joined(&bundles))
    }

    async fn known(&self) -> Result<&Informer<ClusterTrustBundle>, TrustBundleError> {
        let informers = self.informers.as_ref().ok_or(TrustBundleError::Static)?;
        let known = self.known.get_or_init(|| async {
            let known = informers.of();
            informers.start();
            known
        });
        let known = known.await;
        tokio::time::timeout(SYNC_LIMIT, known.wait_synced()).await.map_err(|_elapsed| TrustBundleError::NotSynced)?;
        Ok(known)
    }

    fn joined(&self, bundles: &[Arc<ClusterTrustBundle>]) -> String {
        let blocks = bundles.iter().flat_map(|bundle| pki::parse_blocks(bundle.spec.trust_bundle.as_bytes()));
        let certificates = blocks.filter(|block| block.label == CERTIFICATE).map(|block| block.der);
        let mut certificates: Vec<Vec<u8>> = certificates.collect::<BTreeSet<_>>().into_iter().collect();
        certificates.sort_by_cached_key(|der| {
            let mut hasher = DefaultHasher::new();
            (self.seed, der).hash(&mut hasher);
            hasher.finish()
        });
        certificates.iter().map(|der| pki::encode_block(CERTIFICATE, der)).collect()
    }
}

/// A signer's bundles with the labels; none where no labels are asked for.
fn of_signer(
    known: &Informer<ClusterTrustBundle>,
    signer: &str,
    wanted: &ClusterTrustBundleProjection,
) -> Result<Vec<Arc<ClusterTrustBundle>>, SelectorError> {
    let Some(labels) = &wanted.label_selector else { return Ok(Vec::new()) };
    let selector = Selector::from_label_selector(labels)?;
    let all = known.list().into_iter().filter(|bundle| bundle.spec.signer_name == signer);
    Ok(all.filter(|bundle| selector.matches(&bundle.metadata.labels)).collect())
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::LabelSelector;
    use base::Rng;
    use client::InformerOptions;
    use client::fake::FakeServer;
    use serde_json::json;

    use super::*;

    fn certificate(bytes: &[u8]) -> String {
        pki::encode_block(CERTIFICATE, bytes)
    }

    fn bundles() -> TrustBundles {
        let server = FakeServer::new();
        for (name, signer, label, text) in [
            ("plain", "", "a", format!("a comment\n{}{}", certificate(b"one"), certificate(b"two"))),
            ("s:new", "s", "a", certificate(b"three")),
            ("s:old", "s", "b", certificate(b"three") + &certificate(b"four")),
            ("t:other", "t", "a", certificate(b"five")),
        ] {
            let object = json!({"metadata": {"name": name, "labels": {"is": label}},
                "spec": {"signerName": signer, "trustBundle": text}});
            server.put("certificates.k8s.io/v1beta1/clustertrustbundles", object);
        }
        let informers = Informers::new(&server.client(), InformerOptions::default());
        TrustBundles::new(Some(informers), &Rng::seeded(1))
    }

    fn by_name(name: &str, optional: bool) -> ClusterTrustBundleProjection {
        ClusterTrustBundleProjection { name: Some(name.into()), optional: Some(optional), ..Default::default() }
    }

    fn by_signer(label: Option<Option<&str>>, optional: bool) -> ClusterTrustBundleProjection {
        let selector = label.map(|label| LabelSelector {
            match_labels: label.map(|label| ("is".to_owned(), label.to_owned())).into_iter().collect(),
            ..LabelSelector::default()
        });
        ClusterTrustBundleProjection {
            signer_name: Some("s".into()),
            label_selector: selector,
            optional: Some(optional),
            ..Default::default()
        }
    }

    #[tokio::test]
    async fn bundles_are_found_by_name_or_by_signer() {
        let bundles = bundles();
        let zero = "combination of signerName and labelSelector matched zero ClusterTrustBundles";
        let not_found = "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"none\" not found";
        let cases: [(_, Result<&[&str], &str>); 8] = [
            (by_name("plain", false), Ok(&["one", "two"])),
            (by_name("none", false), Err(not_found)),
            (by_name("none", true), Ok(&[])),
            (by_signer(Some(None), false), Ok(&["four", "three"])),
            (by_signer(Some(Some("a")), false), Ok(&["three"])),
            (by_signer(Some(Some("c")), false), Err(zero)),
            (by_signer(Some(Some("c")), true), Ok(&[])),
            (by_signer(None, false), Err(zero)),
        ];
        for (wanted, expected) in cases {
            let found = bundles.pem(&wanted).await.map_err(|error| error.to_string());
            let names = found.as_ref().map(|text| {
                let blocks = pki::parse_blocks(text.as_bytes()).into_iter();
                let mut names: Vec<_> = blocks.map(|block| String::from_utf8(block.der).unwrap()).collect();
                names.sort_unstable();
                names
            });
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(names.map_err(String::as_str), expected, "{wanted:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_known_without_a_server() {
        let bundles = TrustBundles::new(None, &Rng::seeded(1));
        let error = bundles.pem(&by_name("plain", true)).await.unwrap_err().to_string();
        assert_eq!(error, "ClusterTrustBundle projection is not supported in static kubelet mode");
    }
}
