//! A policy's match conditions over a request.

use std::sync::Arc;

use admission_cel::{Answers, Facts, Matched, Scene};
use api_machinery::object::Object;
use cel::Value;

use super::asking::settled;
use super::bound::{Policy, PolicyKind};
use crate::recorder::{ConditionKind, ConditionRun};
use crate::{Attributes, Context, Pass};

/// Whether a policy is to be asked about a request.
pub(crate) enum Held {
    Yes,
    No,
    /// Nobody knows.
    Failed(String),
}

/// Whether the conditions of a policy hold, counted and timed where it has any.
pub(crate) async fn holds<'s, P: PolicyKind>(
    cx: &Context,
    attributes: &Attributes,
    pass: Pass,
    policy: &'s Policy<P>,
    facts: impl Fn(&Arc<Answers>) -> Facts<'s> + Send + Sync,
    params: Option<&'s dyn Object>,
) -> Held {
    if policy.conditions.is_empty() {
        return Held::Yes;
    }
    let begun = cx.clock.monotonic();
    let held = settled(cx, attributes, |answers| {
        let params = params.map_or(Value::Null, Value::of_object);
        let scene = Scene::new(facts(answers), params, Some(&policy.composition));
        match policy.conditions.evaluate(&scene) {
            Matched::Yes => Held::Yes,
            Matched::No(_) => Held::No,
            Matched::Failed(errors) => Held::Failed(super::joined(&errors)),
        }
    });
    let held = held.await;
    let run = ConditionRun { name: policy.name(), kind: ConditionKind::Policy, pass, operation: attributes.operation };
    cx.recorder.conditions_evaluated(&run, cx.clock.monotonic() - begun);
    match held {
        Held::Yes => {}
        Held::No => cx.recorder.condition_excluded(&run),
        Held::Failed(_) => cx.recorder.condition_failed(&run),
    }
    held
}
