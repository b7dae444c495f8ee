//! The namespaces that every cluster has; made again when somebody deletes them.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use client::{Client, ClientError};

use super::retry;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

const NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "default", "kube-node-lease"];
/// How often they are looked at.
const PERIOD: Duration = Duration::from_secs(60);
/// How soon a failed look is repeated.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The hook `start-system-namespaces-controller`.
pub(super) struct SystemNamespaces;

#[async_trait]
impl PostStartHook for SystemNamespaces {
    fn name(&self) -> &'static str {
        "start-system-namespaces-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let client = cx.loopback().clone();
        cx.tasks().spawn_cancellable("system-namespaces", async move {
            let work = || ensure_all(&client);
            retry::repeat("Creating the system namespaces", PERIOD, RETRY_PERIOD, work).await;
        });
        Ok(())
    }
}

async fn ensure_all(client: &Client) -> Result<(), ClientError> {
    for name in NAMESPACES {
        ensure(client, name).await?;
    }
    Ok(())
}

/// Creates a namespace unless it is there.
pub(super) async fn ensure(client: &Client, name: &str) -> Result<(), ClientError> {
    let api = client.all::<Namespace>();
    if api.get_opt(name).await?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() };
    match api.create(&Namespace { metadata, ..Namespace::default() }).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
