//! MutatingAdmissionPolicy: how policies change objects, one after another, each seeing what the one before it left.

use std::collections::BTreeSet;

use admission_cel::Facts;
use api_machinery::field_path::Cause;
use api_machinery::object::{Kind as _, Object};
use api_machinery::reflect;
use api_machinery::status::{ApiError, reason};
use api_types::admissionregistration_v1::constants::reinvocation_policy_type::IF_NEEDED;
use api_types::admissionregistration_v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use cel::Value;
use parking_lot::Mutex;

use crate::expressions::{Held, answered, answers};
use crate::matching::{Known, Matched, Subject};
use crate::policies::mutating::{Changed, change};
use crate::policies::{Policy, Sets, Views, is_exempt, plan};
use crate::recorder::{PolicyCheck, PolicyError};
use crate::versions::assign;
use crate::{Attributes, Context, Operation, Pass, Passes, Plugin, PluginEntry, Served};

const NAME: &str = "MutatingAdmissionPolicy";

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: NAME,
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&MutatingAdmissionPolicy::TYPE, &MutatingAdmissionPolicyBinding::TYPE, &Namespace::TYPE],
    configuration: None,
    build: |settings| Box::new(Policies { enabled: settings.mutating_policies, sets: Sets::default() }),
};

struct Policies {
    enabled: bool,
    sets: Sets<MutatingAdmissionPolicy>,
}

/// A policy with a binding and a parameter.
type Key = (String, String, String);

/// What is remembered from the first round to the second.
#[derive(Default)]
struct Memory {
    /// What was called, and would be called again.
    called: BTreeSet<Key>,
    /// What is called again, as others changed the object after it.
    due: BTreeSet<Key>,
    /// The object as this plugin left it.
    left: Option<Box<dyn Object>>,
}

/// An error of a policy, for the answer.
struct Refusal {
    message: String,
    reason: &'static str,
}

#[async_trait]
impl Plugin for Policies {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.enabled && attributes.operation != Operation::Delete && !is_exempt(attributes)
    }

    fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        self.handles(attributes) && self.sets.is_needed(cx, attributes)
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        let sets = self.sets.current(cx, attributes).await?;
        let memory = attributes.rounds.memory::<Mutex<Memory>>();
        if attributes.rounds.is_second() {
            begin_second(&mut memory.lock(), object);
        }
        let known = Known::default();
        let (views, refusals) = (None, Vec::new());
        let mut run = Run { cx, attributes, known: &known, old, views, memory: &memory, refusals };
        for policy in sets.iter().flat_map(|set| &set.policies) {
            run.policy(policy, object).await?;
        }
        memory.lock().left = Some(object.clone_object());
        match run.refusals.as_slice() {
            [] => Ok(()),
            refusals => Err(refused(attributes, refusals)),
        }
    }
}

/// Whoever was called is called again, where somebody else changed the object since.
fn begin_second(memory: &mut Memory, object: &dyn Object) {
    let changed =
        memory.left.as_ref().is_some_and(|left| !reflect::equal_structs(left.as_reflect(), object.as_reflect()));
    if changed {
        memory.due = memory.called.clone();
    }
}

/// What became of a policy's changes.
#[derive(Default)]
struct Mutated {
    /// Whether there were any.
    made: bool,
    failure: Option<(String, PolicyError)>,
}

/// The policies of one round over one request.
struct Run<'a> {
    cx: &'a Context,
    attributes: &'a Attributes,
    known: &'a Known,
    old: Option<&'a dyn Object>,
    /// The request as policies see it, without its object, which they change.
    views: Option<Views<'a>>,
    memory: &'a Mutex<Memory>,
    refusals: Vec<Refusal>,
}

impl<'a> Run<'a> {
    async fn policy(
        &mut self,
        policy: &Policy<MutatingAdmissionPolicy>,
        object: &mut dyn Object,
    ) -> Result<(), ApiError> {
        let plan = {
            let subject = Subject::new(self.cx, self.attributes, Some(&*object), self.old, self.known);
            plan(self.cx, self.attributes, &subject, policy).await
        };
        let Some(plan) = plan else { return Ok(()) };
        for misfit in &plan.misfits {
            self.fail(policy, &misfit.binding, misfit.message.clone(), reason::FORBIDDEN);
        }
        for invocation in &plan.invocations {
            for params in invocation.params() {
                let binding = invocation.binding.object.metadata.name.as_str();
                let param = params.map(|own| format!("{}/{}", own.meta().namespace, own.meta().name));
                let key = (policy.name().to_owned(), binding.to_owned(), param.unwrap_or_default());
                if self.is_called(policy, &key) {
                    self.invoke(policy, &plan.matched, &key, params, object).await?;
                }
            }
        }
        Ok(())
    }

    /// In the second round only those are called that are due.
    fn is_called(&self, policy: &Policy<MutatingAdmissionPolicy>, key: &Key) -> bool {
        let mut memory = self.memory.lock();
        if self.attributes.rounds.is_second() {
            return memory.due.contains(key);
        }
        if policy.object.spec.reinvocation_policy == IF_NEEDED {
            memory.called.insert(key.clone());
        }
        true
    }

    /// Calls a policy, and counts what came of it.
    async fn invoke(
        &mut self,
        policy: &Policy<MutatingAdmissionPolicy>,
        matched: &Matched,
        key: &Key,
        params: Option<&dyn Object>,
        object: &mut dyn Object,
    ) -> Result<(), ApiError> {
        let begun = self.cx.clock.monotonic();
        let outcome = self.change(policy, matched, params, object).await?;
        if outcome.made {
            let mut memory = self.memory.lock();
            let earlier: Vec<Key> = memory.called.iter().filter(|own| *own != key).cloned().collect();
            memory.due.extend(earlier);
            self.attributes.rounds.want_another();
        }
        let error = outcome.failure.as_ref().map_or(PolicyError::None, |(_, error)| *error);
        let took = self.cx.clock.monotonic() - begun;
        let (name, binding) = (policy.name(), key.1.as_str());
        self.cx.recorder.mutating_policy(&PolicyCheck { policy: name, binding, error, took });
        if let Some((message, _)) = outcome.failure {
            self.fail(policy, binding, message, reason::INVALID);
        }
        Ok(())
    }

    /// Makes the changes of a policy, each in what the one before it left; those before one that fails stay.
    async fn change(
        &mut self,
        policy: &Policy<MutatingAdmissionPolicy>,
        matched: &Matched,
        params: Option<&dyn Object>,
        object: &mut dyn Object,
    ) -> Result<Mutated, ApiError> {
        let (cx, attributes) = (self.cx, self.attributes);
        let mut now = match matched {
            Matched::AsRequested => object.clone_object(),
            Matched::As(served) => cx.versions.convert(object, attributes.place(), served).await?,
        };
        let views = self.views(matched).await?;
        let answers = answers(attributes);
        let facts = Facts { object: Value::of_object(&*now), ..views.facts(matched, &answers) };
        let mut outcome = Mutated::default();
        let begun = cx.clock.monotonic();
        // The object is another one for each policy, and so is the answer.
        let (held, mut known) = policy.holds(cx, attributes, (Pass::Mutating, begun), &facts, params, None).await;
        match held {
            Held::Yes => {}
            Held::No => return Ok(outcome),
            Held::Failed(message) => return Ok(Mutated { failure: Some((message, PolicyError::Invalid)), ..outcome }),
        }
        for own in &policy.compiled {
            let facts = Facts { object: Value::of_object(&*now), ..views.facts(matched, &answers) };
            let changed = || change(cx, attributes, policy, own, (&*now, &facts), params);
            let evaluated = answered(cx, &attributes.user, &answers, known, changed);
            let (changed, ended) = evaluated.await;
            known = ended;
            match changed {
                Changed::Nothing => {}
                Changed::To(next) => (now, outcome.made) = (next, true),
                Changed::Ends(error) => return Err(error),
                Changed::Failed { message, error } => {
                    outcome.failure = Some((message, error));
                    break;
                }
            }
        }
        if outcome.made {
            let back = match matched {
                Matched::AsRequested => now,
                Matched::As(served) => {
                    cx.versions.convert(&*now, served.place(), &Served::requested(attributes)).await?
                }
            };
            assign(object, &*back)?;
        }
        Ok(outcome)
    }

    /// What expressions see, but for the object, which changes from one to the next.
    async fn views(&mut self, matched: &Matched) -> Result<&Views<'a>, ApiError> {
        let mut views = match self.views.take() {
            Some(views) => views,
            None => Views::new(self.cx, self.attributes, self.known, None, self.old).await?,
        };
        views.show(self.cx, matched).await?;
        Ok(self.views.insert(views))
    }

    fn fail(&mut self, policy: &Policy<MutatingAdmissionPolicy>, binding: &str, message: String, why: &'static str) {
        let Some(message) = policy.failure.judge(message) else { return };
        let name = policy.name();
        let message = if binding.is_empty() {
            format!("policy {name:?} denied request: {message}")
        } else {
            format!("policy '{name}' with binding '{binding}' denied request: {message}")
        };
        self.refusals.push(Refusal { message, reason: why });
    }
}

/// The answer: what the first said, and all of it as causes.
fn refused(attributes: &Attributes, refusals: &[Refusal]) -> ApiError {
    let first = refusals.first();
    let mut error = attributes.forbidden("");
    error.message = first.map(|own| own.message.clone()).unwrap_or_default();
    error.reason = first.map_or(reason::FORBIDDEN, |own| own.reason).into();
    let causes = refusals.iter().map(|own| Cause { message: own.message.clone(), ..Cause::default() });
    error.details.get_or_insert_default().causes.extend(causes);
    error
}
