//! Candidates of an API server that has none, or has them later.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Rng, TaskGroup};
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::fake::FakeServer;
use crate::transport::{Body, Transport, TransportError};

/// A server that knows no candidates until it is told to, and counts who asks.
struct Without {
    inner: Arc<dyn Transport>,
    serves: AtomicBool,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Transport for Without {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.uri().path().contains("/leasecandidates") && !self.serves.load(Ordering::SeqCst) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            return Ok(component_base::serving::text(StatusCode::NOT_FOUND, "404 page not found\n"));
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

/// Notes what is worth a warning in the log.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text += &format!("{value:?} ");
        });
        self.0.lock().push(text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn that_no_candidates_are_served_is_told_once() {
    let warnings = Warnings::default();
    let _logging = tracing::subscriber::set_default(warnings.clone());
    let server = FakeServer::new();
    let without = Without { inner: server.transport(), serves: AtomicBool::new(false), asked: AtomicUsize::default() };
    let without = Arc::new(without);
    let client = server.client_over(Arc::<Without>::clone(&without));
    let config = LeaderConfig::new("kube-system", "test", "host", &Rng::seeded(1));
    let (group, stands, own) = (TaskGroup::new("test"), client.clone(), config.clone());
    group.spawn_cancellable("candidate", async move {
        let candidacy = Candidacy { binary_version: "1.36.0".to_owned(), emulation_version: "1.36.0".to_owned() };
        stand(&stands, &own, &candidacy).await;
    });
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked = without.asked.load(Ordering::SeqCst);
    assert!((10..40).contains(&asked), "{asked} times in ten minutes");
    let told = warnings.0.lock().clone();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("CoordinatedLeaderElection"), "{told:#?}");
    without.serves.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let stood = client.namespaced::<LeaseCandidate>("kube-system").get_opt(&config.identity).await.unwrap();
    assert_eq!(stood.map(|candidate| candidate.spec.lease_name), Some("test".to_owned()));
    // Nobody asks, and it is heard of nevertheless: who is not for half an hour counts as gone.
    let renewed = async || {
        let own = client.namespaced::<LeaseCandidate>("kube-system").get(&config.identity).await.unwrap();
        own.spec.renew_time.unwrap()
    };
    let mut before = renewed().await;
    for round in 0..3 {
        tokio::time::sleep(Duration::from_secs(301)).await;
        let now = renewed().await;
        assert!(now > before, "round {round}");
        before = now;
    }
}
