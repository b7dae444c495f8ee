//! The two priority classes of the system; made when absent, never changed.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::scheduling_v1::PriorityClass;
use async_trait::async_trait;
use client::{Client, ClientError};

use super::retry::until_done;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

const CLASSES: [(&str, i32, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// The hook `scheduling/bootstrap-system-priority-classes`.
pub(super) struct SystemPriorityClasses;

#[async_trait]
impl PostStartHook for SystemPriorityClasses {
    fn name(&self) -> &'static str {
        "scheduling/bootstrap-system-priority-classes"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let client = cx.loopback();
        until_done("unable to add default system priority classes", || ensure_all(client)).await
    }
}

async fn ensure_all(client: &Client) -> Result<(), ClientError> {
    let api = client.all::<PriorityClass>();
    for (name, value, description) in CLASSES {
        if api.get_opt(name).await?.is_some() {
            continue;
        }
        let metadata = ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() };
        let class = PriorityClass { metadata, value, description: description.to_owned(), ..PriorityClass::default() };
        match api.create(&class).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
