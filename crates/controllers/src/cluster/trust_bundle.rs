//! Publishes the bundle that verifies the API server as a `ClusterTrustBundle`, and takes away former ones.

use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_types::certificates_v1beta1::{ClusterTrustBundle, ClusterTrustBundleSpec};
use client::{ClientError, Informer, ObjectKey, Scope};
use component_base::metrics::{Desc, Stability, exponential};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use kinds::gates::CLUSTER_TRUST_BUNDLE;
use sha2::{Digest as _, Sha256};

use super::published::Looks;
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    aliases: &[],
    gates: &[CLUSTER_TRUST_BUNDLE],
    identity: "kube-apiserver-serving-clustertrustbundle-publisher",
    event_component: "",
    disabled_by_default: false,
    build,
};

const SYNCS: Desc =
    Desc::new("clustertrustbundle_publisher_sync_total", "Looks at the bundle.", Stability::Alpha).labels(&["code"]);
const DURATIONS: Desc =
    Desc::new("clustertrustbundle_publisher_sync_duration_seconds", "How long a look took.", Stability::Alpha)
        .labels(&["code"])
        .buckets(&exponential::<15>(0.001, 2.0));
const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// How much of the bundle's hash its name has.
const HASHED_BYTES: usize = 12;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let bundle = build.settings::<Settings>()?.root_ca.clone();
    if bundle.is_empty() {
        return Err(BuildError::Skipped("there is no root CA to publish".to_owned()));
    }
    let queue = build.queue("ca_cert_publisher_cluster_trust_bundles");
    // There is one thing to do, whatever happens.
    let key = ObjectKey::cluster(SIGNER);
    queue.add(key.clone());
    let ours = Scope::fields(&format!("spec.signerName={SIGNER}"));
    let bundles =
        build.watch_scoped::<ClusterTrustBundle>(&ours).enqueue_keys(&queue, move |_| [key.clone()]).informer();
    let looks = Looks::new(build, &SYNCS, &DURATIONS);
    build.run(&queue, 1, Arc::new(Publisher { bundles, wanted: wanted(bundle), looks }));
    Ok(())
}

/// The bundle as an object; what is in it decides its name.
fn wanted(trust_bundle: String) -> ClusterTrustBundle {
    let hash = Sha256::digest(trust_bundle.as_bytes());
    let name = format!("{}:{}", SIGNER.replace('/', ":"), base::hex(&hash[..HASHED_BYTES]));
    let spec = ClusterTrustBundleSpec { signer_name: SIGNER.to_owned(), trust_bundle };
    ClusterTrustBundle { metadata: ObjectMeta { name, ..ObjectMeta::default() }, spec }
}

struct Publisher {
    bundles: Informer<ClusterTrustBundle>,
    wanted: ClusterTrustBundle,
    looks: Looks,
}

/// What to write.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    Create,
    Update(Box<ClusterTrustBundle>),
}

fn plan(wanted: &ClusterTrustBundle, present: Option<&ClusterTrustBundle>) -> Plan {
    match present {
        None => Plan::Create,
        Some(present) if present.spec == wanted.spec => Plan::Nothing,
        Some(present) => {
            let changed = ClusterTrustBundle { spec: wanted.spec.clone(), ..present.clone() };
            Plan::Update(Box::new(changed))
        }
    }
}

#[async_trait::async_trait]
impl Controller for Publisher {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        self.looks.take(cx, self.publish(cx)).await
    }
}

impl Publisher {
    async fn publish(&self, cx: &Cx) -> Result<(), ClientError> {
        let (bundles, name) = (cx.client.all::<ClusterTrustBundle>(), &self.wanted.metadata.name);
        match plan(&self.wanted, self.bundles.find("", name).as_deref()) {
            Plan::Nothing => {}
            Plan::Create => drop(bundles.create(&self.wanted).await?),
            Plan::Update(bundle) => drop(bundles.update(&bundle).await?),
        }
        let mut outcome = Ok(());
        for former in self.bundles.list().iter().filter(|own| own.metadata.name != *name) {
            match bundles.delete(&former.metadata.name, &DeleteOptions::default()).await {
                Err(error) if !error.is_not_found() => outcome = Err(error),
                _ => {}
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{Running, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];
    const BUNDLES: &str = "certificates.k8s.io/v1beta1/clustertrustbundles";

    #[test]
    fn the_name_is_of_what_is_in_it() {
        // The first 12 bytes of the SHA-256 of "abc" (FIPS 180-4).
        let name = "kubernetes.io:kube-apiserver-serving:ba7816bf8f01cfea414140de";
        assert_eq!(wanted("abc".into()).metadata.name, name);
    }

    #[tokio::test(start_paused = true)]
    async fn the_bundle_is_kept_and_former_ones_go() {
        let settings = Settings { root_ca: "pem".into(), ..Settings::default() };
        let running = Running::start_gated_with(KNOWN, &[CLUSTER_TRUST_BUNDLE], settings);
        let (right, former) = (wanted("pem".into()), wanted("former".into()));
        let mut wrong = right.clone();
        wrong.spec.trust_bundle = "wrong".into();
        let mut foreign = wanted("foreign".into());
        foreign.spec.signer_name = "example.com/other".into();
        for bundle in [&former, &wrong, &foreign] {
            running.put(BUNDLES, bundle);
        }
        run_until_idle().await;
        let names = |bundles: Vec<ClusterTrustBundle>| {
            bundles.into_iter().map(|bundle| (bundle.metadata.name, bundle.spec.trust_bundle)).collect::<Vec<_>>()
        };
        let all = running.client.all::<ClusterTrustBundle>();
        let listed = names(all.list(&Default::default()).await.unwrap().items);
        let mut expected = names(vec![foreign, right]);
        expected.sort_unstable();
        assert_eq!(listed, expected);
        running.assert_steady().await;
        all.delete(&wanted("pem".into()).metadata.name, &DeleteOptions::default()).await.unwrap();
        run_until_idle().await;
        assert_eq!(running.count(BUNDLES), 2, "it is made again");
    }
}
