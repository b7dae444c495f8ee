//! ValidatingAdmissionWebhook: others may refuse what is written. All are asked at once, and all are awaited.

use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::ValidatingWebhookConfiguration;
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::matching::{Known, Matched, Subject};
use crate::webhook::{self, Asking, Failure, Hook, Hooks, Shown};
use crate::{Attributes, Context, Pass, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "ValidatingAdmissionWebhook",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&ValidatingWebhookConfiguration::TYPE, &Namespace::TYPE],
    build: |_| Box::new(ValidatingWebhook::default()),
};

#[derive(Default)]
struct ValidatingWebhook {
    hooks: Hooks<ValidatingWebhookConfiguration>,
}

/// A webhook that is asked, and what it is shown; the objects are those of the request where nothing was converted.
struct Question<'h> {
    hook: &'h Hook,
    matched: Matched,
    object: Option<Box<dyn Object>>,
    old: Option<Box<dyn Object>>,
}

impl<'h> Question<'h> {
    async fn new(
        asking: &Asking<'_>,
        hook: &'h Hook,
        matched: Matched,
        objects: [Option<&dyn Object>; 2],
    ) -> Result<Self, ApiError> {
        let mut converted = [None, None];
        if let Matched::As(served) = &matched {
            for (from, to) in objects.into_iter().zip(&mut converted) {
                let Some(from) = from else { continue };
                *to = Some(asking.cx.versions.convert(from, asking.attributes.place(), served).await?);
            }
        }
        let [object, old] = converted;
        Ok(Self { hook, matched, object, old })
    }

    fn shown<'a>(&'a self, attributes: &'a Attributes, objects: [Option<&'a dyn Object>; 2]) -> Shown<'a> {
        let (resource, kind): ([&str; 3], &GroupVersionKind) = match &self.matched {
            Matched::AsRequested => (attributes.place(), &attributes.kind),
            Matched::As(served) => (served.place(), &served.kind),
        };
        let [object, old] = objects;
        Shown { resource, kind, object: self.object.as_deref().or(object), old: self.old.as_deref().or(old) }
    }
}

#[async_trait]
impl Plugin for ValidatingWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        webhook::may_be_asked(attributes)
    }

    fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        self.handles(attributes) && cx.lookup.has_any(ValidatingWebhookConfiguration::TYPE.place())
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let hooks: Arc<[Hook]> = self.hooks.current(cx, attributes).await?;
        let caller = Arc::clone(&cx.callers.validating);
        let asking = Asking { cx, caller: &*caller, attributes, pass: Pass::Validating };
        let known = Known::default();
        let subject = Subject::new(cx, attributes, object, old, &known);
        let mut questions = Vec::new();
        for hook in hooks.iter() {
            if let Some(matched) = hook.matches(&subject).await? {
                questions.push(Question::new(&asking, hook, matched, [object, old]).await?);
            }
        }
        if questions.is_empty() {
            return Ok(());
        }
        if asking.is_over() {
            return Err(webhook::over());
        }
        all(&asking, &questions, [object, old]).await
    }
}

/// Asks all at once; the first refusal to arrive is the answer.
async fn all(
    asking: &Asking<'_>,
    questions: &[Question<'_>],
    objects: [Option<&dyn Object>; 2],
) -> Result<(), ApiError> {
    let ask = |(index, question)| one(asking, index, question, objects);
    let mut answers: FuturesUnordered<_> = questions.iter().enumerate().map(ask).collect();
    let mut outcome = Ok(());
    while let Some(answer) = answers.next().await {
        match answer {
            Err(error) if outcome.is_ok() => outcome = Err(error),
            Err(error) => tracing::info!(%error, "Another webhook refuses as well"),
            Ok(()) => {}
        }
    }
    outcome
}

/// Asks one; `index` is its place among those that are asked.
async fn one(
    asking: &Asking<'_>,
    index: usize,
    question: &Question<'_>,
    objects: [Option<&dyn Object>; 2],
) -> Result<(), ApiError> {
    let shown = question.shown(asking.attributes, objects);
    match asking.ask(question.hook, &shown).await {
        Ok(_) => Ok(()),
        Err(Failure::Refused(error)) => Err(error),
        Err(Failure::Unasked { reason, .. }) => {
            let annotation = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            asking.settle(question.hook, &reason, &annotation)
        }
    }
}
