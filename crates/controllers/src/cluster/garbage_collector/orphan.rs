//! Lets the dependents of an object go, and then the object.

use std::sync::Arc;

use client::ObjectKey;
use controller::{Controller, Cx, Next, ReconcileError};
use futures_util::StreamExt as _;

use super::Shared;
use super::graph::Node;
use super::object::{ORPHAN, live, remove_finalizer, remove_references};

/// Dependents that are let go at the same time.
const PARALLEL: usize = 16;

/// Works on the objects whose dependents are to stay.
pub(super) struct Orphaner(pub(super) Arc<Shared>);

#[async_trait::async_trait]
impl Controller for Orphaner {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if !self.0.is_ready() {
            return Ok(Next::Again);
        }
        let (node, dependents) = {
            let graph = self.0.graph.lock();
            let Some(node) = graph.node(&key.name) else { return Ok(Next::Done) };
            (node, graph.dependents(&key.name))
        };
        let owner = &node.identity;
        let mut tasks = Vec::with_capacity(dependents.len());
        for dependent in &dependents {
            tasks.push(self.release(cx, dependent, &owner.uid));
        }
        let outcomes: Vec<_> = futures_util::stream::iter(tasks).buffer_unordered(PARALLEL).collect().await;
        let errors: Vec<String> = outcomes.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        if !errors.is_empty() {
            let errors = errors.join(", ");
            return Err(ReconcileError::failed(format!(
                "failed to orphan dependents of owner {}/{}, got errors: {errors}",
                owner.kind, owner.name
            )));
        }
        let info = owner.resource(&self.0.mapper)?;
        remove_finalizer(&cx.client, &info, owner, ORPHAN).await?;
        Ok(Next::Done)
    }
}

impl Orphaner {
    async fn release(&self, cx: &Cx, dependent: &Node, owner: &str) -> Result<(), ReconcileError> {
        let info = dependent.identity.resource(&self.0.mapper)?;
        let Some(meta) = live(&cx.client, &info, &dependent.identity).await? else { return Ok(()) };
        if !meta.owner_references.iter().any(|reference| reference.uid == owner) {
            return Ok(());
        }
        match remove_references(&cx.client, &info, &meta, &[owner.to_owned()]).await {
            Err(error) if error.is_not_found() => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}
