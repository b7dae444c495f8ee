//! Gives every namespace its `default` service account, and gives it back when somebody deletes it.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Namespace, ServiceAccount};
use client::{Change, Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "serviceaccount-controller",
    aliases: &["serviceaccount"],
    gates: &[],
    identity: "service-account-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// The accounts that every namespace has.
const WANTED: &[&str] = &["default"];

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("serviceaccount");
    let there = |change: &Change<Namespace>| (!change.is_deleted()).then(|| change.key());
    let namespaces = build.watch::<Namespace>().enqueue_keys(&queue, there).informer();
    let gone =
        |change: &Change<ServiceAccount>| change.is_deleted().then(|| ObjectKey::cluster(change.key().namespace));
    let accounts = build.watch::<ServiceAccount>().enqueue_keys(&queue, gone).informer();
    build.run(&queue, 1, Arc::new(ServiceAccounts { namespaces, accounts }));
    Ok(())
}

struct ServiceAccounts {
    namespaces: Informer<Namespace>,
    accounts: Informer<ServiceAccount>,
}

/// The accounts that an active namespace lacks.
fn plan(namespace: &Namespace, exists: impl Fn(&str) -> bool) -> Vec<ServiceAccount> {
    if namespace.status.phase != "Active" {
        return Vec::new();
    }
    let account = |name: &&str| ServiceAccount {
        metadata: ObjectMeta {
            name: (*name).to_owned(),
            namespace: namespace.metadata.name.clone(),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    WANTED.iter().filter(|name| !exists(name)).map(account).collect()
}

#[async_trait::async_trait]
impl Controller for ServiceAccounts {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(Next::Done) };
        let mut errors = Vec::new();
        for account in plan(&namespace, |name| self.accounts.find(&key.name, name).is_some()) {
            match cx.client.namespaced::<ServiceAccount>(&key.name).create(&account).await {
                Err(error) if !error.is_already_exists() && !error.is_namespace_terminating() => {
                    errors.push(error.into());
                }
                _ => {}
            }
        }
        ReconcileError::join(errors)?;
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{Running, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];

    fn namespace(phase: &str) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = "ns".into();
        namespace.status.phase = phase.into();
        namespace
    }

    #[test]
    fn only_active_namespaces_lack_accounts() {
        for (phase, exists, expected) in
            [("Active", false, 1), ("Active", true, 0), ("Terminating", false, 0), ("", false, 0)]
        {
            assert_eq!(plan(&namespace(phase), |_| exists).len(), expected, "{phase} {exists}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_account_comes_back() {
        let running = Running::start(KNOWN);
        running.put("v1/namespaces", &namespace("Active"));
        run_until_idle().await;
        assert_eq!(running.count("v1/serviceaccounts"), 1);
        running.server.remove("v1/serviceaccounts", "ns", "default");
        run_until_idle().await;
        assert_eq!(running.count("v1/serviceaccounts"), 1);
        running.assert_steady().await;
    }
}
