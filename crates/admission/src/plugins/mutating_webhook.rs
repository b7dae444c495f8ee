//! MutatingAdmissionWebhook: others may change what is written. One is asked after the other, as each sees what those
//! before it changed; those that want to see what came after them are asked once more.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::json;
use api_machinery::object::{Kind as _, Object};
use api_machinery::reflect::equal_structs;
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::MutatingWebhookConfiguration;
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use parking_lot::Mutex;
use schema::json_patch::JsonPatch;
use serde_json::json;

use crate::matching::{Known, Subject};
use crate::versions::assign;
use crate::webhook::{self, Asking, Configuration as _, Failure, Hook, Hooks, Question};
use crate::{Attributes, Context, Pass, Passes, Plugin, PluginEntry, Served};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: MutatingWebhookConfiguration::PLUGIN,
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&MutatingWebhookConfiguration::TYPE, &Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(MutatingWebhook::default()),
};

#[derive(Default)]
struct MutatingWebhook {
    hooks: Hooks<MutatingWebhookConfiguration>,
}

/// What is remembered of the first round.
#[derive(Default)]
struct Memory {
    /// Webhooks that were asked and want to be asked again if need be.
    asked: BTreeSet<String>,
    /// Those of them after which another changed the object.
    due: BTreeSet<String>,
    /// The object as it was left; nothing unless somebody wants to be asked again.
    left: Option<Box<dyn Object>>,
}

#[async_trait]
impl Plugin for MutatingWebhook {
    fn handles(&self, _: &Attributes) -> bool {
        true
    }

    fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        Hooks::<MutatingWebhookConfiguration>::is_needed(cx, attributes)
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let hooks: Arc<[Hook]> = self.hooks.current(cx, attributes).await?;
        let caller = Arc::clone(&cx.callers.mutating);
        let asking = Asking { cx, caller: &*caller, attributes, pass: Pass::Mutating };
        let memory = attributes.rounds.memory::<Mutex<Memory>>();
        let known = Known::default();
        let mut round = Round { asking, old, known: &known, object, memory: &memory };
        round.begin();
        for (index, hook) in hooks.iter().enumerate().filter(|(_, hook)| hook.may_be_asked(attributes)) {
            round.ask(index, hook).await?;
        }
        round.end();
        Ok(())
    }
}

/// One round over the webhooks.
struct Round<'a> {
    asking: Asking<'a>,
    object: Option<&'a mut dyn Object>,
    old: Option<&'a dyn Object>,
    known: &'a Known,
    memory: &'a Mutex<Memory>,
}

impl Round<'_> {
    fn is_second(&self) -> bool {
        self.asking.attributes.rounds.is_second()
    }

    /// In the second round: what others did between the rounds is news for everybody who wants to hear of it.
    fn begin(&self) {
        let mut memory = self.memory.lock();
        let left = memory.left.take();
        if let (true, Some(left), Some(now)) = (self.is_second(), left, &self.object)
            && !equal_structs(left.as_reflect(), now.as_reflect())
        {
            memory.due = memory.asked.clone();
        }
    }

    fn end(&self) {
        let mut memory = self.memory.lock();
        if !memory.asked.is_empty() && !self.is_second() {
            memory.left = self.object.as_deref().map(Object::clone_object);
        }
    }

    async fn ask(&mut self, index: usize, hook: &Hook) -> Result<(), ApiError> {
        if self.is_second() && !self.memory.lock().due.contains(&hook.id) {
            return Ok(());
        }
        let (cx, attributes) = (self.asking.cx, self.asking.attributes);
        let subject = Subject::new(cx, attributes, self.object.as_deref(), self.old, self.known);
        let Some(matched) = hook.matches(&subject).await? else { return Ok(()) };
        let objects = [self.object.as_deref(), self.old];
        let question = Question::new(&self.asking, matched, objects).await?;
        if !self.asking.is_wanted(hook, &question.shown(attributes, objects)).await? {
            return Ok(());
        }
        let outcome = self.put(hook, &question).await;
        let place = format!("round_{}_index_{index}", u8::from(self.is_second()));
        let changed = match outcome {
            Ok(changed) => changed,
            Err(Failure::Refused(error)) => {
                self.annotate(hook, &place, false);
                return Err(error);
            }
            Err(Failure::Unasked { reason, .. }) => {
                self.annotate(hook, &place, false);
                let annotation = format!("failed-open.mutation.webhook.admission.k8s.io/{place}");
                self.asking.apply_failure_policy(hook, &reason, &annotation)?;
                return if self.asking.is_over() { Err(webhook::over()) } else { Ok(()) };
            }
        };
        self.annotate(hook, &place, changed);
        self.remember(hook, changed);
        Ok(())
    }

    fn annotate(&self, hook: &Hook, place: &str, mutated: bool) {
        let text = json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated});
        let key = format!("mutation.webhook.admission.k8s.io/{place}");
        self.asking.attributes.annotations.add(key, text.to_string());
    }

    /// Who changed the object is news for those before it, not for itself.
    fn remember(&self, hook: &Hook, changed: bool) {
        let mut memory = self.memory.lock();
        if changed {
            self.asking.attributes.rounds.want_another();
            memory.due = memory.asked.clone();
        }
        if hook.again_if_needed {
            memory.asked.insert(hook.id.clone());
        }
    }

    /// Asks, and changes the object as is answered; says whether it changed.
    async fn put(&mut self, hook: &Hook, question: &Question) -> Result<bool, Failure> {
        let (cx, attributes) = (self.asking.cx, self.asking.attributes);
        let shown = question.shown(attributes, [self.object.as_deref(), self.old]);
        let patch = self.asking.ask(hook, &shown).await?;
        let Some(mut patched) = self.patched(hook, shown.object, &patch)? else { return Ok(false) };
        if let Some(served) = question.served() {
            let own = Served::requested(attributes);
            patched = cx.versions.convert(&*patched, served.place(), &own).await.map_err(Failure::Refused)?;
        }
        self.replace(&*patched)
    }

    /// The object with a patch applied, read as what clients send is read; nothing where the patch is empty.
    fn patched(
        &self,
        hook: &Hook,
        object: Option<&dyn Object>,
        patch: &[u8],
    ) -> Result<Option<Box<dyn Object>>, Failure> {
        if patch.is_empty() {
            return Ok(None);
        }
        let undecodable = |error: &dyn std::fmt::Display| {
            Failure::unasked(format!("received undecodable patch in webhook response: {error}"), 503)
        };
        let value = json::parse_value(&String::from_utf8_lossy(patch)).map_err(|error| undecodable(&error))?;
        if value.as_array().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let Some(object) = object else {
            let text = format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name
            );
            return Err(Failure::Refused(ApiError::internal(text)));
        };
        let operations = JsonPatch::parse(&value).map_err(|error| undecodable(&error))?;
        let refused = |error: &dyn std::fmt::Display| Failure::Refused(ApiError::internal(error));
        let patched = operations.apply(object.to_value()).map_err(|error| refused(&error))?;
        self.asking.cx.versions.read(object, &patched).map(Some).map_err(Failure::Refused)
    }

    /// Puts what was made of the object in its place; says whether it differs.
    fn replace(&mut self, with: &dyn Object) -> Result<bool, Failure> {
        let Some(object) = self.object.as_deref_mut() else { return Ok(false) };
        if equal_structs(object.as_reflect(), with.as_reflect()) {
            return Ok(false);
        }
        assign(object, with).map_err(Failure::Refused)?;
        Ok(true)
    }
}
