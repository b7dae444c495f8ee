//! Pods bound to this node, from the API server: every change hands over the complete set.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use client::{Informers, Scope};
use tokio::sync::{Notify, mpsc};

use super::{Source, SourceSet};

/// Delivers sets until the receiver is gone or the caller drops the future.
pub(crate) async fn run(informers: Informers, node_name: String, sets: mpsc::Sender<SourceSet>) {
    let pods = informers.scoped::<Pod>(&Scope::fields(&format!("spec.nodeName={node_name}")));
    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    pods.subscribe(move |_| notify.notify_one());
    pods.start();
    pods.wait_synced().await;
    loop {
        let all = pods.list().iter().map(|pod| Pod::clone(pod)).collect();
        if sets.send(SourceSet { source: Source::Api, pods: all, whole: true, written: BTreeMap::new() }).await.is_err()
        {
            return;
        }
        changed.notified().await;
    }
}
