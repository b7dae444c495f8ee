//! Evaluations that may ask the authorizer.

use std::sync::Arc;

use admission_cel::Answers;

use crate::{Attributes, Context};

/// Under which name a request keeps what its user is known to be allowed; the same for all policies and conditions.
const AUTHORIZER: &str = "authorizer";

/// Evaluates until nothing is asked that is not answered yet.
pub(crate) async fn answered<T: Send>(
    cx: &Context,
    attributes: &Attributes,
    mut evaluate: impl FnMut(&Arc<Answers>) -> T + Send,
) -> T {
    let answers = attributes.findings.get::<Answers>(AUTHORIZER).unwrap_or_else(|| {
        let fresh = Arc::new(Answers::default());
        attributes.findings.note(AUTHORIZER, Arc::clone(&fresh));
        fresh
    });
    loop {
        let begun = cx.clock.monotonic();
        let outcome = evaluate(&answers);
        cx.recorder.expressions_evaluated(cx.clock.monotonic() - begun);
        let open = answers.take_open();
        if open.is_empty() {
            return outcome;
        }
        drop(outcome);
        for question in open {
            let decision = cx.lookup.decide(&attributes.user, &question).await;
            answers.note(question, decision);
        }
    }
}
