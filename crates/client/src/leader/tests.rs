//! Elections on paused time against the fake server.

use std::time::SystemTime;

use api_types::coordination_v1::Lease;
use base::{Rng, StandingClock, TaskGroup};
use http::StatusCode;

use super::*;
use crate::fake::FakeServer;
use crate::transport::{FaultLayer, Faults};

fn config(seed: u64) -> LeaderConfig {
    LeaderConfig::new("kube-system", "test", &format!("host{seed}"), &Rng::seeded(seed))
}

fn candidate(server: &FakeServer, seed: u64) -> LeaderElector {
    LeaderElector::new(&server.client(), config(seed), None).unwrap()
}

async fn lease(server: &FakeServer) -> Lease {
    server.client().namespaced::<Lease>("kube-system").get("test").await.unwrap()
}

#[test]
fn times_must_make_sense() {
    let long = Duration::from_secs(20);
    type Change = fn(&mut LeaderConfig, Duration);
    let cases: [(&str, Change); 3] = [
        ("leaseDuration must be greater than renewDeadline", |config, long| config.renew_deadline = long),
        ("renewDeadline must be greater than retryPeriod*JitterFactor", |config, _| {
            config.retry_period = Duration::from_secs(9);
        }),
        ("Lock identity is empty", |config, _| config.identity.clear()),
    ];
    for (text, change) in cases {
        let mut config = config(1);
        change(&mut config, long);
        assert_eq!(config.validate().unwrap_err().to_string(), format!("invalid configuration: {text}"));
    }
    assert!(config(1).validate().is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_another_follows_after_the_lease_has_run_out() {
    let server = FakeServer::new();
    let group = TaskGroup::new("test");
    let (first, second) = (candidate(&server, 1), candidate(&server, 2));
    let stop_first = CancellationToken::new();
    let (elector, stop) = (first.clone(), stop_first.clone());
    group.spawn_cancellable("first", async move {
        elector.run(stop, |_| std::future::pending()).await;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(first.is_leader());
    let elector = second.clone();
    group.spawn_cancellable("second", async move {
        elector.run(CancellationToken::new(), |_| std::future::pending()).await;
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(first.is_leader() && !second.is_leader(), "a renewed lease is never taken over");
    assert_eq!(second.leader(), first.config.identity);
    let held = lease(&server).await;
    assert_eq!((held.spec.lease_duration_seconds, held.spec.lease_transitions), (Some(15), Some(0)));

    stop_first.cancel();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(!second.is_leader(), "the lease was not given back, so it runs out first");
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert!(second.is_leader());
    assert_eq!(lease(&server).await.spec.lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_clock_stands_renews_its_lease() {
    let server = FakeServer::new();
    let client = server.client_on(Arc::new(StandingClock(SystemTime::UNIX_EPOCH)));
    let (first, second) = (LeaderElector::new(&client, config(1), None).unwrap(), candidate(&server, 2));
    let group = TaskGroup::new("test");
    for elector in [first.clone(), second.clone()] {
        group.spawn_cancellable("candidate", async move {
            elector.run(CancellationToken::new(), |_| std::future::pending()).await;
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(first.is_leader() && !second.is_leader());
    assert_eq!(lease(&server).await.spec.lease_transitions, Some(0), "nobody led meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free_at_once() {
    let server = FakeServer::new();
    let mut config = config(1);
    config.release_on_stop = true;
    let elector = LeaderElector::new(&server.client(), config, None).unwrap();
    let stop = CancellationToken::new();
    let end = elector
        .run(stop.clone(), |_| async move {
            stop.cancel();
            tokio::task::yield_now().await;
        })
        .await;
    assert_eq!(end, LeaderEnd::Stopped);
    let released = lease(&server).await;
    assert_eq!((released.spec.holder_identity.as_deref(), released.spec.lease_duration_seconds), (Some(""), Some(1)));
    let end = candidate(&server, 2).run(CancellationToken::new(), |_| async {}).await;
    assert_eq!(end, LeaderEnd::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_until_the_work_has_ended() {
    let server = FakeServer::new();
    let config = LeaderConfig { release_on_stop: true, ..config(1) };
    let elector = LeaderElector::new(&server.client(), config, None).unwrap();
    let (group, stop) = (TaskGroup::new("test"), CancellationToken::new());
    let (first, until) = (elector.clone(), stop.clone());
    // Longer than a lease lasts that nobody renews.
    let winds_up = Duration::from_secs(20);
    group.spawn_cancellable("first", async move {
        let end = first
            .run(until, |leading| async move {
                leading.cancelled().await;
                tokio::time::sleep(winds_up).await;
            })
            .await;
        assert_eq!(end, LeaderEnd::Stopped);
    });
    let second = candidate(&server, 2);
    let follower = second.clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    group.spawn_cancellable("second", async move {
        follower.run(CancellationToken::new(), |_| std::future::pending()).await;
    });
    stop.cancel();
    tokio::time::sleep(winds_up - Duration::from_secs(1)).await;
    assert!(elector.is_leader() && !second.is_leader(), "it still works");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(!elector.is_leader() && second.is_leader(), "it was given back at the end of the work");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_the_work_ends_is_not_given_back() {
    let server = FakeServer::new();
    let config = LeaderConfig { release_on_stop: true, ..config(1) };
    let elector = LeaderElector::new(&server.client(), config, None).unwrap();
    let (stop, lease_of_another) = (CancellationToken::new(), server.clone());
    let start = Instant::now();
    let end = elector
        .run(stop.clone(), |_| async move {
            lease_of_another.put("coordination.k8s.io/v1/leases", held_by_another());
            stop.cancel();
            std::future::pending().await
        })
        .await;
    assert_eq!(end, LeaderEnd::Stopped);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "work that ends no more is not waited for: {:?}",
        start.elapsed()
    );
    assert_eq!(lease(&server).await.spec.holder_identity.as_deref(), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_steps_down_before_another_may_lead() {
    let server = FakeServer::new();
    let layer = Arc::new(FaultLayer::new(server.transport(), Faults::default(), Rng::seeded(1)));
    let client = server.client_over(Arc::<FaultLayer>::clone(&layer));
    let elector = LeaderElector::new(&client, config(1), None).unwrap();
    let start = Instant::now();
    let work_ended = Arc::new(Mutex::new(None));
    let ended = Arc::clone(&work_ended);
    let group = TaskGroup::new("work");
    let end = elector
        .run(CancellationToken::new(), |leading| async move {
            group.spawn("work", async move {
                leading.cancelled().await;
                *ended.lock() = Some(Instant::now());
            });
            tokio::time::sleep(Duration::from_secs(30)).await;
            layer.set(Faults { error: 1.0, statuses: vec![StatusCode::INTERNAL_SERVER_ERROR], ..Faults::default() });
            std::future::pending().await
        })
        .await;
    assert_eq!(end, LeaderEnd::Lost);
    assert!(!elector.is_leader());
    tokio::task::yield_now().await;
    let lost = work_ended.lock().expect("the work's token is cancelled") - start;
    assert!(lost > Duration::from_secs(39) && lost < Duration::from_secs(45), "{lost:?}");
    assert!(elector.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_cost_the_leadership() {
    let server = FakeServer::new();
    let faults = Faults { drop_response: 0.3, ..Faults::default() };
    let layer = Arc::new(FaultLayer::new(server.transport(), faults, Rng::seeded(3)));
    let client = server.client_over(layer);
    let elector = LeaderElector::new(&client, config(1), None).unwrap();
    let end = elector.run(CancellationToken::new(), |_| tokio::time::sleep(Duration::from_secs(300))).await;
    assert_eq!(end, LeaderEnd::Finished);
}

/// Answers late, or never, and notes when it was asked to write last.
struct Late {
    inner: Arc<dyn crate::transport::Transport>,
    state: Mutex<Lateness>,
}

struct Lateness {
    delay: Duration,
    written: Instant,
}

#[async_trait::async_trait]
impl crate::transport::Transport for Late {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<crate::transport::Body>, crate::transport::TransportError> {
        let delay = self.state.lock().delay;
        if delay == Duration::MAX {
            return std::future::pending().await;
        }
        if request.method() != http::Method::GET {
            self.state.lock().written = Instant::now();
        }
        let answer = self.inner.send(request).await;
        tokio::time::sleep(delay).await;
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn late_answers_do_not_make_a_lease_last_longer() {
    let server = FakeServer::new();
    let state = Mutex::new(Lateness { delay: Duration::ZERO, written: Instant::now() });
    let late = Arc::new(Late { inner: server.transport(), state });
    let elector = LeaderElector::new(&server.client_over(Arc::<Late>::clone(&late)), config(1), None).unwrap();
    let server = Arc::clone(&late);
    let end = elector
        .run(CancellationToken::new(), |_| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            server.state.lock().delay = Duration::from_millis(4500);
            tokio::time::sleep(Duration::from_secs(6)).await;
            server.state.lock().delay = Duration::MAX;
            std::future::pending().await
        })
        .await;
    assert_eq!(end, LeaderEnd::Lost);
    let led = late.state.lock().written.elapsed();
    assert!(led <= Duration::from_secs(15), "led for {led:?} with a lease of 15 s");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_does_not_make_a_new_lease_last_longer() {
    let server = FakeServer::new();
    let state = Mutex::new(Lateness { delay: Duration::from_millis(4500), written: Instant::now() });
    let late = Arc::new(Late { inner: server.transport(), state });
    let elector = LeaderElector::new(&server.client_over(Arc::<Late>::clone(&late)), config(1), None).unwrap();
    let server = Arc::clone(&late);
    let end = elector
        .run(CancellationToken::new(), |_| async move {
            server.state.lock().delay = Duration::MAX;
            std::future::pending().await
        })
        .await;
    assert_eq!(end, LeaderEnd::Lost);
    let led = late.state.lock().written.elapsed();
    assert!(led <= Duration::from_secs(15), "led for {led:?} with a lease of 15 s");
}

#[tokio::test(start_paused = true)]
async fn who_stops_gives_back_only_what_is_its_own() {
    let server = FakeServer::new();
    let mut config = config(1);
    config.release_on_stop = true;
    let elector = LeaderElector::new(&server.client(), config, None).unwrap();
    let (stop, lease_of_another) = (CancellationToken::new(), server.clone());
    let end = elector
        .run(stop.clone(), |_| async move {
            lease_of_another.put("coordination.k8s.io/v1/leases", held_by_another());
            stop.cancel();
            tokio::task::yield_now().await;
        })
        .await;
    assert_eq!(end, LeaderEnd::Stopped);
    assert_eq!(lease(&server).await.spec.holder_identity.as_deref(), Some("other"));
}

fn held_by_another() -> api_machinery::value::Value {
    let text = r#"{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "test", "namespace": "kube-system"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15}}"#;
    api_machinery::json::parse_value(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_sees_another_in_its_place_stops_at_once() {
    let server = FakeServer::new();
    let elector = candidate(&server, 1);
    let taken = Arc::new(Mutex::new(None));
    let (lease, at) = (server.clone(), Arc::clone(&taken));
    let end = elector
        .run(CancellationToken::new(), |_| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            lease.put("coordination.k8s.io/v1/leases", held_by_another());
            *at.lock() = Some(Instant::now());
            std::future::pending().await
        })
        .await;
    assert_eq!(end, LeaderEnd::Lost);
    let went_on = taken.lock().unwrap().elapsed();
    assert!(went_on < Duration::from_secs(3), "{went_on:?}");
}

/// An instance of an election that the test decides.
fn coordinated(server: &FakeServer, seed: u64) -> LeaderElector {
    let candidacy = Candidacy { binary_version: "1.36.0".to_owned(), emulation_version: "1.35.0".to_owned() };
    let config = LeaderConfig { coordinated: Some(candidacy), ..config(seed) };
    LeaderElector::new(&server.client(), config, None).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_coordinated_candidate_leads_while_it_is_told_to() {
    use api_machinery::meta::ObjectMeta;
    use api_machinery::time::MicroTime;
    use api_types::coordination_v1::LeaseSpec;
    use api_types::coordination_v1beta1::LeaseCandidate;

    let server = FakeServer::new();
    let group = TaskGroup::new("test");
    let elector = coordinated(&server, 1);
    let (own, ended) = (elector.clone(), CancellationToken::new());
    let told = ended.clone();
    group.spawn_cancellable("candidate", async move {
        assert_eq!(own.run(CancellationToken::new(), |_| std::future::pending()).await, LeaderEnd::Lost);
        told.cancel();
    });
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!elector.is_leader(), "nobody gave it the lease");
    let (name, client) = (elector.config.identity.clone(), server.client());
    let candidates = client.namespaced::<LeaseCandidate>("kube-system");
    let mut candidate = candidates.get(&name).await.unwrap();
    assert_eq!((candidate.spec.lease_name.as_str(), candidate.spec.emulation_version.as_str()), ("test", "1.35.0"));
    assert_eq!(candidate.spec.strategy, "OldestEmulationVersion");

    let asked = MicroTime::from(client.clock().wall()) + Duration::from_secs(1);
    candidate.spec.ping_time = Some(asked);
    candidates.update(&candidate).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(candidates.get(&name).await.unwrap().spec.renew_time >= Some(asked), "it is there");

    let leases = client.namespaced::<Lease>("kube-system");
    let now = Some(MicroTime::from(client.clock().wall()));
    let metadata = ObjectMeta { name: "test".to_owned(), namespace: "kube-system".to_owned(), ..ObjectMeta::default() };
    let spec = LeaseSpec {
        holder_identity: Some(name.clone()),
        lease_duration_seconds: Some(5),
        renew_time: now,
        strategy: Some("OldestEmulationVersion".to_owned()),
        ..LeaseSpec::default()
    };
    leases.create(&Lease { metadata, spec }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(elector.is_leader());
    let mut held = lease(&server).await;
    assert_eq!(
        (held.spec.lease_duration_seconds, held.spec.strategy.as_deref()),
        (Some(15), Some("OldestEmulationVersion"))
    );

    held.spec.preferred_holder = Some("another".to_owned());
    while leases.update(&held).await.is_err() {
        held = lease(&server).await;
        held.spec.preferred_holder = Some("another".to_owned());
    }
    tokio::time::timeout(Duration::from_secs(10), ended.cancelled()).await.expect("it steps down");
    assert!(!elector.is_leader());
    assert_eq!(lease(&server).await.spec.preferred_holder.as_deref(), Some("another"));
}
