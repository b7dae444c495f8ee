//! Pods that are alike share the ranking of nodes that was made for one of them (KEP-5598): where one has filled its node, the
//! next takes the second best, without another look at all.
//!
//! It holds for pods right after each other, and for a moment only. That the pod before filled its node matters: where
//! another would still fit there, its score there has changed, and with it the ranking.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::framework::Signature;
use crate::metrics::SchedulerMetrics;

/// How long a ranking holds.
const HOLDS: Duration = Duration::from_millis(500);

/// What one pod leaves to the next.
#[derive(Default)]
pub(super) struct Batch {
    /// The number of the attempt under way.
    attempt: u64,
    /// The attempt that chose last, and the node that it chose.
    last: Option<(u64, Arc<str>)>,
    ranking: Option<Ranking>,
}

/// The nodes that pods with a signature may take next, the best first.
struct Ranking {
    signature: Signature,
    made: Instant,
    nodes: VecDeque<Arc<str>>,
}

/// What is known of the node that the last pod took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastNode {
    /// It is not there any more.
    Missing,
    /// Another such pod fits there.
    HasRoom,
    /// None fits.
    Full,
}

/// Where a pod's metrics are counted.
pub(super) struct Counted<'a> {
    pub(super) metrics: &'a SchedulerMetrics,
    pub(super) profile: &'a str,
}

impl Batch {
    /// Another attempt begins.
    pub(super) fn begin(&mut self) {
        self.attempt += 1;
    }

    /// The node that the pod should try first; `look` looks at the node of the pod before.
    pub(super) fn hint(
        &mut self,
        signature: Option<&Signature>,
        now: Instant,
        look: impl FnOnce(&str) -> LastNode,
        counted: &Counted<'_>,
    ) -> Option<Arc<str>> {
        let ranking = self.ranking.as_mut()?;
        let reason = match &self.last {
            Some((attempt, _)) if attempt + 1 < self.attempt => Some("pod_skipped"),
            None => Some("pod_failed"),
            Some(_) if signature != Some(&ranking.signature) => Some("pod_incompatible"),
            Some(_) if now.saturating_duration_since(ranking.made) > HOLDS => Some("expired"),
            Some((_, node)) => match look(node) {
                LastNode::Missing => Some("node_missing"),
                LastNode::HasRoom => Some("node_not_full"),
                LastNode::Full => None,
            },
        };
        if let Some(reason) = reason {
            self.flush(reason, counted);
            return None;
        }
        let next = ranking.nodes.pop_front();
        if ranking.nodes.is_empty() {
            self.flush("empty_list", counted);
        }
        next
    }

    /// The attempt has chosen a node. `hinted` is the node that it was to try first, `others` those that it could have taken,
    /// the best first.
    pub(super) fn chose(
        &mut self,
        signature: Option<Signature>,
        node: &Arc<str>,
        hinted: Option<&str>,
        others: VecDeque<Arc<str>>,
        now: Instant,
        counted: &Counted<'_>,
    ) {
        self.last = Some((self.attempt, Arc::clone(node)));
        let result = match hinted {
            None => "no_hint",
            Some(hinted) if *hinted == **node => "hint_used",
            Some(_) => "hint_not_used",
        };
        counted.metrics.batch_attempt(counted.profile, result);
        if result == "hint_used" {
            return;
        }
        match signature {
            Some(signature) if !others.is_empty() => {
                self.ranking = Some(Ranking { signature, made: now, nodes: others });
            }
            Some(_) => self.flush("empty_list", counted),
            None => self.flush("pod_not_batchable", counted),
        }
    }

    /// The attempt has chosen no node.
    pub(super) fn failed(&mut self) {
        self.last = None;
    }

    fn flush(&mut self, reason: &str, counted: &Counted<'_>) {
        if self.ranking.take().is_some() {
            counted.metrics.batch_flushed(counted.profile, reason);
        }
    }
}
