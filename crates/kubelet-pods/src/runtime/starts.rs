//! How many sandboxes and containers are made at a time.
//!
//! A runtime that is asked for all pods of a node at once has its processes wait for one another, and needs a fifth to a
//! third more for each than when it is asked for a few per processor (`make bench-up`). So starts take turns while the processors are
//! busy: containers before sandboxes, that what was begun comes to its end, and what matters more before what matters less.
//! Nobody waits for what does not need processors: where they idle for longer than a moment more and more are let in, and a
//! start that takes very long does not count any more. Upstream asks for all at once.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use base::CancellationToken;
use parking_lot::Mutex;
use sys::proc::{Proc, ProcessorTime};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::pod::importance;

/// Starts at a time for each processor.
const PER_PROCESSOR: usize = 2;
/// A start that takes longer waits for something else than processors, whatever these do meanwhile.
const COUNTS: Duration = Duration::from_secs(10);
/// How often the processors are looked at while somebody waits.
const LOOK: Duration = Duration::from_millis(100);
/// Processors idle where they do for more than one part in so many.
const IDLE_PART: u64 = 4;

/// What the turns go by.
pub trait Processors: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// How long they have worked and idled; `None` where nobody knows.
    fn time(&self) -> Option<ProcessorTime>;
}

impl Processors for Proc {
    fn count(&self) -> usize {
        self.cpus().unwrap_or(1)
    }

    fn time(&self) -> Option<ProcessorTime> {
        self.processor_time().ok()
    }
}

/// What is started. What comes first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Container,
    Sandbox,
}

/// Gives out the turns. Somebody has to [`run`](Self::run) it.
pub struct Starts {
    processors: Arc<dyn Processors>,
    /// How many may be on at a time while the processors are busy.
    limit: usize,
    state: Mutex<State>,
    /// Somebody waits.
    queued: Notify,
}

/// Kind, importance, and the order of arrival.
type Key = (Kind, Reverse<i32>, u64);

#[derive(Default)]
struct State {
    arrivals: u64,
    waiting: BTreeMap<Key, oneshot::Sender<()>>,
    /// Those that are on, by arrival, and since when.
    on: BTreeMap<u64, Instant>,
}

/// A turn; it ends when this is dropped.
pub struct Turn<'a> {
    starts: &'a Starts,
    key: Key,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.starts.state.lock();
        state.waiting.remove(&self.key);
        state.on.remove(&self.key.2);
        state.admit(self.starts.limit);
    }
}

impl State {
    /// Lets those in that come first, until so many are on.
    fn admit(&mut self, limit: usize) {
        for _ in self.counting()..limit {
            let Some((key, waiting)) = self.waiting.pop_first() else { return };
            self.on.insert(key.2, Instant::now());
            // It may have gone: its turn ends as soon as that is noticed.
            let _ = waiting.send(());
        }
    }

    /// How many are on that have not been for long.
    fn counting(&self) -> usize {
        self.on.values().filter(|since| since.elapsed() < COUNTS).count()
    }
}

impl Starts {
    pub fn new(processors: Arc<dyn Processors>) -> Self {
        let limit = processors.count().max(1).saturating_mul(PER_PROCESSOR);
        Self { processors, limit, state: Mutex::default(), queued: Notify::new() }
    }

    /// Waits for a pod's turn; `None` where nobody waits for the pod any more.
    pub async fn turn_of(&self, pod: &Pod, kind: Kind, interrupt: &CancellationToken) -> Option<Turn<'_>> {
        interrupt.run_until_cancelled(self.turn(kind, importance(pod))).await
    }

    /// Waits for a turn. Nothing is left of it where the caller drops the future.
    async fn turn(&self, kind: Kind, importance: i32) -> Turn<'_> {
        let (turn, admitted) = {
            let mut state = self.state.lock();
            state.arrivals += 1;
            let key = (kind, Reverse(importance), state.arrivals);
            let (sender, admitted) = oneshot::channel();
            state.waiting.insert(key, sender);
            state.admit(self.limit);
            if state.waiting.contains_key(&key) {
                self.queued.notify_one();
            }
            (Turn { starts: self, key }, admitted)
        };
        // The sender is there as long as the turn is.
        let _ = admitted.await;
        turn
    }

    /// Lets more in where the processors idle, until the caller drops the future.
    pub async fn run(&self) {
        loop {
            self.queued.notified().await;
            // For a moment all that is on may wait for the disk.
            let (mut before, mut idle_looks) = (self.processors.time(), 0_u32);
            while self.is_awaited() {
                tokio::time::sleep(LOOK).await;
                let now = self.processors.time();
                idle_looks = if idles(before, now) { idle_looks.saturating_add(1) } else { 0 };
                before = now;
                let mut state = self.state.lock();
                let room = if idle_looks > 1 { state.counting().saturating_mul(2) } else { 0 };
                state.admit(self.limit.max(room));
            }
        }
    }

    fn is_awaited(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }
}

/// Whether the processors had time to spare between two moments. Where nobody knows they had.
fn idles(before: Option<ProcessorTime>, now: Option<ProcessorTime>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return true };
    let idle = now.idle_ticks.saturating_sub(before.idle_ticks);
    let busy = now.busy_ticks.saturating_sub(before.busy_ticks);
    idle.saturating_mul(IDLE_PART) > idle.saturating_add(busy)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use base::TaskGroup;

    use super::*;

    /// Two processors that are all idle or not at all.
    #[derive(Default)]
    struct Switched {
        idle: AtomicBool,
        time: Mutex<ProcessorTime>,
    }

    impl Processors for Switched {
        fn count(&self) -> usize {
            2
        }

        fn time(&self) -> Option<ProcessorTime> {
            let mut time = self.time.lock();
            let part = if self.idle.load(Ordering::Relaxed) { &mut time.idle_ticks } else { &mut time.busy_ticks };
            *part += 20;
            Some(*time)
        }
    }

    struct Bench {
        processors: Arc<Switched>,
        starts: Arc<Starts>,
        began: Arc<Mutex<Vec<&'static str>>>,
        /// Who is told to go, in the order in which they came.
        goes: Vec<CancellationToken>,
        tasks: TaskGroup,
    }

    impl Bench {
        fn new() -> Self {
            let processors = Arc::<Switched>::default();
            let starts = Arc::new(Starts::new(processors.clone()));
            let running = Arc::clone(&starts);
            let tasks = TaskGroup::new("test");
            tasks.spawn_cancellable("starts", async move { running.run().await });
            Self { processors, starts, began: Arc::default(), goes: Vec::new(), tasks }
        }

        /// Somebody who wants to start something that takes so long.
        async fn begin(&mut self, name: &'static str, kind: Kind, priority: i32, takes: Duration) {
            let (starts, began) = (Arc::clone(&self.starts), Arc::clone(&self.began));
            let goes = CancellationToken::new();
            self.goes.push(goes.clone());
            self.tasks.spawn_cancellable("start", async move {
                let starting = async {
                    let _turn = starts.turn(kind, priority).await;
                    began.lock().push(name);
                    tokio::time::sleep(takes).await;
                };
                goes.run_until_cancelled(starting).await;
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
        }

        async fn began_within(&self, millis: u64) -> String {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            self.began.lock().drain(..).collect::<Vec<_>>().join(" ")
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_few_start_at_a_time_and_what_was_begun_and_matters_goes_first() {
        let mut bench = Bench::new();
        for name in ["1", "2", "3", "4"] {
            bench.begin(name, Kind::Sandbox, 0, SECOND).await;
        }
        bench.begin("later", Kind::Sandbox, 0, SECOND).await;
        bench.begin("unimportant", Kind::Sandbox, -5, SECOND).await;
        bench.begin("important", Kind::Sandbox, 2_000_000_000, SECOND).await;
        bench.begin("container", Kind::Container, 0, SECOND).await;
        bench.begin("last", Kind::Sandbox, -5, SECOND).await;
        assert_eq!(bench.began_within(900).await, "1 2 3 4");
        assert_eq!(bench.began_within(900).await, "container important later unimportant");
        assert_eq!(bench.began_within(900).await, "last");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_what_needs_no_processor() {
        let mut bench = Bench::new();
        for name in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] {
            bench.begin(name, Kind::Sandbox, 0, 60 * SECOND).await;
        }
        assert_eq!(bench.began_within(9900).await, "1 2 3 4");
        assert_eq!(bench.began_within(200).await, "5 6 7 8", "what takes very long does not count");
        bench.processors.idle.store(true, Ordering::Relaxed);
        assert_eq!(bench.began_within(130).await, "", "that is a moment");
        assert_eq!(bench.began_within(100).await, "9 10");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_goes_leaves_nothing() {
        let mut bench = Bench::new();
        for name in ["1", "2", "3", "4", "5", "6"] {
            bench.begin(name, Kind::Sandbox, 0, SECOND).await;
        }
        // One that waits, and one that is on.
        bench.goes[4].cancel();
        bench.goes[0].cancel();
        assert_eq!(bench.began_within(10).await, "1 2 3 4 6");
        assert_eq!(bench.began_within(2000).await, "");
        let state = bench.starts.state.lock();
        assert!(state.on.is_empty() && state.waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_not_waited_for_has_no_turn() {
        let (bench, interrupt) = (Bench::new(), CancellationToken::new());
        assert!(bench.starts.turn_of(&Pod::default(), Kind::Sandbox, &interrupt).await.is_some());
        interrupt.cancel();
        assert!(bench.starts.turn_of(&Pod::default(), Kind::Sandbox, &interrupt).await.is_none());
        assert!(bench.starts.state.lock().waiting.is_empty());
    }

    #[test]
    fn pods_of_the_system_go_first_though_they_do_not_say_so() {
        let mut of_a_file = Pod::default();
        of_a_file.metadata.annotations.insert(crate::pod::CONFIG_SOURCE.into(), "file".into());
        let mut of_a_user = Pod::default();
        of_a_user.spec.priority = Some(1000);
        assert!(importance(&of_a_file) > importance(&of_a_user));
        assert!(importance(&of_a_user) > importance(&Pod::default()));
    }

    #[test]
    fn processors_idle_where_a_good_part_of_them_does() {
        let time = |busy_ticks, idle_ticks| Some(ProcessorTime { busy_ticks, idle_ticks });
        for (before, now, expected) in [
            (time(0, 0), time(20, 0), false),
            (time(0, 0), time(15, 5), false),
            (time(0, 0), time(14, 6), true),
            (time(50, 50), time(50, 50), false),
            // The kernel's idle time may step back.
            (time(50, 50), time(60, 40), false),
            (None, time(20, 0), true),
        ] {
            assert_eq!(idles(before, now), expected, "{before:?} {now:?}");
        }
    }
}
