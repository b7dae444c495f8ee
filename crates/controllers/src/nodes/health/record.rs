//! What was last heard of a node, and when, by this machine's own clock: the nodes' clocks do not matter.

use std::time::Duration;

use api_machinery::time::{MicroTime, Time};
use api_types::core_v1::{Node, NodeCondition};
use tokio::time::Instant;

use super::conditions::ready;

/// What was last heard of a node.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// When something was last heard.
    pub(super) heard: Instant,
    /// The node's word on its readiness at that time.
    pub(super) ready: Option<NodeCondition>,
    /// The lease's last renewal, by the node's clock; that it changes counts, as a clock may be set back.
    renewed: Option<MicroTime>,
    /// For how long silence is allowed.
    pub(super) grace: Duration,
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: Time,
    pub(super) monotonic: Instant,
}

/// The grace periods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grace {
    pub(super) startup: Duration,
    pub(super) running: Duration,
}

/// The record after looking at a node and its lease.
pub(super) fn hear(before: Option<&Record>, node: &Node, renewed: Option<MicroTime>, grace: Grace, now: Now) -> Record {
    let seen = ready(node).cloned();
    let grace = if seen.is_none() { grace.startup } else { grace.running };
    let Some(before) = before else {
        // A node that never spoke has its time since it was created.
        let age = if seen.is_none() { now.wall.since(node.metadata.creation_timestamp) } else { Duration::ZERO };
        let heard = now.monotonic.checked_sub(age).unwrap_or(now.monotonic);
        return Record { heard, ready: seen, renewed, grace };
    };
    let spoke = match (&before.ready, &seen) {
        (None, None) => false,
        (Some(old), Some(new)) => old.last_heartbeat_time != new.last_heartbeat_time,
        _ => true,
    };
    let lease_renewed = renewed.is_some() && renewed != before.renewed;
    let heard = if spoke || lease_renewed { now.monotonic } else { before.heard };
    Record { heard, ready: seen, renewed: renewed.or(before.renewed), grace }
}

impl Record {
    /// Whether nothing was heard for too long.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) > self.grace
    }
}
