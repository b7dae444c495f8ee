//! The queue's promises, on paused time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use base::{Clock, TokioClock};

use super::*;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new("test", RateLimit::default(), TokioClock::shared(), Arc::new(NoMetrics))
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_is_queued_once_and_in_order() {
    let queue = queue();
    for key in ["b", "a", "b"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 2);
    assert_eq!((queue.next().await, queue.next().await), (Some("b"), Some("a")));
}

#[tokio::test(start_paused = true)]
async fn a_key_never_has_two_workers() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.next().await, Some("a"));
    queue.add("a");
    queue.add("a");
    let early = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
    assert!(early.is_err(), "the key is still worked on");
    queue.done(&"a");
    assert_eq!(queue.next().await, Some("a"));
    queue.done(&"a");
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_added_while_it_was_worked_on_comes_behind_those_that_wait() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.next().await, Some("a"));
    queue.add("b");
    queue.add("a");
    queue.done(&"a");
    assert_eq!(queue.len(), 2);
    assert_eq!((queue.next().await, queue.next().await), (Some("b"), Some("a")));
}

#[tokio::test(start_paused = true)]
async fn the_earliest_delay_wins() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", Duration::from_secs(10));
    queue.add_after("a", Duration::from_secs(3));
    queue.add_after("a", Duration::from_secs(20));
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(start.elapsed().as_secs(), 3);
    queue.done(&"a");
    assert!(queue.is_idle(), "one delayed add, not three");
}

#[tokio::test(start_paused = true)]
async fn failures_double_the_delay_until_forgotten() {
    let queue = queue();
    let mut delays = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        queue.add_rate_limited("a");
        queue.next().await;
        delays.push(start.elapsed().as_millis());
        queue.done(&"a");
    }
    // Tokio's timer rounds up to the next millisecond.
    assert_eq!(delays, [5, 10, 20, 40]);
    assert_eq!(queue.failures(&"a"), 4);
    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_drains() {
    let queue = queue();
    queue.add("a");
    queue.add_after("later", Duration::from_secs(1));
    let other = queue.clone();
    let group = base::TaskGroup::new("test");
    group.spawn("worker", async move {
        while let Some(key) = other.next().await {
            tokio::time::sleep(Duration::from_secs(5)).await;
            other.done(&key);
        }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let start = Instant::now();
    queue.drain().await;
    assert!(start.elapsed() >= Duration::from_secs(4));
    queue.add("refused");
    assert_eq!(queue.next().await, None);
    assert_eq!(group.shutdown(Duration::from_secs(1)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn every_worker_is_woken() {
    let queue = queue();
    let group = base::TaskGroup::new("test");
    let done = Arc::new(Mutex::new(0));
    for _ in 0..4 {
        let (queue, done) = (queue.clone(), Arc::clone(&done));
        group.spawn("worker", async move {
            while let Some(key) = queue.next().await {
                tokio::time::sleep(Duration::from_secs(1)).await;
                *done.lock() += 1;
                queue.done(&key);
            }
        });
    }
    let start = Instant::now();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        queue.add(key);
    }
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(*done.lock(), 8, "four workers need two rounds");
    assert!(start.elapsed() < Duration::from_secs(3));
    queue.drain().await;
    assert_eq!(group.shutdown(Duration::from_secs(1)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_all_times_is_a_long_one() {
    let queue = queue();
    queue.add_after("a", Duration::MAX);
    queue.add_after("b", Duration::from_secs(5));
    assert_eq!(queue.next().await, Some("b"));
    let early = tokio::time::timeout(Duration::from_secs(3600), queue.next()).await;
    assert!(early.is_err(), "{early:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_the_clock_may_go_or_be_busy() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(10));
    let start = Instant::now();
    let elapsed = || start.elapsed().as_secs();
    let watching = queue.next();
    let waiting = queue.next();
    tokio::pin!(waiting);
    {
        tokio::pin!(watching);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut watching).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut waiting).await.is_err());
    }
    assert_eq!((waiting.await, elapsed()), (Some("a"), 10), "the first has gone");
    queue.add_after("b", Duration::from_secs(10));
    queue.add_after("c", Duration::from_secs(20));
    let (first, second) = (queue.next(), queue.next());
    tokio::pin!(first, second);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), async { tokio::join!(&mut first, &mut second) }).await.is_err()
    );
    queue.add_after("d", Duration::from_secs(2));
    let (taken, left) = tokio::select! {
        taken = &mut first => (taken, second.as_mut()),
        taken = &mut second => (taken, first.as_mut()),
    };
    assert_eq!((taken, elapsed()), (Some("d"), 13), "it is due before what the clock was watched for");
    assert_eq!((left.await, elapsed()), (Some("b"), 20));
    assert_eq!((queue.next().await, elapsed()), (Some("c"), 30));
}

/// Counts how often it is asked.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Clock for Counting {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn monotonic(&self) -> Instant {
        self.0.fetch_add(1, Ordering::Relaxed);
        Instant::now()
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_does_not_wake_everybody() {
    const WORKERS: usize = 50;
    const TIMES: usize = 100;
    let clock = Arc::new(Counting::default());
    let queue = WorkQueue::new("test", RateLimit::default(), clock.clone(), Arc::new(NoMetrics));
    let group = base::TaskGroup::new("test");
    for _ in 0..WORKERS {
        let queue = queue.clone();
        group.spawn("worker", async move {
            while let Some(key) = queue.next().await {
                queue.add_after(key, Duration::from_secs(1));
                queue.done(&key);
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = clock.0.load(Ordering::Relaxed);
    queue.add_after("a", Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(TIMES as u64)).await;
    let each = (clock.0.load(Ordering::Relaxed) - before) / TIMES;
    assert!(each < 15, "{each} times for each key");
    queue.drain().await;
    assert_eq!(group.shutdown(Duration::from_secs(1)).await, base::Drained::All);
}
