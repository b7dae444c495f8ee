//! Pods bound to this node, from the API server: all of them once, then what changes.
//!
//! What a watch missed is no reason to tell everything again: the informer compares the new list with what it had, and
//! tells the difference as changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use client::{Informers, Scope};
use tokio::sync::mpsc;

use super::mailbox::Mailbox;
use super::{Delivery, PodEvent, Source, SourceSet};

/// Delivers until the receiver is gone or the caller drops the future.
pub(crate) async fn run(informers: Informers, node_name: String, deliveries: mpsc::Sender<Delivery>) {
    let pods = informers.scoped::<Pod>(&Scope::fields(&format!("spec.nodeName={node_name}")));
    let mailbox = Arc::new(Mailbox::default());
    let handler = Arc::clone(&mailbox);
    pods.subscribe(move |change| handler.put(change));
    pods.start();
    pods.wait_synced().await;
    let mut first = true;
    loop {
        // Taken only once there is room, so that what comes while the loop is busy comes together.
        let Ok(room) = deliveries.reserve().await else { return };
        let events = mailbox.take();
        if std::mem::take(&mut first) {
            room.send(all(events));
        } else if !events.is_empty() {
            room.send(Delivery::Changes(events));
        }
        mailbox.arrived().await;
    }
}

/// The first events are all pods: the informer told each that it found.
fn all(events: Vec<PodEvent>) -> Delivery {
    let there = |event| match event {
        PodEvent::Is(pod) => Some(pod),
        PodEvent::Gone(_) => None,
    };
    let pods = events.into_iter().filter_map(there).collect();
    Delivery::All(SourceSet { source: Source::Api, pods, whole: true, written: BTreeMap::new() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TaskGroup;
    use client::InformerOptions;
    use client::fake::FakeServer;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, uid: &str, phase: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": uid},
            "spec": {"nodeName": "n"}, "status": {"phase": phase}
        })
    }

    fn start(server: &FakeServer, room: usize) -> (mpsc::Receiver<Delivery>, TaskGroup) {
        let (sender, received) = mpsc::channel(room);
        let options = InformerOptions { identities_only: true, ..InformerOptions::default() };
        let informers = Informers::new(&server.client(), options);
        let tasks = TaskGroup::new("test");
        tasks.spawn_cancellable("source", run(informers, "n".to_owned(), sender));
        (received, tasks)
    }

    async fn next(deliveries: &mut mpsc::Receiver<Delivery>) -> Vec<String> {
        let is = |pod: &Arc<Pod>| format!("{}/{} {}", pod.metadata.name, pod.metadata.uid, pod.status.phase);
        let waited = tokio::time::timeout(Duration::from_secs(60), deliveries.recv()).await;
        match waited.expect("nothing is delivered").unwrap() {
            Delivery::All(set) => {
                assert!(set.whole);
                std::iter::once("all".to_owned()).chain(set.pods.iter().map(is)).collect()
            }
            Delivery::Changes(events) => {
                let text = |event: &PodEvent| match event {
                    PodEvent::Is(pod) => is(pod),
                    PodEvent::Gone(uid) => format!("-{uid}"),
                };
                events.iter().map(text).collect()
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_pods_are_told_once_and_then_what_changes() {
        let server = FakeServer::new();
        let (mut deliveries, tasks) = start(&server, 10);
        assert_eq!(next(&mut deliveries).await, ["all"], "an empty set is told too");
        tasks.shutdown(Duration::from_secs(5)).await;
        for index in 0..500 {
            server.put("v1/pods", pod(&format!("p{index:03}"), &format!("u{index}"), "Pending"));
        }
        let (mut deliveries, tasks) = start(&server, 10);
        assert_eq!(next(&mut deliveries).await.len(), 501);
        server.put("v1/pods", pod("p007", "u7", "Running"));
        assert_eq!(next(&mut deliveries).await, ["p007/u7 Running"]);
        server.remove("v1/pods", "default", "p007");
        assert_eq!(next(&mut deliveries).await, ["-u7"]);
        tasks.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_watch_missed_is_told_as_changes() {
        let server = FakeServer::new();
        for name in ["a", "b", "c"] {
            server.put("v1/pods", pod(name, name, "Pending"));
        }
        let (mut deliveries, tasks) = start(&server, 10);
        assert_eq!(next(&mut deliveries).await.len(), 4);
        server.remove("v1/pods", "default", "a");
        server.remove("v1/pods", "default", "b");
        server.put("v1/pods", pod("b", "other", "Pending"));
        server.compact();
        server.cut_watches();
        let (mut told, expected) = (Vec::new(), ["-a", "-b", "b/other Pending"]);
        while told.len() < expected.len() {
            told.extend(next(&mut deliveries).await);
        }
        assert_eq!(told, expected);
        tasks.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_nobody_listens_comes_together() {
        let server = FakeServer::new();
        server.put("v1/pods", pod("a", "1", "Pending"));
        let (mut deliveries, tasks) = start(&server, 1);
        // The first set fills the channel until it is taken.
        tokio::time::sleep(Duration::from_secs(10)).await;
        for phase in ["Running", "Succeeded"] {
            server.put("v1/pods", pod("a", "1", phase));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        server.remove("v1/pods", "default", "a");
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.put("v1/pods", pod("a", "2", "Pending"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(next(&mut deliveries).await, ["all", "a/1 Pending"]);
        assert_eq!(next(&mut deliveries).await, ["-1", "a/2 Pending"]);
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}
