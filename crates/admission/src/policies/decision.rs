//! What becomes of a request by all that policies said of it.

use api_machinery::field_path::Cause;
use api_machinery::status::{ApiError, reason};
use api_machinery::value::Value as Json;
use api_types::admissionregistration_v1::constants::validation_action;

use super::annotations::Annotations;
use super::validating::Failure;
use crate::Attributes;

/// The note of failures that a binding wants in the audit log.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The first refusal, and what else is said.
#[derive(Default)]
pub(crate) struct PolicyDecision {
    refusal: Option<ApiError>,
    noted: bool,
    pub(crate) annotations: Annotations,
}

impl PolicyDecision {
    /// The request is refused, unless it was before.
    pub(crate) fn refuse(&mut self, attributes: &Attributes, policy: &str, binding: &str, message: &str, why: &str) {
        if self.refusal.is_some() {
            return;
        }
        let by = if binding.is_empty() { String::new() } else { format!(" with binding '{binding}'") };
        let text = format!("ValidatingAdmissionPolicy '{policy}'{by} denied request: {message}");
        let mut error = attributes.forbidden(&text);
        (error.code, error.reason) = match why {
            reason::FORBIDDEN => (403, reason::FORBIDDEN.into()),
            reason::UNAUTHORIZED => (401, reason::UNAUTHORIZED.into()),
            reason::REQUEST_ENTITY_TOO_LARGE => (413, reason::REQUEST_ENTITY_TOO_LARGE.into()),
            "" => (422, reason::INVALID.into()),
            other => (422, other.to_owned().into()),
        };
        let details = error.details.get_or_insert_default();
        details.causes.push(Cause { message: text, ..Cause::default() });
        self.refusal = Some(error);
    }

    /// A failure, which does what the binding wants. Says which actions were taken.
    pub(crate) fn fail<'b>(
        &mut self,
        attributes: &Attributes,
        policy: &str,
        binding: &str,
        actions: &'b [String],
        failure: &Failure,
    ) -> impl Iterator<Item = &'b str> {
        for action in actions {
            match action.as_str() {
                validation_action::DENY => {
                    self.refuse(attributes, policy, binding, &failure.message, &failure.reason);
                }
                validation_action::WARN => attributes.warnings.add(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
                    failure.message
                )),
                validation_action::AUDIT => self.note(attributes, policy, binding, actions, failure),
                _ => {}
            }
        }
        actions.iter().map(String::as_str)
    }

    /// Only one failure of a request is noted: the key is the same for all.
    fn note(&mut self, attributes: &Attributes, policy: &str, binding: &str, actions: &[String], failure: &Failure) {
        if std::mem::replace(&mut self.noted, true) {
            return;
        }
        let actions: Vec<Json> = actions.iter().map(|action| action.as_str().into()).collect();
        let [message, policy, binding] = [failure.message.as_str(), policy, binding].map(Json::from);
        // The members stand in upstream's order.
        let text = format!(
            r#"[{{"message":{message},"policy":{policy},"binding":{binding},"expressionIndex":{},"validationActions":{}}}]"#,
            failure.index,
            Json::Array(actions)
        );
        attributes.annotations.add(FAILURE_ANNOTATION, text);
    }

    /// What the request is told.
    pub(crate) fn end(self, attributes: &Attributes) -> Result<(), ApiError> {
        self.annotations.publish(attributes);
        self.refusal.map_or(Ok(()), Err)
    }
}
