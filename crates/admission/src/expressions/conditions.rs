//! Match conditions over a request.

use std::sync::Arc;

use admission_cel::{Answers, MatchConditions, Matched, Scene};
use tokio::time::Instant;

use super::asking::answered;
use crate::recorder::ConditionRun;
use crate::{Attributes, Context};

/// Whether a webhook or policy is to be asked about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    No,
    /// Nobody knows; the failure policy decides.
    Failed(String),
}

/// Whether conditions hold, counted and timed from `begun` on where there are any; and when that was known.
pub(crate) async fn holds<'s>(
    cx: &Context,
    attributes: &Attributes,
    run: &ConditionRun<'_>,
    begun: Instant,
    conditions: &'s MatchConditions,
    scene: impl Fn(&Arc<Answers>) -> Scene<'s> + Send + Sync,
) -> (Held, Instant) {
    if conditions.is_empty() {
        return (Held::Yes, begun);
    }
    let evaluate = |answers: &_| match conditions.evaluate(&scene(answers)) {
        Matched::Yes => (Held::Yes, 0),
        Matched::No { failed, .. } => (Held::No, failed),
        Matched::Failed(errors) => (Held::Failed(super::joined(&errors)), errors.len()),
    };
    let ((held, failed), ended) = answered(cx, attributes, begun, evaluate).await;
    cx.recorder.conditions_evaluated(run, ended - begun);
    for _ in 0..failed {
        cx.recorder.condition_failed(run);
    }
    if held == Held::No {
        cx.recorder.condition_excluded(run);
    }
    (held, ended)
}
