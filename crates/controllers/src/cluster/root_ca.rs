//! Puts the bundle that verifies the API server into each namespace, as ConfigMap `kube-root-ca.crt`.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{ConfigMap, Namespace};
use client::{Change, ClientError, Informer, ObjectKey};
use component_base::metrics::{Desc, Stability, exponential};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::published::Looks;
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "root-ca-certificate-publisher-controller",
    aliases: &["root-ca-cert-publisher"],
    gates: &[],
    identity: "root-ca-cert-publisher",
    event_component: "",
    disabled_by_default: false,
    build,
};

const SYNCS: Desc =
    Desc::new("root_ca_cert_publisher_sync_total", "Looks at namespaces.", Stability::Alpha).labels(&["code"]);
const DURATIONS: Desc =
    Desc::new("root_ca_cert_publisher_sync_duration_seconds", "How long a look took.", Stability::Alpha)
        .labels(&["code"])
        .buckets(&exponential::<15>(0.001, 2.0));
const NAME: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such \
                    as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                    distributions of Kubernetes clusters.";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let bundle = build.settings::<Settings>()?.root_ca.clone();
    if bundle.is_empty() {
        return Err(BuildError::Skipped("there is no root CA to publish".to_owned()));
    }
    let queue = build.queue("root_ca_cert_publisher");
    let concerned = |change: &Change<Namespace>| match change {
        Change::Added { .. } => Some(change.key()),
        Change::Updated { new, .. } => (new.status.phase == "Active").then(|| change.key()),
        Change::Deleted { .. } => None,
    };
    drop(build.watch::<Namespace>().enqueue_keys(&queue, concerned));
    let touched = |change: &Change<ConfigMap>| {
        let ours = change.object().metadata.name == NAME && !matches!(change, Change::Added { .. });
        ours.then(|| ObjectKey::cluster(change.key().namespace))
    };
    let maps = build.watch::<ConfigMap>().enqueue_keys(&queue, touched).informer();
    let looks = Looks::new(build, &SYNCS, &DURATIONS);
    build.run(&queue, 1, Arc::new(Publisher { maps, bundle, looks }));
    Ok(())
}

struct Publisher {
    maps: Informer<ConfigMap>,
    bundle: String,
    looks: Looks,
}

/// What to write.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    Create(ConfigMap),
    Update(ConfigMap),
}

/// A description that somebody changed stays, as long as the data is right.
fn plan(namespace: &str, present: Option<&ConfigMap>, bundle: &str) -> Plan {
    let data = [(KEY.to_owned(), bundle.to_owned())].into();
    let Some(present) = present else {
        let mut metadata =
            ObjectMeta { name: NAME.to_owned(), namespace: namespace.to_owned(), ..ObjectMeta::default() };
        metadata.annotations.insert(DESCRIPTION.to_owned(), TEXT.to_owned());
        return Plan::Create(ConfigMap { metadata, data, ..ConfigMap::default() });
    };
    let described = present.metadata.annotations.get(DESCRIPTION).is_some_and(|text| !text.is_empty());
    if present.data == data && described {
        return Plan::Nothing;
    }
    let mut changed = present.clone();
    changed.data = data;
    changed.metadata.annotations.insert(DESCRIPTION.to_owned(), TEXT.to_owned());
    Plan::Update(changed)
}

#[async_trait::async_trait]
impl Controller for Publisher {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        self.looks.take(cx, self.publish(cx, key)).await
    }
}

impl Publisher {
    async fn publish(&self, cx: &Cx, key: &ObjectKey) -> Result<(), ClientError> {
        let present = self.maps.find(&key.name, NAME);
        let maps = cx.client.namespaced::<ConfigMap>(&key.name);
        let outcome = match plan(&key.name, present.as_deref(), &self.bundle) {
            Plan::Nothing => return Ok(()),
            Plan::Create(map) => maps.create(&map).await,
            Plan::Update(map) => maps.update(&map).await,
        };
        match outcome {
            Err(error) if !error.is_not_found() && !error.is_namespace_terminating() => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_put_right() {
        let Plan::Create(right) = plan("ns", None, "ca") else { panic!("absent maps are created") };
        assert_eq!(right.data.get(KEY).map(String::as_str), Some("ca"));
        assert_eq!(plan("ns", Some(&right), "ca"), Plan::Nothing, "steady state");
        let mut described = right.clone();
        described.metadata.annotations.insert(DESCRIPTION.into(), "mine".into());
        assert_eq!(plan("ns", Some(&described), "ca"), Plan::Nothing, "another description stays");
        let mut foreign = right.clone();
        foreign.data.insert("more".into(), "x".into());
        foreign.metadata.labels.insert("l".into(), "v".into());
        let mut expected = right.clone();
        expected.metadata.labels.insert("l".into(), "v".into());
        assert_eq!(plan("ns", Some(&foreign), "ca"), Plan::Update(expected), "foreign keys go, labels stay");
        let mut renewed = right.clone();
        renewed.data.insert(KEY.into(), "new".into());
        assert_eq!(plan("ns", Some(&right), "new"), Plan::Update(renewed));
    }
}
