//! The levels as requests find them: classification, a seat or a place in a queue, and the wait for a turn.

use std::sync::Arc;
use std::time::Duration;

use ::flow_control::{Arrival, Asked, AskedResource, Controller, Moment, Passed, Reason, Table};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use base::SharedClock;
use component_base::metrics::Metrics;
use parking_lot::Mutex;
use registry::Registry;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::levels;
use super::metrics::{FlowMetrics, Series};
use super::seat::{Asker, Details, Shared, Turn};
use super::watches::Watches;
use crate::config::RequestConfig;
use crate::limits::{Admitted, Classified, Concurrency, Full, Seat, Seats, Wanted};
use crate::request::RequestInfo;

/// The longest that a request waits.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The part of its time that a request waits at most.
const PART_WAITED: u32 = 4;

/// The levels of a server, and what classifies its requests.
pub(crate) struct FlowControl {
    pub(super) shared: Arc<Shared>,
    pub(super) controller: Arc<Mutex<Controller<Asker>>>,
    pub(super) current: ArcSwap<Current>,
    pub(super) registry: Arc<Registry>,
    pub(super) watches: Arc<Watches>,
    pub(super) metrics: Arc<FlowMetrics>,
    /// For requests without a deadline.
    request_timeout: Duration,
}

/// How requests are classified now.
pub(super) struct Current {
    table: Arc<Table<Asker>>,
    /// What is counted of each schema, in the order of the table.
    series: Vec<Arc<Series>>,
}

impl FlowControl {
    /// The levels that must be there; others come by the consumer.
    pub(crate) fn new(
        limits: &RequestConfig,
        registry: &Arc<Registry>,
        clock: &SharedClock,
        metrics: &Metrics,
    ) -> Arc<Self> {
        let seats = u32::try_from(limits.max_in_flight + limits.max_mutating_in_flight).unwrap_or(u32::MAX);
        let (controller, configured) = Controller::new(Duration::ZERO, seats);
        let flow_metrics = Arc::new(FlowMetrics::new(metrics));
        let current = Current::new(configured.table, &flow_metrics);
        // Levels share seats, and not so many of each kind.
        let shared = Arc::new(Shared::new(clock, Concurrency::new(metrics, clock, [1.0; 2])));
        let controller = Arc::new(Mutex::new(controller));
        levels::show(&controller, &shared, metrics);
        Arc::new(Self {
            shared,
            controller,
            current: ArcSwap::from_pointee(current),
            registry: Arc::clone(registry),
            watches: Arc::default(),
            metrics: flow_metrics,
            request_timeout: limits.timeout,
        })
    }

    pub(super) fn now(&self) -> Moment {
        self.shared.now()
    }

    /// When a request stops waiting.
    fn wait_limit(&self, deadline: Option<Instant>) -> Instant {
        let now = self.shared.clock().monotonic();
        let whole = deadline.map_or(self.request_timeout, |deadline| deadline.saturating_duration_since(now));
        now + (whole / PART_WAITED).min(LONGEST_WAIT)
    }
}

impl Current {
    pub(super) fn new(table: Arc<Table<Asker>>, metrics: &FlowMetrics) -> Self {
        let series = table.schemas().iter().map(|schema| metrics.series(schema.level.name(), &schema.name)).collect();
        Self { table, series }
    }
}

fn asked<'a>(user: &'a api_types::authentication_v1::UserInfo, info: &'a RequestInfo) -> Asked<'a> {
    let resource = info.is_resource.then_some(AskedResource {
        group: &info.group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
    });
    Asked { user: &user.username, groups: &user.groups, verb: &info.verb, path: &info.path, resource }
}

#[async_trait]
impl Seats for FlowControl {
    /// What lasts takes no seat, but for watches until they have begun.
    async fn take(&self, wanted: &Wanted<'_>) -> Admitted {
        let Wanted { user, info, .. } = wanted;
        let is_watch = info.verb == "watch";
        if info.is_long_running() && !is_watch {
            return Admitted { classified: None, seat: Ok(Seat::held_by(())) };
        }
        let current = self.current.load_full();
        let asked = asked(user, info);
        let flow = current.table.classify(&asked);
        let Some((series, flow)) = flow.and_then(|flow| Some((current.series.get(flow.index).cloned()?, flow))) else {
            return Admitted { classified: None, seat: Err(Full { retry_after: 1 }) };
        };
        let (schema, level) = (flow.schema, &flow.schema.level);
        let classified = Some(Classified { schema_uid: schema.uid.clone(), level_uid: schema.level_uid.clone() });
        let work = self.work(wanted, level.widest_request(), &series);
        series.estimated(&work);
        let watch = is_watch.then(|| self.watches.register(info)).flatten();
        let details = Details { user: user.username.clone(), info: Arc::clone(info), schema: Arc::clone(schema) };
        let caller = Asker::new(details, Arc::clone(&series));
        let arrival = Arrival { hash: flow.hash(), work, caller };
        let (passed, woken) = {
            let mut queues = level.queues();
            let passed = queues.arrive(self.now(), arrival);
            let mut woken = None;
            if let Ok(Passed::Waits(ticket)) = passed
                && let Some(waiting) = queues.waiting_mut(ticket)
            {
                let (wake, wakes) = oneshot::channel();
                waiting.wake_by(wake);
                woken = Some(wakes);
            }
            (passed, woken)
        };
        let seat = match passed {
            Ok(Passed::Runs(ticket)) => Ok(Turn::new(&self.shared, Arc::clone(level), ticket, info.is_read_only())),
            Ok(Passed::Waits(ticket)) => {
                let turn = Turn::waiting(&self.shared, Arc::clone(level), ticket, info.is_read_only());
                let limit = self.wait_limit(wanted.deadline);
                self.wait(turn, woken, limit, &series, info.is_read_only()).await
            }
            Err(refused) => Err(refused.reason),
        };
        let seat = seat.map_err(|reason| {
            series.rejected(reason);
            let retry_after = level.drops().retry_after();
            level.drops().record(self.now());
            Full { retry_after }
        });
        Admitted { classified, seat: seat.map(|turn| Seat::held_by(turn).with_stream_guard(watch)) }
    }
}

impl FlowControl {
    /// Waits for the turn of a request. Whoever does not wait to the end gives its place up.
    async fn wait(
        &self,
        mut turn: Turn,
        woken: Option<oneshot::Receiver<()>>,
        limit: Instant,
        series: &Series,
        is_read_only: bool,
    ) -> Result<Turn, Reason> {
        let begun = self.now();
        if let Some(woken) = woken
            && tokio::time::timeout_at(limit, woken).await.is_err()
            && turn.give_up(Reason::TimeOut)
        {
            series.waited_in_vain(self.now().saturating_sub(begun));
            return Err(Reason::TimeOut);
        }
        turn.runs(is_read_only);
        Ok(turn)
    }
}
