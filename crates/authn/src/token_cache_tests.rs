//! What is remembered, for how long, and that equal look-ups share one.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use base::TokioClock;
use component_base::metrics::MetricsOptions;
use tokio::sync::Notify;

use super::*;

#[derive(Default)]
struct Counting {
    calls: AtomicUsize,
    gate: Notify,
}

#[async_trait]
impl TokenAuthenticator for Counting {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Answer {
        self.calls.fetch_add(1, SeqCst);
        match token {
            "slow" => self.gate.notified().await,
            "stuck" => std::future::pending().await,
            "panic" => panic!("a bug"),
            "bad" => return Err(AuthnError::refused("bad")),
            "none" => return Ok(None),
            _ => {}
        }
        Ok(Some(Identity { audiences: audiences.to_vec(), ..Identity::new(token, Vec::new()) }))
    }
}

fn cache() -> (Arc<Counting>, Arc<TokenCache>, TaskGroup) {
    let inner = Arc::new(Counting::default());
    let tasks = TaskGroup::new("test");
    let dynamic: Arc<dyn TokenAuthenticator> = Arc::<Counting>::clone(&inner);
    let cache = TokenCache::new(dynamic, SUCCESS_TTL, TokioClock::shared(), &Rng::seeded(1), tasks.clone());
    (inner, Arc::new(cache), tasks)
}

#[tokio::test(start_paused = true)]
async fn successes_live_ten_seconds_and_failures_not_at_all() {
    let (inner, cache, _tasks) = cache();
    let calls = || inner.calls.load(SeqCst);
    for _ in 0..3 {
        assert!(cache.authenticate_token("a", &[]).await.unwrap().is_some());
    }
    assert_eq!(calls(), 1);
    let audiences = ["x".to_owned()];
    assert_eq!(cache.authenticate_token("a", &audiences).await.unwrap().unwrap().audiences, audiences);
    assert_eq!(calls(), 2, "other audiences are another question");
    tokio::time::advance(SUCCESS_TTL).await;
    cache.authenticate_token("a", &[]).await.unwrap();
    assert_eq!(calls(), 3);
    for token in ["bad", "bad", "none", "none"] {
        assert!(!matches!(cache.authenticate_token(token, &[]).await, Ok(Some(_))));
    }
    assert_eq!(calls(), 7);
}

#[tokio::test(start_paused = true)]
async fn questions_and_lookups_are_counted() {
    let metrics = Metrics::new(MetricsOptions::default());
    let (_inner, cache, _tasks) = cache();
    let cache = Arc::into_inner(cache).expect("nobody else has it").counted(&metrics);
    for (token, ok) in [("a", true), ("a", true), ("bad", false)] {
        assert_eq!(cache.authenticate_token(token, &[]).await.is_ok(), ok);
    }
    let text = metrics.text();
    for line in [
        "request_total{status=\"hit\"} 1",
        "request_total{status=\"miss\"} 2",
        "fetch_total{status=\"ok\"} 1",
        "fetch_total{status=\"error\"} 1",
        "active_fetch_count{status=\"blocked\"} 0",
        "active_fetch_count{status=\"in_flight\"} 0",
        "request_duration_seconds_count{status=\"miss\"} 2",
    ] {
        assert!(text.contains(&format!("authentication_token_cache_{line}")), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_lookups_share_one_that_outlives_its_callers() {
    let (inner, cache, tasks) = cache();
    let first = tokio::time::timeout(Duration::from_secs(1), cache.authenticate_token("slow", &[])).await;
    assert!(first.is_err(), "the first caller gave up");
    let waiting = TaskGroup::new("callers");
    let (answers, mut received) = tokio::sync::mpsc::channel(2);
    for _ in 0..2 {
        let (cache, answers) = (Arc::clone(&cache), answers.clone());
        waiting.spawn("caller", async move {
            answers.send(cache.authenticate_token("slow", &[]).await).await.unwrap();
        });
    }
    tokio::task::yield_now().await;
    inner.gate.notify_one();
    for _ in 0..2 {
        assert!(received.recv().await.unwrap().unwrap().is_some());
    }
    assert_eq!(inner.calls.load(SeqCst), 1);
    assert!(tasks.running().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stuck_or_panicking_lookup_ends_for_its_callers() {
    let (_inner, cache, _tasks) = cache();
    assert_eq!(cache.authenticate_token("stuck", &[]).await, Err(AuthnError::Timeout));
    let error = cache.authenticate_token("panic", &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "authentication failed unexpectedly");
    assert!(cache.shared.state.lock().flights.is_empty());
}
