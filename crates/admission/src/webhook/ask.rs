//! One webhook is asked: what has to hold before, and what becomes of its answer.

use std::time::Duration;

use api_machinery::field_path::Cause;
use api_machinery::meta::Status;
use api_machinery::status::{ApiError, ErrorDetails};
use base::trace::{self, Span};

use super::Hook;
use super::caller::Caller;
use super::hook::SideEffects;
use super::review::{self, ReviewResponse, VersionedAttributes};
use crate::{Attributes, Context, Pass, WebhookOutcome, WebhookRun};

/// What is asked of webhooks in one pass over a request.
pub(crate) struct Asking<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) caller: &'a dyn Caller,
    pub(crate) attributes: &'a Attributes,
    pub(crate) pass: Pass,
}

/// Why a webhook does not let a request pass.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    /// It refuses, or the request cannot go on whatever the failure policy says.
    Refused(ApiError),
    /// It cannot be asked; its failure policy decides.
    Unasked {
        /// Why.
        reason: String,
        /// The code that metrics have.
        code: u16,
    },
}

impl Failure {
    pub(crate) fn unasked(reason: impl Into<String>, code: u16) -> Self {
        Self::Unasked { reason: reason.into(), code }
    }
}

impl Asking<'_> {
    /// Asks a webhook, and notes what it has to say beside its answer; gives its patch.
    ///
    /// # Errors
    /// When the request does not pass, or it could not be asked.
    pub(crate) async fn ask(&self, hook: &Hook, shown: &VersionedAttributes<'_>) -> Result<Vec<u8>, Failure> {
        let clock = &self.cx.clock;
        let begun = clock.monotonic();
        let outcome = self.put(hook, shown).await;
        let code = match &outcome {
            Ok(_) => WebhookOutcome::Allowed,
            Err(Failure::Refused(error)) => WebhookOutcome::Refused(error.code),
            Err(Failure::Unasked { code, .. }) => WebhookOutcome::Unasked { code: *code, fails_open: hook.fails_open },
        };
        self.cx.recorder.webhook(&WebhookRun {
            name: &hook.name,
            pass: self.pass,
            operation: self.attributes.operation,
            outcome: code,
            took: clock.monotonic() - begun,
        });
        outcome
    }

    async fn put(&self, hook: &Hook, shown: &VersionedAttributes<'_>) -> Result<Vec<u8>, Failure> {
        match hook.side_effects {
            SideEffects::Unsaid => return Err(Failure::unasked("Webhook SideEffects is nil", 400)),
            SideEffects::Possible if self.attributes.dry_run => {
                let text = format!("admission webhook {:?} does not support dry run", hook.name);
                return Err(Failure::Refused(ApiError::bad_request(text)));
            }
            _ => {}
        }
        let Some(version) = hook.version else {
            let text = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                        (v1, v1beta1)";
            return Err(Failure::unasked(text, 400));
        };
        let uid = self.cx.rng.uuid();
        let question = review::question(version, &uid, self.attributes, shown);
        let span = self.span(hook, &uid);
        // Others may be asked at the same time.
        let answer = trace::within(&span, self.caller.call(&hook.target, question, self.limit(hook))).await;
        drop(span);
        let answer = answer.map_err(|error| Failure::unasked(error.to_string(), error.code()))?;
        let response = review::read_response(&answer, version, &uid, self.pass);
        self.heed(hook, response.map_err(|reason| Failure::unasked(reason, 503))?)
    }

    /// What the question is in the trace of the request.
    fn span(&self, hook: &Hook, uid: &str) -> Span {
        let name = match self.pass {
            Pass::Mutating => "Call mutating webhook",
            Pass::Validating => "Call validating webhook",
        };
        let mut span = trace::child(name);
        if span.is_recorded() {
            let attributes = self.attributes;
            span.set("webhook", hook.name.clone());
            span.set("resource", attributes.resource.clone());
            span.set("subresource", attributes.subresource.clone());
            span.set("operation", attributes.operation.as_str());
            span.set("UID", uid.to_owned());
        }
        span
    }

    /// How long the webhook may take: no longer than somebody waits for the request.
    fn limit(&self, hook: &Hook) -> Duration {
        let left = self.attributes.deadline.map(|end| end.saturating_duration_since(self.cx.clock.monotonic()));
        left.map_or(hook.timeout, |left| left.min(hook.timeout))
    }

    fn heed(&self, hook: &Hook, response: ReviewResponse) -> Result<Vec<u8>, Failure> {
        for (key, text) in response.audit_annotations {
            self.attributes.annotations.add(format!("{}/{key}", hook.name), text);
        }
        response.warnings.into_iter().for_each(|text| self.attributes.warnings.add(text));
        if response.allowed { Ok(response.patch) } else { Err(Failure::Refused(refusal(&hook.name, response.status))) }
    }

    /// Whether nobody waits for the request any more.
    pub(crate) fn is_over(&self) -> bool {
        self.attributes.deadline.is_some_and(|end| end <= self.cx.clock.monotonic())
    }

    /// What a webhook that could not be asked comes to: nothing, where its failure policy lets the request go on.
    ///
    /// # Errors
    /// 500 where it does not.
    pub(crate) fn apply_failure_policy(&self, hook: &Hook, reason: &str, annotation: &str) -> Result<(), ApiError> {
        let text = format!("failed calling webhook {:?}: {reason}", hook.name);
        if !hook.fails_open {
            return Err(ApiError::internal(text));
        }
        tracing::warn!(webhook = hook.name, reason, "Failed calling webhook, failing open");
        self.cx.recorder.webhook_failed_open(&hook.name, self.pass);
        self.attributes.annotations.add(annotation, hook.name.as_str());
        Ok(())
    }
}

/// What clients are told when too little time is left.
pub(crate) fn over() -> ApiError {
    ApiError::timeout("request did not complete within requested timeout", 0).with_details(ErrorDetails::default())
}

/// The refusal of a webhook, as clients are told of it.
fn refusal(name: &str, status: Status) -> ApiError {
    let why = [status.message, status.reason.clone()].into_iter().find(|text| !text.is_empty());
    let message = match why {
        Some(why) => format!("admission webhook {name:?} denied the request: {why}"),
        None => format!("admission webhook {name:?} denied the request without explanation"),
    };
    let code = u16::try_from(status.code).ok().filter(|code| (400..600).contains(code)).unwrap_or(400);
    let details = status.details.map(|own| {
        let cause = |own: api_machinery::meta::StatusCause| Cause {
            reason: own.reason,
            message: own.message,
            field: own.field,
        };
        Box::new(ErrorDetails {
            name: own.name,
            group: own.group,
            kind: own.kind,
            uid: own.uid,
            causes: own.causes.into_iter().map(cause).collect(),
            retry_after_seconds: own.retry_after_seconds,
        })
    });
    ApiError { code, reason: status.reason.into(), message, details, continue_token: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_the_webhook_said() {
        let status = |code, message: &str, reason: &str| Status {
            code,
            message: message.into(),
            reason: reason.into(),
            ..Status::default()
        };
        let prefix = "admission webhook \"w\" denied the request";
        for (given, code, message) in [
            (status(0, "", ""), 400, format!("{prefix} without explanation")),
            (status(200, "no", ""), 400, format!("{prefix}: no")),
            (status(403, "no", "Forbidden"), 403, format!("{prefix}: no")),
            (status(-1, "", "Forbidden"), 400, format!("{prefix}: Forbidden")),
            (status(70_000, "no", ""), 400, format!("{prefix}: no")),
        ] {
            let error = refusal("w", given);
            assert_eq!((error.code, error.message), (code, message));
        }
    }
}
