//! The nodes of a zone that wait for the taint that drives their pods away, one by one as the zone's rate allows.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::Taint;
use api_types::core_v1::constants::{TAINT_NODE_NOT_READY, TAINT_NODE_UNREACHABLE};
use client::ObjectKey;
use controller::{Controller, Cx, Next, ReconcileError};
use tokio::time::Instant;

use super::Shared;
use super::conditions::{UNKNOWN, ready};
use crate::nodes::node_taints::{change, taint};

const NO_EXECUTE: &str = "NoExecute";

/// The taint that a node should have and the one it should not, by its readiness; nothing for a node that is ready.
pub(super) fn wanted(status: &str, now: Time) -> Option<(Taint, Taint)> {
    let (not_ready, unreachable) =
        (taint(TAINT_NODE_NOT_READY, NO_EXECUTE, now), taint(TAINT_NODE_UNREACHABLE, NO_EXECUTE, now));
    match status {
        "False" => Some((not_ready, unreachable)),
        UNKNOWN => Some((unreachable, not_ready)),
        _ => None,
    }
}

/// Both taints.
pub(super) fn both(now: Time) -> [Taint; 2] {
    [taint(TAINT_NODE_UNREACHABLE, NO_EXECUTE, now), taint(TAINT_NODE_NOT_READY, NO_EXECUTE, now)]
}

/// A zone's queue. A node is in it once; one that was tainted is remembered until it is taken out.
#[derive(Debug)]
pub(super) struct EvictionQueue {
    waiting: VecDeque<String>,
    known: BTreeSet<String>,
    rate: f64,
    /// Whole or part of a token; the burst is one.
    tokens: f64,
    filled: Instant,
}

impl EvictionQueue {
    /// An empty queue with one token.
    pub(super) fn new(rate: f64, now: Instant) -> Self {
        Self { waiting: VecDeque::new(), known: BTreeSet::new(), rate, tokens: 1.0, filled: now }
    }

    /// Another rate. A whole token stays, but not where nobody is to be tainted.
    pub(super) fn set_rate(&mut self, rate: f64, now: Instant) {
        if rate.total_cmp(&self.rate).is_eq() {
            return;
        }
        self.fill(now);
        if rate <= 0.0 || self.tokens < 1.0 {
            self.tokens = 0.0;
        }
        self.rate = rate;
    }

    /// Queues a node, unless it is here or was tainted already.
    pub(super) fn add(&mut self, node: &str) {
        if self.known.insert(node.to_owned()) {
            self.waiting.push_back(node.to_owned());
        }
    }

    /// The node has no taint any more though it was tainted: it may be queued again.
    pub(super) fn reset(&mut self, node: &str) {
        if !self.waiting.iter().any(|waiting| waiting == node) {
            self.known.remove(node);
        }
    }

    /// Takes a node out.
    pub(super) fn remove(&mut self, node: &str) {
        self.known.remove(node);
        self.waiting.retain(|waiting| waiting != node);
    }

    /// Takes all nodes out.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.waiting.clear();
    }

    /// The next node, if the rate allows one.
    pub(super) fn next(&mut self, now: Instant) -> Option<String> {
        self.fill(now);
        if self.tokens < 1.0 {
            return None;
        }
        let node = self.waiting.pop_front()?;
        self.tokens -= 1.0;
        Some(node)
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * self.rate).min(1.0);
    }
}

/// Taints the nodes whose turn it is.
pub(super) struct Tainter(pub(super) Arc<Shared>);

#[async_trait::async_trait]
impl Controller for Tainter {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let now = cx.clock.monotonic();
        let due: Vec<(String, String)> = {
            let mut state = self.0.state.lock();
            let next = |(zone, queue): (&String, &mut EvictionQueue)| Some((zone.clone(), queue.next(now)?));
            state.queues.iter_mut().filter_map(next).collect()
        };
        for (zone, name) in due {
            match self.taint(cx, &name).await {
                Ok(true) => self.0.metrics.evicted(&zone),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, node = name, "Tainting a node failed, trying again");
                    let mut state = self.0.state.lock();
                    if let Some(queue) = state.queues.get_mut(&zone) {
                        queue.remove(&name);
                        queue.add(&name);
                    }
                }
            }
        }
        Ok(Next::Done)
    }
}

impl Tainter {
    /// Says whether the node is one that pods must leave.
    async fn taint(&self, cx: &Cx, name: &str) -> Result<bool, ReconcileError> {
        let Some(node) = self.0.nodes.find("", name) else { return Ok(false) };
        let status = ready(&node).map(|ready| ready.status.clone()).unwrap_or_default();
        let Some((add, remove)) = wanted(&status, Time::from(cx.clock.wall())) else { return Ok(false) };
        change(cx, name, &[add], &[remove]).await?;
        Ok(true)
    }
}
