//! ValidatingAdmissionPolicy: what policies refuse, warn of and note. All that are about a request are asked; the first
//! refusal is the answer.

use admission_cel::{Answers, Facts};
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::constants::validation_action;
use api_types::admissionregistration_v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use tokio::time::Instant;

use crate::expressions::{Answer, Held, answered, answers};
use crate::matching::{Known, Matched, Subject};
use crate::policies::validating::{Judgement, judge, unknown};
use crate::policies::{Invocation, Plan, Policy, PolicyDecision, Sets, Views, is_exempt, plan};
use crate::recorder::{PolicyCheck, PolicyError};
use crate::{Attributes, Context, Pass, Passes, Plugin, PluginEntry};

const NAME: &str = "ValidatingAdmissionPolicy";

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: NAME,
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&ValidatingAdmissionPolicy::TYPE, &ValidatingAdmissionPolicyBinding::TYPE, &Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(Policies::default()),
};

#[derive(Default)]
struct Policies(Sets<ValidatingAdmissionPolicy>);

#[async_trait]
impl Plugin for Policies {
    fn handles(&self, attributes: &Attributes) -> bool {
        !is_exempt(attributes)
    }

    fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        self.handles(attributes) && self.0.is_needed(cx, attributes)
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let sets = self.0.current(cx, attributes).await?;
        let known = Known::default();
        let subject = Subject::new(cx, attributes, object, old, &known);
        let (mut decision, mut views) = (PolicyDecision::default(), None);
        for set in &sets {
            let mut plans = Vec::new();
            for (policy, number) in set.policies.iter().zip(&set.shared) {
                let Some(plan) = plan(cx, attributes, &subject, policy).await else { continue };
                // The namespace is looked up for policies that are asked only.
                if !plan.invocations.is_empty() {
                    let views = match &mut views {
                        Some(views) => views,
                        none => none.insert(Views::new(cx, attributes, &known, object, old).await?),
                    };
                    views.show(cx, &plan.matched).await?;
                }
                plans.push(Planned { policy, number: *number, plan });
            }
            if !plans.is_empty() {
                carry_out(cx, attributes, &plans, views.as_ref(), &mut decision).await;
            }
        }
        decision.end(attributes)
    }
}

/// A policy that is about the request.
struct Planned<'a> {
    policy: &'a Policy<ValidatingAdmissionPolicy>,
    /// Under which number it shares the answer of its conditions.
    number: Option<usize>,
    plan: Plan<'a, ValidatingAdmissionPolicy>,
}

/// Asks the policies of a set, one after the other.
async fn carry_out(
    cx: &Context,
    attributes: &Attributes,
    plans: &[Planned<'_>],
    views: Option<&Views<'_>>,
    decision: &mut PolicyDecision,
) {
    let answers = answers(attributes);
    // Most policies see the same.
    let mut shown: Option<(&Matched, Facts<'_>)> = None;
    let numbers = plans.iter().filter_map(|own| own.number);
    let mut shared = vec![None; numbers.max().map_or(0, |most| most + 1)];
    for Planned { policy, number, plan } in plans {
        for misfit in &plan.misfits {
            if let Some(message) = policy.failure.judge(misfit.message.clone()) {
                decision.refuse(attributes, policy.name(), &misfit.binding, &message, "");
            }
        }
        let Some(views) = views else { continue };
        if shown.as_ref().is_none_or(|(matched, _)| **matched != plan.matched) {
            shown = Some((&plan.matched, views.facts(&plan.matched, &answers)));
        }
        let Some((matched, facts)) = &shown else { continue };
        // Who matched another version sees other objects.
        let number = number.filter(|_| **matched == Matched::AsRequested);
        let mut shared = number.and_then(|number| shared.get_mut(number));
        for invocation in &plan.invocations {
            invoke(cx, attributes, (policy, invocation), (facts, &answers), shared.as_deref_mut(), decision).await;
        }
    }
}

/// A policy, and what it is asked with.
type Question<'a> = (&'a Policy<ValidatingAdmissionPolicy>, &'a Invocation<'a, ValidatingAdmissionPolicy>);

/// Evaluates a policy with one of its bindings, and does what that wants.
async fn invoke(
    cx: &Context,
    attributes: &Attributes,
    (policy, invocation): Question<'_>,
    (facts, answers): (&Facts<'_>, &Answers),
    mut shared: Option<&mut Option<Answer>>,
    decision: &mut PolicyDecision,
) {
    for params in invocation.params() {
        let begun = cx.clock.monotonic();
        let pass = (Pass::Validating, begun);
        let (held, known) = policy.holds(cx, attributes, pass, facts, params, shared.as_deref_mut()).await;
        let judged = || judge(policy, facts, params);
        let (judgement, ended) = match held {
            Held::Yes => answered(cx, &attributes.user, answers, known, judged).await,
            Held::No => continue,
            Held::Failed(message) => (unknown(policy, message), known),
        };
        apply(cx, attributes, (policy, invocation), judgement, (begun, ended), decision);
    }
}

fn apply(
    cx: &Context,
    attributes: &Attributes,
    (policy, invocation): Question<'_>,
    judgement: Judgement,
    (begun, ended): (Instant, Instant),
    decision: &mut PolicyDecision,
) {
    let (name, binding) = (policy.name(), &invocation.binding.object);
    let (own, actions) = (binding.metadata.name.as_str(), binding.spec.validation_actions.as_slice());
    let count = |error: PolicyError, action| {
        let check = PolicyCheck { policy: name, binding: own, error, took: ended - begun };
        cx.recorder.validating_policy(&check, action);
    };
    for error in judgement.ignored {
        count(error, "allow");
    }
    for failure in &judgement.failures {
        for action in decision.fail(attributes, name, own, actions, failure) {
            count(failure.error, lower_case(action));
        }
    }
    for refusal in &judgement.refusals {
        decision.refuse(attributes, name, own, &refusal.message, &refusal.reason);
        count(refusal.error, "deny");
    }
    for (key, value) in &judgement.annotations {
        decision.annotations.add(name, key, value);
    }
}

/// An action as metrics name it.
fn lower_case(action: &str) -> &'static str {
    match action {
        validation_action::WARN => "warn",
        validation_action::AUDIT => "audit",
        _ => "deny",
    }
}
