//! Signs the kubeconfig in `kube-public/cluster-info` with every bootstrap token, so that a machine that joins and
//! knows nothing but its token can trust what it reads there.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{ConfigMap, Secret};
use client::{Informer, ObjectKey, Scope};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use pki::jws::sign_detached;

use super::{signing_token, token_secrets};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bootstrap-signer-controller",
    aliases: &["bootstrapsigner"],
    gates: &[],
    identity: "bootstrap-signer",
    event_component: "",
    disabled_by_default: true,
    build,
};

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
const KUBECONFIG: &str = "kubeconfig";
const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("bootstrap_signer_queue");
    let the_key = || ObjectKey::new(NAMESPACE, NAME);
    let infos = build
        .watch_scoped::<ConfigMap>(&Scope::object(NAMESPACE, NAME))
        .enqueue_keys(&queue, move |change| (!change.is_deleted()).then(the_key))
        .informer();
    let tokens =
        build.watch_scoped::<Secret>(&token_secrets()).enqueue_keys(&queue, move |_| Some(the_key())).informer();
    build.run(&queue, 1, Arc::new(Signer { infos, tokens }));
    Ok(())
}

struct Signer {
    infos: Informer<ConfigMap>,
    tokens: Informer<Secret>,
}

/// The ConfigMap with the signatures of just these tokens, if it differs.
fn plan<'a>(info: &ConfigMap, tokens: impl Iterator<Item = &'a Secret>, now: Time) -> Option<ConfigMap> {
    let kubeconfig = info.data.get(KUBECONFIG)?;
    let mut data: BTreeMap<_, _> = info
        .data
        .iter()
        .filter(|(key, _)| !key.starts_with(SIGNATURE_PREFIX))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    for (id, secret) in tokens.filter_map(|token| signing_token(token, now)) {
        data.insert(format!("{SIGNATURE_PREFIX}{id}"), sign_detached(kubeconfig, id, secret));
    }
    (data != info.data).then(|| ConfigMap { data, ..info.clone() })
}

#[async_trait::async_trait]
impl Controller for Signer {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(info) = self.infos.get(key) else { return Ok(Next::Done) };
        let tokens = self.tokens.list();
        let Some(signed) = plan(&info, tokens.iter().map(|token| &**token), cx.clock.wall().into()) else {
            return Ok(Next::Done);
        };
        // Whoever was faster causes an event, and so does everything else that a new try would need.
        match cx.client.namespaced::<ConfigMap>(NAMESPACE).update(&signed).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => {
                tracing::error!(%error, "Signing the cluster info failed");
            }
            _ => {}
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::token;
    use super::*;
    use crate::workloads::fixtures::{Running, at, run_until_idle};

    const KNOWN: &[Descriptor] = &[Descriptor { disabled_by_default: false, ..DESCRIPTOR }];
    /// Upstream's signature of this content by the token `abcdef.0123456789abcdef`.
    const CONTENT: &str = "apiVersion: v1\nkind: Config\n";
    const SIGNATURE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..vH_kT4yiol-nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE";

    fn info(more: &[(&str, &str)]) -> ConfigMap {
        let mut info = ConfigMap::default();
        info.metadata.name = NAME.into();
        info.metadata.namespace = NAMESPACE.into();
        info.data.insert(KUBECONFIG.into(), CONTENT.into());
        info.data.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        info
    }

    #[test]
    fn signatures_are_those_of_the_tokens() {
        let good = token("abcdef", &[]);
        let expired = token("fedcba", &[("expiration", Some("2001-01-01T00:00:00Z"))]);
        let tokens = [good, expired];
        let now = at(1_000_000_000);
        let plan_of = |info: &ConfigMap| plan(info, tokens.iter(), now).map(|signed| signed.data);
        let signed = info(&[("jws-kubeconfig-abcdef", SIGNATURE)]);
        assert_eq!(plan_of(&info(&[])), Some(signed.data.clone()));
        assert_eq!(plan_of(&signed), None, "steady state");
        let leftover = info(&[("jws-kubeconfig-abcdef", SIGNATURE), ("jws-kubeconfig-fedcba", "x")]);
        assert_eq!(plan_of(&leftover), Some(signed.data.clone()), "signatures of tokens that are gone go");
        let foreign = info(&[("more", "kept"), ("jws-kubeconfig-abcdef", SIGNATURE)]);
        assert_eq!(plan_of(&foreign), None);
        let mut empty = info(&[]);
        empty.data.clear();
        assert_eq!(plan_of(&empty), None, "there is nothing to sign");
    }

    #[tokio::test(start_paused = true)]
    async fn the_signature_comes_and_goes_with_the_token() {
        let running = Running::start(KNOWN);
        running.put("v1/configmaps", &info(&[]));
        running.put("v1/secrets", &token("abcdef", &[]));
        run_until_idle().await;
        let read = || async { running.client.namespaced::<ConfigMap>(NAMESPACE).get(NAME).await.unwrap().data };
        assert_eq!(read().await["jws-kubeconfig-abcdef"], SIGNATURE);
        running.assert_steady().await;
        running.server.remove("v1/secrets", "kube-system", "bootstrap-token-abcdef");
        run_until_idle().await;
        assert_eq!(read().await.len(), 1);
    }
}
