//! The seats and the queues of one level: fair queuing for requests that take several seats at a time (KEP-1040).
//!
//! Virtual time tells how much work every busy queue could have had done so far. The next request is that which would be
//! done first in virtual time; a queue's clock is set right when it turns out how long its requests really take.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Moment;
use crate::caller::{Caller, Reason};
use crate::demand::{Demand, Statistics};
use crate::queue::{EXPECTED_TIME, Entry, Queue, QueueRow, RequestRow, Work};
use crate::seat_seconds::SeatSeconds;
use crate::shuffle::Dealer;
use crate::utilization::Utilization;

/// The queues of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    /// How a flow chooses among them.
    pub dealer: Dealer,
    /// How many may wait in one while no seat is free.
    pub length_limit: usize,
}

/// What a level does with requests for which there is no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There is always one.
    Exempt,
    /// They are refused.
    Reject,
    /// They wait.
    Queue(Queuing),
}

/// A request that passed the door of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    id: u64,
    queue: Option<usize>,
}

/// A request that came to a level.
#[derive(Debug)]
pub struct Arrival<T> {
    /// What its flow hashes to; only levels with several queues look at it.
    pub hash: u64,
    /// What it takes.
    pub work: Work,
    /// Who asks.
    pub caller: T,
}

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It runs.
    Runs(Ticket),
    /// It waits, until its caller is told.
    Waits(Ticket),
}

/// An arrival for which there is no room.
#[derive(Debug)]
pub struct Refused<T> {
    /// Why.
    pub reason: Reason,
    /// Who asked.
    pub caller: T,
}

/// What a level has done, and what it is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that run.
    pub executing: usize,
    /// Queues with a request that waits or runs.
    pub active_queues: usize,
    /// Seats of what runs and what still holds some.
    pub seats_in_use: u32,
    /// Seats of what waits.
    pub seats_waiting: u32,
    /// Requests that ran or run.
    pub dispatched: u64,
    /// Requests that were refused at once.
    pub rejected: u64,
    /// Requests that waited for too long.
    pub timed_out: u64,
    /// Requests whose clients went.
    pub cancelled: u64,
    /// How often virtual time was set back, and how often something was behind that by more than it has.
    pub epochs: (u64, u64),
}

/// Virtual times of a level, for gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VirtualTimes {
    /// Now.
    pub now: SeatSeconds,
    /// When a request was dispatched last.
    pub dispatched: SeatSeconds,
    /// The start of the queue that was served last, with the work that it was served for.
    pub latest_start: SeatSeconds,
    /// The least and the greatest start of queues at the last choice of one.
    pub next_starts: (SeatSeconds, SeatSeconds),
    /// The same without the work of what runs.
    pub next_discounted_starts: (SeatSeconds, SeatSeconds),
}

/// The seats and the queues of one level.
pub struct FairQueues<T> {
    kind: Kind,
    limit: u32,
    queues: Vec<Queue<T>>,
    executing: BTreeMap<u64, Entry<T>>,
    /// Those that are done and hold their seats, by when they will not any more.
    holding: BTreeMap<(Moment, u64), Entry<T>>,
    counts: Counts,
    last: Moment,
    times: VirtualTimes,
    robin: usize,
    arrivals: u64,
    demand: Demand,
    utilization: Utilization,
}

impl<T: Caller> FairQueues<T> {
    /// Empty ones.
    #[must_use]
    pub fn new(now: Moment, kind: Kind, limit: u32) -> Self {
        let mut queues = Self {
            kind,
            limit,
            queues: Vec::new(),
            executing: BTreeMap::new(),
            holding: BTreeMap::new(),
            counts: Counts::default(),
            last: now,
            times: VirtualTimes::default(),
            robin: 0,
            arrivals: 0,
            demand: Demand::new(now),
            utilization: Utilization::new(now),
        };
        queues.configure(now, kind, limit);
        queues
    }

    /// Changes what there is; what waits may run now.
    pub fn configure(&mut self, now: Moment, kind: Kind, nominal: u32) {
        self.advance(now);
        self.kind = kind;
        if let Kind::Queue(queuing) = kind {
            let wanted = queuing.dealer.deck().max(self.queues.len());
            self.queues.resize_with(wanted, Queue::default);
        }
        self.utilization.resize(now, kind, nominal);
        self.forget_spent_queues();
        self.dispatch_all(now);
    }

    /// Changes the number of seats; what waits may run now.
    pub fn set_limit(&mut self, now: Moment, seats: u32) {
        self.advance(now);
        self.limit = seats;
        self.dispatch_all(now);
        self.note(now);
    }

    /// The number of seats now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// A request comes.
    ///
    /// # Errors
    /// When there is no room.
    pub fn arrive(&mut self, now: Moment, arrival: Arrival<T>) -> Result<Passed, Refused<T>> {
        self.advance(now);
        self.arrivals += 1;
        let Arrival { hash, work, caller } = arrival;
        let id = self.arrivals;
        let arrived_virtually = self.times.now;
        let mut entry = Entry { id, queue: None, work, arrived: now, arrived_virtually, started: None, caller };
        let Kind::Queue(queuing) = self.kind else {
            if self.kind == Kind::Reject && !self.has_room_for(work.max_seats()) {
                self.counts.rejected += 1;
                return Err(Refused { reason: Reason::ConcurrencyLimit, caller: entry.caller });
            }
            self.run(now, entry, None);
            self.note(now);
            return Ok(Passed::Runs(Ticket { id, queue: None }));
        };
        let place = self.choose_queue(queuing.dealer, hash);
        let queue = &mut self.queues[place];
        if self.counts.seats_in_use >= self.limit && queue.waiting.len() >= queuing.length_limit {
            self.counts.rejected += 1;
            return Err(Refused { reason: Reason::QueueFull, caller: entry.caller });
        }
        entry.queue = Some(place);
        self.enqueue(place, entry);
        self.dispatch_all(now);
        self.note(now);
        let ticket = Ticket { id, queue: Some(place) };
        Ok(if self.executing.contains_key(&id) { Passed::Runs(ticket) } else { Passed::Waits(ticket) })
    }

    /// Somebody does not wait any longer; false where it runs already.
    pub fn give_up(&mut self, now: Moment, ticket: Ticket, reason: Reason) -> bool {
        self.advance(now);
        let Some(queue) = ticket.queue.and_then(|place| self.queues.get_mut(place)) else { return false };
        let place = queue.waiting.iter().position(|entry| entry.id == ticket.id);
        let Some(mut entry) = place.and_then(|place| queue.remove(place)) else { return false };
        queue.bound_start();
        self.counts.active_queues -= usize::from(!queue.is_active());
        entry.caller.gave_up(entry.seats());
        self.counts.waiting -= 1;
        self.counts.seats_waiting -= entry.seats();
        match reason {
            Reason::TimeOut => self.counts.timed_out += 1,
            _ => self.counts.cancelled += 1,
        }
        self.dispatch_all(now);
        self.note(now);
        true
    }

    /// A request is done. Says when the seats are free that it still holds, where it holds any.
    pub fn finish(&mut self, now: Moment, ticket: Ticket) -> Option<Moment> {
        self.advance(now);
        let mut entry = self.executing.remove(&ticket.id)?;
        self.counts.executing -= 1;
        let ran = now.saturating_sub(entry.started.unwrap_or(now));
        entry.caller.finished(ran);
        if let Some(queue) = entry.queue.and_then(|place| self.queues.get_mut(place)) {
            queue.executing -= 1;
            let seats = f64::from(entry.work.initial_seats);
            let (less, more) = (EXPECTED_TIME.saturating_sub(ran), ran.saturating_sub(EXPECTED_TIME));
            queue.start = queue.start.minus(SeatSeconds::of(seats, less)).plus(SeatSeconds::of(seats, more));
            queue.bound_start();
            self.counts.active_queues -= usize::from(!queue.is_active());
        }
        let held_until =
            (self.kind != Kind::Exempt && entry.work.extra > Duration::ZERO).then(|| now + entry.work.extra);
        match held_until {
            Some(until) => {
                self.holding.insert((until, entry.id), entry);
            }
            None => self.release(entry, Duration::ZERO),
        }
        self.dispatch_all(now);
        self.note(now);
        held_until
    }

    /// Frees the seats that were held until now. Says when the next ones are free.
    pub fn tick(&mut self, now: Moment) -> Option<Moment> {
        self.advance(now);
        self.dispatch_all(now);
        self.note(now);
        self.holding.keys().next().map(|(until, _)| *until)
    }

    /// Who waits by this ticket.
    pub fn waiting_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let queue = self.queues.get_mut(ticket.queue?)?;
        queue.waiting.iter_mut().find(|entry| entry.id == ticket.id).map(|entry| &mut entry.caller)
    }

    /// How busy it was.
    pub fn utilization(&mut self) -> &mut Utilization {
        &mut self.utilization
    }

    /// Whether nothing waits, runs or holds a seat.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.counts.waiting == 0 && self.counts.executing == 0 && self.holding.is_empty()
    }

    /// What it has done, and what it is at.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Its virtual times.
    #[must_use]
    pub fn virtual_times(&self) -> VirtualTimes {
        self.times
    }

    /// Its queues.
    #[must_use]
    pub fn queue_rows(&self) -> Vec<QueueRow> {
        self.queues.iter().map(Queue::row).collect()
    }

    /// Shows each request: those that wait, queue by queue, and then those that run.
    pub fn visit_requests(&self, visit: &mut dyn FnMut(RequestRow<'_, T>)) {
        let mut show = |entry: &Entry<T>, place| {
            let (arrived, started, work) = (entry.arrived, entry.started, entry.work);
            visit(RequestRow { place, arrived, started, work, caller: &entry.caller });
        };
        for (index, queue) in self.queues.iter().enumerate() {
            queue.waiting.iter().enumerate().for_each(|(place, entry)| show(entry, Some((index, place))));
        }
        self.executing.values().for_each(|entry| show(entry, None));
    }

    pub(crate) fn take_demand(&mut self, now: Moment, former: Statistics) -> Statistics {
        self.demand.take(now, former)
    }

    /// Virtual time goes on, and seats become free that were held until now.
    fn advance(&mut self, now: Moment) {
        while let Some(((until, _), _)) = self.holding.first_key_value()
            && *until <= now
            && let Some(((until, _), entry)) = self.holding.pop_first()
        {
            self.advance_virtual_time(until);
            let held = entry.work.extra;
            self.release(entry, held);
            self.dispatch_all(until);
            self.note(until);
        }
        self.advance_virtual_time(now);
    }

    fn advance_virtual_time(&mut self, now: Moment) {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        if self.counts.active_queues == 0 || passed.is_zero() {
            return;
        }
        let wanted = (self.counts.seats_in_use + self.counts.seats_waiting).min(self.limit);
        let rate = f64::from(wanted) / self.counts.active_queues as f64;
        self.times.now = self.times.now.plus(SeatSeconds::of(rate, passed));
        if self.times.now >= SeatSeconds::HALF {
            self.begin_epoch();
        }
    }

    /// Sets all virtual times back, so that they never come to the end of their range.
    fn begin_epoch(&mut self) {
        let mut is_exact = true;
        let mut set_back = |time: &mut SeatSeconds| {
            is_exact &= *time >= SeatSeconds::HALF;
            *time = time.minus(SeatSeconds::HALF);
        };
        set_back(&mut self.times.now);
        for queue in self.queues.iter_mut().filter(|queue| queue.is_active()) {
            set_back(&mut queue.start);
            queue.waiting.iter_mut().for_each(|entry| set_back(&mut entry.arrived_virtually));
        }
        if is_exact {
            self.counts.epochs.0 += 1;
        } else {
            self.counts.epochs.1 += 1;
        }
    }

    /// The queue of a hand with the least waiting work; among equals each in turn.
    fn choose_queue(&self, dealer: Dealer, hash: u64) -> usize {
        let hand = dealer.deal(hash);
        let turn = usize::try_from(self.arrivals).unwrap_or_default() % hand.len();
        let in_turn = hand.clone().cycle().skip(turn).take(hand.len());
        in_turn.min_by_key(|place| self.queues[*place].waiting_work).unwrap_or_default()
    }

    fn enqueue(&mut self, place: usize, mut entry: Entry<T>) {
        let queue = &mut self.queues[place];
        if !queue.is_active() {
            queue.start = self.times.now;
            self.counts.active_queues += 1;
        }
        self.counts.waiting += 1;
        self.counts.seats_waiting += entry.seats();
        entry.caller.queued(entry.seats(), queue.waiting.len() + 1);
        queue.push(entry);
    }

    /// Whether a request may run now. One that is wider than the level runs alone.
    fn has_room_for(&self, seats: u32) -> bool {
        if seats > self.limit {
            return self.counts.executing == 0;
        }
        self.counts.seats_in_use.saturating_add(seats) <= self.limit
    }

    fn dispatch_all(&mut self, now: Moment) {
        while self.counts.waiting > 0 && self.counts.seats_in_use < self.limit && self.dispatch(now) {}
    }

    /// Lets one request run: of those that are first in their queues that which would be done first in virtual time. Says
    /// whether there was room for it.
    fn dispatch(&mut self, now: Moment) -> bool {
        let count = self.queues.len();
        let in_turn = (1..=count).map(|step| (self.robin + step) % count);
        let finishes = in_turn.filter_map(|place| Some((self.queues[place].next_finish()?, place)));
        // The first of equals.
        let Some((_, place)) = finishes.min_by_key(|(finish, _)| *finish) else { return false };
        let Some(seats) = self.queues[place].waiting.front().map(Entry::seats) else { return false };
        if !self.has_room_for(seats) {
            self.queues[place].waiting.iter_mut().take(1).for_each(|entry| entry.caller.passed_over());
            return false;
        }
        self.robin = place;
        self.note_starts();
        let queue = &mut self.queues[place];
        let Some(mut entry) = queue.remove(0) else { return false };
        self.counts.waiting -= 1;
        self.counts.seats_waiting -= seats;
        entry.work.fit(self.limit);
        queue.start = queue.start.plus(entry.work.total());
        queue.bound_start();
        self.times.latest_start = queue.start;
        self.times.dispatched = self.times.now;
        let waited = now.saturating_sub(entry.arrived);
        self.run(now, entry, Some(waited));
        true
    }

    fn run(&mut self, now: Moment, mut entry: Entry<T>, waited: Option<Duration>) {
        let seats = entry.seats();
        entry.started = Some(now);
        entry.caller.dispatched(seats, waited);
        if let Some(queue) = entry.queue.and_then(|place| self.queues.get_mut(place)) {
            queue.executing += 1;
            queue.seats_in_use += seats;
        }
        self.counts.executing += 1;
        self.counts.seats_in_use = self.counts.seats_in_use.saturating_add(seats);
        self.counts.dispatched += 1;
        self.executing.insert(entry.id, entry);
    }

    fn release(&mut self, mut entry: Entry<T>, held: Duration) {
        let seats = entry.seats();
        self.counts.seats_in_use = self.counts.seats_in_use.saturating_sub(seats);
        if let Some(queue) = entry.queue.and_then(|place| self.queues.get_mut(place)) {
            queue.seats_in_use -= seats;
        }
        entry.caller.released(seats, held);
        self.forget_spent_queues();
    }

    /// Forgets queues that the dealer does not deal any more; the places of others stay.
    fn forget_spent_queues(&mut self) {
        let dealt = match self.kind {
            Kind::Queue(queuing) => queuing.dealer.deck(),
            Kind::Exempt | Kind::Reject => 0,
        };
        while self.queues.len() > dealt && self.queues.last().is_some_and(Queue::is_spent) {
            self.queues.pop();
        }
    }

    /// Notes where queues stood when one was chosen.
    fn note_starts(&mut self) {
        let ran = |queue: &Queue<T>| SeatSeconds::of(queue.executing as f64, EXPECTED_TIME);
        let mut starts = (SeatSeconds::MAX, SeatSeconds::default());
        let mut discounted = starts;
        for queue in self.queues.iter().filter(|queue| !queue.waiting.is_empty()) {
            let less = queue.start.minus(ran(queue));
            starts = (starts.0.min(queue.start), starts.1.max(queue.start));
            discounted = (discounted.0.min(less), discounted.1.max(less));
        }
        (self.times.next_starts, self.times.next_discounted_starts) = (starts, discounted);
    }

    /// Notes what is needed and used from now on.
    fn note(&mut self, now: Moment) {
        self.demand.set(now, self.counts.seats_in_use.saturating_add(self.counts.seats_waiting));
        self.utilization.note(now, &self.counts, self.limit);
    }
}

#[cfg(test)]
#[path = "queues_tests.rs"]
mod tests;
