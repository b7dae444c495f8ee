//! What is to be done with a volume on a node: pure, from what is known of both.

use std::time::Duration;

use api_types::core_v1::Node;
use api_types::storage_v1::VolumeAttachment;
use component_helpers::nodes;
use tokio::time::Instant;

use super::target::Target;

/// How long a node may keep a volume mounted that nobody wants there, once it is not healthy.
pub(super) const MAX_WAIT_FOR_UNMOUNT: Duration = Duration::from_secs(6 * 60);
/// How long an attacher may take.
pub(super) const ATTACHER_TIMEOUT: Duration = Duration::from_secs(120);
/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(122);
/// A node with this taint is out of service: nothing on it runs.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What is being done with a volume on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing.
    Idle,
    /// It is awaited that it is attached.
    Attaching { began: Instant },
    /// It is awaited that its VolumeAttachment goes.
    Detaching { began: Instant },
}

/// The pause after failures in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    failures: u32,
    until: Option<Instant>,
}

impl BackOff {
    /// One more failure.
    #[must_use]
    pub(super) fn after_failure(self, now: Instant) -> Self {
        let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        Self { failures: self.failures.saturating_add(1), until: Some(now + pause.min(LONGEST_PAUSE)) }
    }

    /// Until when nothing is tried, if that is not over.
    pub(super) fn until(self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

/// What became of what was being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is not known before then, or before something changes.
    Pending(Instant),
    /// It is attached.
    Attached,
    /// It is gone.
    Detached,
    /// It failed.
    Failed(String),
}

/// What an attacher has done about a VolumeAttachment so far.
pub(super) fn progress(
    work: Work,
    target: &Target,
    attachment: Option<&VolumeAttachment>,
    now: Instant,
) -> Option<Progress> {
    let (began, outcome) = match work {
        Work::Idle => return None,
        Work::Attaching { began } => (began, attach_progress(attachment)),
        Work::Detaching { began } => (began, detach_progress(attachment)),
    };
    let deadline = began + ATTACHER_TIMEOUT;
    Some(outcome.unwrap_or_else(|| match work {
        _ if now < deadline => Progress::Pending(deadline),
        Work::Detaching { .. } => {
            let text = format!(
                "timed out waiting for external-attacher of unknown CSI driver to detach volume {}",
                target.handle
            );
            Progress::Failed(text)
        }
        _ => Progress::Failed(format!(
            "timed out waiting for external-attacher of {} CSI driver to attach volume {}",
            target.driver, target.handle
        )),
    }))
}

fn attach_progress(attachment: Option<&VolumeAttachment>) -> Option<Progress> {
    // One that was just made is not in the cache yet.
    let attachment = attachment?;
    if attachment.metadata.deletion_timestamp.is_some() {
        return Some(Progress::Failed("volume attachment is being deleted".to_owned()));
    }
    if attachment.status.attached {
        return Some(Progress::Attached);
    }
    attachment.status.attach_error.as_ref().map(|error| Progress::Failed(error.message.clone()))
}

fn detach_progress(attachment: Option<&VolumeAttachment>) -> Option<Progress> {
    let Some(attachment) = attachment else { return Some(Progress::Detached) };
    attachment.status.detach_error.as_ref().map(|error| Progress::Failed(error.message.clone()))
}

/// What counts of a node when a volume is to be taken from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its kubelet says that all is well.
    pub(super) is_healthy: bool,
    /// Somebody says that nothing on it runs.
    pub(super) is_out_of_service: bool,
}

impl Condition {
    /// One that is gone is not healthy.
    pub(super) fn of(node: Option<&Node>) -> Self {
        let is_tainted = |node: &Node| node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
        Self { is_healthy: node.is_some_and(nodes::is_ready), is_out_of_service: node.is_some_and(is_tainted) }
    }
}

/// Why a volume is taken from a node that may still have it mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// The node had its time.
    Timeout,
    /// The node is out of service.
    OutOfService,
}

impl Force {
    /// As metrics show it.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OutOfService => "out-of-service",
        }
    }
}

/// Whether a volume that nobody wants on a node can be taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detach {
    /// Not before something changes, or this time.
    Wait(Option<Instant>),
    /// Yes; unless by force, only if the node itself says once more that it does not use it.
    Now(Option<Force>),
}

pub(super) fn plan_detach(
    unwanted_since: Instant,
    is_in_use: bool,
    node: Condition,
    forces_on_timeout: bool,
    now: Instant,
) -> Detach {
    let deadline = unwanted_since + MAX_WAIT_FOR_UNMOUNT;
    let has_expired = forces_on_timeout && now > deadline;
    let may_force = has_expired && !node.is_healthy;
    if is_in_use && !may_force && !node.is_out_of_service {
        let later = forces_on_timeout && !has_expired;
        return Detach::Wait(later.then_some(deadline + Duration::from_millis(1)));
    }
    Detach::Now(if has_expired {
        Some(Force::Timeout)
    } else if node.is_out_of_service {
        Some(Force::OutOfService)
    } else {
        None
    })
}
