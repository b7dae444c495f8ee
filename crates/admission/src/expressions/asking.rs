//! Evaluations that may ask the authorizer.

use std::sync::Arc;

use admission_cel::Answers;
use api_types::authentication_v1::UserInfo;
use tokio::time::Instant;

use crate::{Attributes, Context};

/// Under which name a request keeps what its user is known to be allowed; the same for all policies and conditions.
const AUTHORIZER: &str = "authorizer";

/// What is known so far of a request's user.
pub(crate) fn answers(attributes: &Attributes) -> Arc<Answers> {
    attributes.findings.get::<Answers>(AUTHORIZER).unwrap_or_else(|| {
        let fresh = Arc::new(Answers::default());
        attributes.findings.note(AUTHORIZER, Arc::clone(&fresh));
        fresh
    })
}

/// Evaluates, from `begun` on, until nothing is asked that is not among the `answers` yet. Gives when that was the case,
/// too: what comes next begins then, and need not look at the clock.
pub(crate) async fn answered<T: Send>(
    cx: &Context,
    user: &Arc<UserInfo>,
    answers: &Answers,
    mut begun: Instant,
    mut evaluate: impl FnMut() -> T + Send,
) -> (T, Instant) {
    loop {
        let outcome = evaluate();
        let ended = cx.clock.monotonic();
        cx.recorder.expressions_evaluated(ended - begun);
        let open = answers.take_open();
        if open.is_empty() {
            return (outcome, ended);
        }
        drop(outcome);
        for question in open {
            let decision = cx.lookup.decide(user, &question).await;
            answers.note(question, decision);
        }
        begun = cx.clock.monotonic();
    }
}
