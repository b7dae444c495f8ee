//! One level under load, in simulated time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::shuffle::flow_hash;

const MS: Duration = Duration::from_millis(1);

/// Notes the ids of those that run, in order.
#[derive(Debug, Clone)]
struct Noted(u64, Arc<Mutex<Vec<u64>>>);

impl Caller for Noted {
    fn dispatched(&mut self, _: u32, _: Option<Duration>) {
        self.1.lock().push(self.0);
    }
}

struct Level {
    queues: FairQueues<Noted>,
    order: Arc<Mutex<Vec<u64>>>,
}

impl Level {
    fn new(kind: Kind, limit: u32) -> Self {
        Self { queues: FairQueues::new(Duration::ZERO, kind, limit), order: Arc::default() }
    }

    fn arrive(&mut self, at: Duration, id: u64, hash: u64, work: Work) -> Result<Passed, Reason> {
        let caller = Noted(id, Arc::clone(&self.order));
        self.queues.arrive(at, Arrival { hash, work, caller }).map_err(|refused| refused.reason)
    }

    fn ran(&self) -> Vec<u64> {
        self.order.lock().clone()
    }
}

fn queuing(queues: usize, hand: usize, length_limit: usize) -> Kind {
    Kind::Queue(Queuing { dealer: Dealer::new(queues, hand).expect("a dealer"), length_limit })
}

fn seats(initial_seats: u32) -> Work {
    Work { initial_seats, ..Work::default() }
}

fn ticket(passed: Result<Passed, Reason>) -> Ticket {
    match passed.expect("room") {
        Passed::Runs(ticket) | Passed::Waits(ticket) => ticket,
    }
}

#[test]
fn levels_without_queues_refuse() {
    let mut level = Level::new(Kind::Reject, 2);
    let first = ticket(level.arrive(MS, 1, 0, seats(1)));
    assert_eq!(level.arrive(MS, 2, 0, seats(2)).err(), Some(Reason::ConcurrencyLimit));
    assert_eq!(level.arrive(MS, 3, 0, seats(3)).err(), Some(Reason::ConcurrencyLimit), "too wide, and not alone");
    level.queues.finish(MS * 2, first);
    assert!(matches!(level.arrive(MS * 2, 4, 0, seats(3)), Ok(Passed::Runs(_))), "alone, the widest one runs");
    assert_eq!(level.queues.counts().rejected, 2);
}

#[test]
fn exempt_levels_never_refuse() {
    let mut level = Level::new(Kind::Exempt, 0);
    let tickets: Vec<Ticket> = (0..1000).map(|id| ticket(level.arrive(MS, id, 0, seats(10)))).collect();
    assert_eq!((level.queues.counts().executing, level.queues.counts().seats_in_use), (1000, 10_000));
    for ticket in tickets {
        assert_eq!(level.queues.finish(MS * 2, ticket), None);
    }
    assert!(level.queues.is_idle());
}

#[test]
fn queues_fill_up_and_are_left() {
    let mut level = Level::new(queuing(1, 1, 2), 1);
    let first = ticket(level.arrive(MS, 1, 0, seats(1)));
    let second = ticket(level.arrive(MS, 2, 0, seats(1)));
    ticket(level.arrive(MS, 3, 0, seats(1)));
    assert_eq!(level.arrive(MS, 4, 0, seats(1)).err(), Some(Reason::QueueFull));
    assert!(level.queues.give_up(MS * 2, second, Reason::TimeOut));
    assert!(!level.queues.give_up(MS * 2, second, Reason::TimeOut), "once only");
    assert!(!level.queues.give_up(MS * 2, first, Reason::TimeOut), "it runs");
    ticket(level.arrive(MS * 2, 5, 0, seats(1)));
    level.queues.finish(MS * 3, first);
    assert_eq!(level.ran(), [1, 3]);
    let counts = level.queues.counts();
    assert_eq!((counts.waiting, counts.executing, counts.timed_out, counts.rejected), (1, 1, 1, 1));
    level.queues.set_limit(MS * 4, 2);
    assert_eq!(level.ran(), [1, 3, 5]);
}

#[test]
fn wide_requests_wait_for_their_seats() {
    let mut level = Level::new(queuing(4, 1, 10), 4);
    let first = ticket(level.arrive(MS, 1, 0, seats(3)));
    ticket(level.arrive(MS, 2, 1, seats(2)));
    // It would fit beside the first, but a smaller one must not keep a wider one waiting for ever.
    ticket(level.arrive(MS, 3, 1, seats(1)));
    assert_eq!(level.ran(), [1]);
    level.queues.finish(MS * 2, first);
    assert_eq!(level.ran(), [1, 2, 3]);
}

#[test]
fn what_follows_a_request_keeps_its_seats() {
    let mut level = Level::new(queuing(1, 1, 10), 2);
    let work = Work { initial_seats: 1, final_seats: 2, extra: 5 * MS };
    let first = ticket(level.arrive(MS, 1, 0, work));
    assert_eq!(level.queues.counts().seats_in_use, 2);
    ticket(level.arrive(MS, 2, 0, seats(1)));
    assert_eq!(level.queues.finish(3 * MS, first), Some(8 * MS));
    assert_eq!((level.ran(), level.queues.counts().executing), (vec![1], 0));
    assert_eq!(level.queues.tick(7 * MS), Some(8 * MS));
    assert_eq!(level.queues.tick(8 * MS), None);
    assert_eq!(level.ran(), [1, 2]);
}

/// More final seats than there are become fewer for longer.
#[test]
fn what_follows_fits_the_level() {
    let mut level = Level::new(queuing(1, 1, 10), 2);
    let work = Work { initial_seats: 1, final_seats: 8, extra: 5 * MS };
    let wide = ticket(level.arrive(MS, 1, 0, work));
    assert_eq!(level.queues.counts().seats_in_use, 2);
    assert_eq!(level.queues.finish(2 * MS, wide), Some(22 * MS));
}

#[test]
fn queues_that_are_not_dealt_any_more_are_emptied_and_forgotten() {
    let mut level = Level::new(queuing(4, 1, 10), 1);
    let first = ticket(level.arrive(MS, 1, 3, seats(1)));
    let second = ticket(level.arrive(MS, 2, 3, seats(1)));
    level.queues.configure(MS, queuing(2, 1, 10), 1);
    assert_eq!(level.queues.queue_rows().len(), 4);
    level.queues.finish(2 * MS, first);
    level.queues.finish(3 * MS, second);
    assert_eq!((level.ran(), level.queues.queue_rows().len()), (vec![1, 2], 2));
}

/// Virtual time that comes to its end is set back, and the order stays.
#[test]
fn virtual_time_does_not_run_out() {
    let mut level = Level::new(queuing(2, 1, 10), 1);
    level.queues.times.now = SeatSeconds::HALF.minus(SeatSeconds::of(1.0, MS));
    let first = ticket(level.arrive(MS, 1, 0, seats(1)));
    ticket(level.arrive(MS, 2, 0, seats(1)));
    ticket(level.arrive(MS, 3, 1, seats(1)));
    level.queues.finish(5 * MS, first);
    assert_eq!(level.queues.counts().epochs.0 + level.queues.counts().epochs.1, 1);
    assert!(level.queues.virtual_times().now < SeatSeconds::of(1.0, Duration::from_secs(1)));
    assert_eq!(level.ran(), [1, 3], "the other flow's turn");
}

/// Flows of a simulation: each keeps so many requests waiting or running, and each of its requests takes so many seats
/// for so long. Gives the seat-milliseconds that each got.
fn simulate(flows: &[(usize, u32, u32)], limit: u32, run: Duration) -> Vec<u64> {
    let mut level = Level::new(queuing(64, 6, 1000), limit);
    let mut got = vec![0; flows.len()];
    // What runs: by when it is done, its flow and its ticket.
    let mut ends = BinaryHeap::new();
    let mut waiting: BTreeMap<u64, (usize, Ticket)> = BTreeMap::new();
    let (mut next_id, mut now) = (0, Duration::ZERO);
    let mut wanted: Vec<usize> = flows.iter().map(|(outstanding, ..)| *outstanding).collect();
    while now < run {
        for (flow, (_, seats_each, _)) in flows.iter().enumerate() {
            for _ in 0..std::mem::take(&mut wanted[flow]) {
                next_id += 1;
                let passed = level.arrive(now, next_id, flow_hash("s", &flow.to_string()), seats(*seats_each));
                waiting.insert(next_id, (flow, ticket(passed)));
            }
        }
        for id in level.order.lock().drain(..) {
            let (flow, ticket) = waiting.remove(&id).expect("it waited");
            ends.push(Reverse((now + MS * flows[flow].2, id, flow, ticket.queue, ticket.id)));
        }
        let Some(Reverse((end, _, flow, queue, id))) = ends.pop() else { break };
        now = end;
        level.queues.finish(now, Ticket { id, queue });
        got[flow] += u64::from(flows[flow].1 * flows[flow].2);
        wanted[flow] += 1;
    }
    got
}

#[test]
fn an_elephant_takes_nothing_from_mice() {
    let elephant = (500, 1, 10);
    let got = simulate(&[elephant, (2, 1, 10), (2, 1, 10)], 10, Duration::from_secs(20));
    // Ten seats for 20 s; each mouse has at most two requests at a time, and so two seats. First come, first served would
    // leave it 800 seat-milliseconds.
    for (mouse, got) in got[1..].iter().enumerate() {
        assert!(*got > 28_000, "mouse {mouse} got {got} of 40000");
    }
    assert!(got.iter().sum::<u64>() > 199_000, "nothing is wasted: {got:?}");
}

#[test]
fn seats_are_shared_by_work_and_not_by_requests() {
    // As many wait of each; the requests of the first are wide and long.
    let got = simulate(&[(100, 4, 50), (100, 1, 5)], 8, Duration::from_secs(50));
    let share = got[0] as f64 / got.iter().sum::<u64>() as f64;
    assert!((0.45..0.55).contains(&share), "{share} of {got:?}");
}
