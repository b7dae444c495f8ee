//! Deletes bootstrap tokens when they expire.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_types::core_v1::Secret;
use client::{Change, Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::{NAMESPACE, TOKEN_TYPE, expiration, token_secrets};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "token-cleaner-controller",
    aliases: &["tokencleaner"],
    gates: &[],
    identity: "token-cleaner",
    event_component: "",
    disabled_by_default: true,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("token_cleaner");
    let there = |change: &Change<Secret>| (!change.is_deleted()).then(|| change.key());
    let tokens = build.watch_scoped::<Secret>(&token_secrets()).enqueue_keys(&queue, there).informer();
    build.run(&queue, 1, Arc::new(Cleaner { tokens }));
    Ok(())
}

struct Cleaner {
    tokens: Informer<Secret>,
}

#[async_trait::async_trait]
impl Controller for Cleaner {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(token) = self.tokens.get(key).filter(|token| token.type_ == TOKEN_TYPE) else {
            return Ok(Next::Done);
        };
        let Some(expiration) = expiration(&token) else { return Ok(Next::Done) };
        let left = expiration.since(Time::from(cx.clock.wall()));
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let secrets = cx.client.namespaced::<Secret>(NAMESPACE);
        if let Err(error) = secrets.delete_this(&token.metadata, DeleteOptions::default()).await {
            tracing::error!(%error, secret = key.name, "Deleting an expired bootstrap token failed");
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixtures::token;
    use super::*;
    use crate::workloads::fixtures::{Running, run_until_idle};

    const KNOWN: &[Descriptor] = &[Descriptor { disabled_by_default: false, ..DESCRIPTOR }];

    #[tokio::test(start_paused = true)]
    async fn tokens_go_when_they_expire() {
        let running = Running::start(KNOWN);
        let later = Time::from(running.client.clock().wall()) + Duration::from_secs(600);
        let secrets = [
            ("aaaaaa", token("aaaaaa", &[])),
            ("bbbbbb", token("bbbbbb", &[("expiration", Some("2001-01-01T00:00:00Z"))])),
            ("cccccc", token("cccccc", &[("expiration", Some("soon"))])),
            ("dddddd", token("dddddd", &[("expiration", Some(&later.to_string()))])),
        ];
        for (uid, mut secret) in secrets {
            secret.metadata.uid = uid.into();
            running.put("v1/secrets", &secret);
        }
        run_until_idle().await;
        assert_eq!(running.count("v1/secrets"), 2, "the expired one and the unreadable one are gone");
        tokio::time::sleep(Duration::from_secs(600)).await;
        run_until_idle().await;
        assert_eq!(running.count("v1/secrets"), 1, "one never expires");
    }
}
