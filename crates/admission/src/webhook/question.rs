//! What a webhook is to be asked: how the request matched, and its objects as the webhook wants them.

use admission_cel::{Facts, Scene};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use cel::Value;

use super::review::VersionedAttributes;
use super::{Asking, Hook};
use crate::expressions::{Held, answers, holds, lateness, request};
use crate::matching::Matched;
use crate::recorder::{ConditionKind, ConditionRun};
use crate::{Attributes, Served};

/// The objects are those of the request where nothing was converted.
pub(crate) struct Question {
    matched: Matched,
    object: Option<Box<dyn Object>>,
    old: Option<Box<dyn Object>>,
}

impl Question {
    /// Converts the objects of the request, the new one and the old one, where the webhook wants another version.
    ///
    /// # Errors
    /// When they cannot be converted.
    pub(crate) async fn new(
        asking: &Asking<'_>,
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
        Ok(Self { matched, object, old })
    }

    /// The version that the webhook wants, where it is not the request's.
    pub(crate) fn served(&self) -> Option<&Served> {
        match &self.matched {
            Matched::AsRequested => None,
            Matched::As(served) => Some(&**served),
        }
    }

    /// What the webhook is shown of a request with these objects.
    pub(crate) fn shown<'a>(
        &'a self,
        attributes: &'a Attributes,
        objects: [Option<&'a dyn Object>; 2],
    ) -> VersionedAttributes<'a> {
        let (resource, kind) = match self.served() {
            None => (attributes.place(), &attributes.kind),
            Some(served) => (served.place(), &served.kind),
        };
        let [object, old] = objects;
        VersionedAttributes {
            resource,
            kind,
            object: self.object.as_deref().or(object),
            old: self.old.as_deref().or(old),
        }
    }
}

impl Asking<'_> {
    /// Whether the request meets the conditions of a webhook that is about it.
    ///
    /// # Errors
    /// 403 where nobody knows, unless the webhook may be left out then.
    pub(crate) async fn is_wanted(&self, hook: &Hook, shown: &VersionedAttributes<'_>) -> Result<bool, ApiError> {
        let (cx, attributes, pass) = (self.cx, self.attributes, self.pass);
        let (name, operation) = (hook.name.as_str(), attributes.operation);
        let run = ConditionRun { name, kind: ConditionKind::Webhook, pass, operation };
        let is_late = lateness(attributes);
        let facts = Facts {
            object: shown.object.map_or(Value::Null, Value::of_object),
            old_object: shown.old.map_or(Value::Null, Value::of_object),
            request: request(attributes, shown.kind, shown.resource),
            // Declared, but without a value for webhooks.
            namespace: Value::Null,
            answers: Some(answers(attributes)),
            interrupted: Some(&is_late),
        };
        let scene = || Scene::new(&facts, Value::Null, None);
        let (held, _) = holds(cx, attributes, &run, cx.clock.monotonic(), &hook.conditions, scene, None).await;
        match held {
            Held::Yes => Ok(true),
            Held::No => Ok(false),
            Held::Failed(error) if hook.fails_open => {
                tracing::warn!(
                    webhook = hook.name,
                    error,
                    "Failed evaluating match conditions, leaving the webhook out"
                );
                Ok(false)
            }
            Held::Failed(error) => Err(ApiError::forbidden(&attributes.group_resource(), &attributes.name, error)),
        }
    }
}
