//! Match conditions over a request.

use std::time::Duration;

use admission_cel::{MatchConditions, Matched, Scene};
use tokio::time::Instant;

use super::asking::{answered, answers};
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

/// What came of conditions.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    held: Held,
    /// How many failed.
    failed: usize,
}

impl From<Matched<'_>> for Answer {
    fn from(matched: Matched<'_>) -> Self {
        let (held, failed) = match matched {
            Matched::Yes => (Held::Yes, 0),
            Matched::No { failed, .. } => (Held::No, failed),
            Matched::Failed(errors) => (Held::Failed(super::joined(&errors)), errors.len()),
        };
        Self { held, failed }
    }
}

/// Whether conditions hold, counted and timed from `begun` on where there are any; and when that was known. An answer that
/// is `shared` counts as one that was found at once, and where it is not there yet, this one is put there.
pub(crate) async fn holds<'s>(
    cx: &Context,
    attributes: &Attributes,
    run: &ConditionRun<'_>,
    begun: Instant,
    conditions: &'s MatchConditions,
    scene: impl Fn() -> Scene<'s> + Send + Sync,
    shared: Option<&mut Option<Answer>>,
) -> (Held, Instant) {
    if conditions.is_empty() {
        return (Held::Yes, begun);
    }
    let (answer, took, ended) = match shared {
        Some(Some(answer)) => {
            cx.recorder.expressions_evaluated(Duration::ZERO);
            (answer.clone(), Duration::ZERO, begun)
        }
        shared => {
            let evaluate = || Answer::from(conditions.evaluate(&scene()));
            let (answer, ended) = answered(cx, &attributes.user, &answers(attributes), begun, evaluate).await;
            if let Some(shared) = shared {
                *shared = Some(answer.clone());
            }
            (answer, ended - begun, ended)
        }
    };
    cx.recorder.conditions_evaluated(run, took);
    for _ in 0..answer.failed {
        cx.recorder.condition_failed(run);
    }
    if answer.held == Held::No {
        cx.recorder.condition_excluded(run);
    }
    (answer.held, ended)
}
