//! ValidatingAdmissionWebhook: others may refuse what is written. All are asked at once, and all are awaited.

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::ValidatingWebhookConfiguration;
use api_types::core_v1::Namespace;
use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::matching::{Known, Subject};
use crate::webhook::{self, Asking, Configuration as _, Failure, Hook, Hooks, Question};
use crate::{Attributes, Context, Pass, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: ValidatingWebhookConfiguration::PLUGIN,
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&ValidatingWebhookConfiguration::TYPE, &Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(ValidatingWebhook::default()),
};

#[derive(Default)]
struct ValidatingWebhook {
    hooks: Hooks<ValidatingWebhookConfiguration>,
}

#[async_trait]
impl Plugin for ValidatingWebhook {
    fn handles(&self, _: &Attributes) -> bool {
        true
    }

    fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        Hooks::<ValidatingWebhookConfiguration>::is_needed(cx, attributes)
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
        for hook in hooks.iter().filter(|hook| hook.may_be_asked(attributes)) {
            let Some(matched) = hook.matches(&subject).await? else { continue };
            let question = Question::new(&asking, matched, [object, old]).await?;
            if asking.is_wanted(hook, &question.shown(attributes, [object, old])).await? {
                questions.push((hook, question));
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
    questions: &[(&Hook, Question)],
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
    (hook, question): &(&Hook, Question),
    objects: [Option<&dyn Object>; 2],
) -> Result<(), ApiError> {
    let shown = question.shown(asking.attributes, objects);
    match asking.ask(hook, &shown).await {
        Ok(_) => Ok(()),
        Err(Failure::Refused(error)) => Err(error),
        Err(Failure::Unasked { reason, .. }) => {
            let annotation = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            asking.apply_failure_policy(hook, &reason, &annotation)
        }
    }
}
