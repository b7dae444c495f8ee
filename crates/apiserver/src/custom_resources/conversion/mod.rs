//! Conversion by the webhook of a definition: what is asked, and what may come back. All objects of a question are
//! converted, or none.
//!
//! Protocol: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>

mod caller;
mod review;

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::object::{Object, Unstructured};
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use async_trait::async_trait;
use kinds::metadata::validate_embedded;
use kinds::rules::Rules as _;
use registry::{ConvertElsewhere, Stored};

pub(super) use caller::Caller;

use super::rules::CustomRules;
use crate::custom_kinds::CustomKind;
use crate::metrics::conversions::Failure;

/// The most that objects of one question take, roughly: one that is larger goes by itself.
const QUESTION_BYTES: usize = 16 << 20;

/// A version of the kind.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) kind: Arc<CustomKind>,
    pub(super) rules: Arc<CustomRules>,
}

/// Between a served version and the stored one.
pub(super) struct WebhookConversion {
    pub(super) caller: Arc<Caller>,
    pub(super) served: Side,
    pub(super) stored: Side,
}

#[async_trait]
impl ConvertElsewhere for WebhookConversion {
    async fn to_served(&self, stored: &[Arc<Stored>]) -> Result<Vec<Box<dyn Object>>, ApiError> {
        let objects: Vec<&dyn Object> = stored.iter().map(|item| item.object()).collect();
        self.convert(&objects, &self.served).await
    }

    async fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        let converted = self.convert(&[served], &self.stored).await?;
        converted.into_iter().next().ok_or_else(|| ApiError::internal("an object was lost in its conversion"))
    }
}

impl WebhookConversion {
    /// Objects of that version already are not asked about.
    async fn convert(&self, objects: &[&dyn Object], to: &Side) -> Result<Vec<Box<dyn Object>>, ApiError> {
        let wanted = to.rules.api_version();
        let mut converted = Vec::with_capacity(objects.len());
        let mut asked: Vec<&Unstructured> = Vec::new();
        let mut size = 0;
        for object in objects {
            let custom: &Unstructured =
                object.downcast_ref().ok_or_else(|| ApiError::internal("an object of another kind"))?;
            if custom.type_meta.api_version == wanted {
                self.ask(&mut asked, to, &mut converted).await?;
                converted.push(object.clone_object());
                size = 0;
                continue;
            }
            let bytes = object.to_json().len();
            if size + bytes > QUESTION_BYTES {
                self.ask(&mut asked, to, &mut converted).await?;
                size = 0;
            }
            size += bytes;
            asked.push(custom);
        }
        self.ask(&mut asked, to, &mut converted).await?;
        Ok(converted)
    }

    /// Asks about what has gathered, and adds what it became.
    async fn ask(
        &self,
        asked: &mut Vec<&Unstructured>,
        to: &Side,
        converted: &mut Vec<Box<dyn Object>>,
    ) -> Result<(), ApiError> {
        let Some(first) = asked.first() else { return Ok(()) };
        let is_list = asked.len() > 1;
        let kind = if is_list { &to.kind.list_kind } else { &first.type_meta.kind };
        let who = format!("conversion webhook for {}, Kind={kind}", first.type_meta.api_version);
        let fail = |text: String| ApiError::unclassified(text);
        let (from, wanted) = (first.type_meta.api_version.clone(), to.rules.api_version());
        let objects: Vec<Value> = asked.iter().map(|object| (*object as &dyn Object).to_value()).collect();
        let answered = self.caller.ask(objects, (&from, &wanted)).await;
        let answered = answered.map_err(|error| fail(format!("{who} failed: {error}")))?;
        if answered.len() != asked.len() {
            self.caller.note(Failure::PartialResponse);
            return Err(fail(format!("{who} returned {} objects, expected {}", answered.len(), asked.len())));
        }
        for (index, (original, value)) in asked.drain(..).zip(answered).enumerate() {
            let object = finish(original, value, to).map_err(|problem| {
                self.caller.note(Failure::InvalidObject);
                fail(problem.told(&who, is_list.then_some(index)))
            })?;
            converted.push(object);
        }
        self.caller.succeeded();
        Ok(())
    }
}

/// What is wrong with a converted object.
#[derive(Debug)]
enum Problem {
    /// It is of another version or kind than it should be.
    Type(String),
    /// It is another object.
    Object(String),
    Metadata(String),
}

impl Problem {
    /// As upstream tells it, of an object of a list by its place.
    fn told(self, who: &str, index: Option<usize>) -> String {
        match (self, index) {
            (Self::Type(why), None) => format!("{who} returned invalid object at index 0: {why}"),
            (Self::Object(why), None) => format!("{who} returned invalid object: {why}"),
            (Self::Metadata(why), None) => format!("{who} returned invalid metadata: {why}"),
            (Self::Type(why) | Self::Object(why), Some(index)) => {
                format!("{who} returned invalid converted object at index {index}: {why}")
            }
            (Self::Metadata(why), Some(index)) => {
                format!("{who} returned invalid metadata in object at index {index}: {why}")
            }
        }
    }
}

/// The converted object with the metadata that it had: only labels and annotations may have changed.
fn finish(original: &Unstructured, value: Value, to: &Side) -> Result<Box<dyn Object>, Problem> {
    let Value::Object(mut members) = value else { return Err(Problem::Object("it is no object".into())) };
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind, wanted) = (text("apiVersion"), text("kind"), to.rules.api_version());
    if version != wanted {
        return Err(Problem::Type(format!("invalid groupVersion (expected {wanted}, received {version})")));
    }
    let former = &original.type_meta.kind;
    if kind != *former {
        return Err(Problem::Type(format!("invalid kind (expected {former}, received {kind})")));
    }
    let metadata = match members.remove("metadata") {
        None => return Err(Problem::Metadata("missing metadata in converted object".into())),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let of = go_type(&other);
            return Err(Problem::Metadata(format!("invalid metadata of type {of} in converted object")));
        }
    };
    let meta = &original.metadata;
    for (what, name, own) in
        [("name", "name", &meta.name), ("namespace", "namespace", &meta.namespace), ("UID", "uid", &meta.uid)]
    {
        let given = metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        if given != own {
            return Err(Problem::Object(format!("must have the same {what}: {own} != {given}")));
        }
    }
    members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    let mut object = Unstructured::new(&wanted, &kind);
    object.content = members.into_iter().collect();
    object.metadata = restored(meta, &metadata)?;
    to.kind.prune(&mut object);
    to.rules.set_defaults(&mut object);
    Ok(Box::new(object))
}

fn restored(meta: &ObjectMeta, converted: &serde_json::Map<String, Value>) -> Result<ObjectMeta, Problem> {
    let texts = |name: &str| {
        let entries = converted.get(name).and_then(Value::as_object).into_iter().flatten();
        let entries = entries.map(|(key, value)| match value {
            Value::String(text) => Ok((key.clone(), text.clone())),
            other => Err(Problem::Metadata(format!(
                "metadata.{name}[{key}] must be a string, but is {} in converted object",
                go_type(other)
            ))),
        });
        entries.collect::<Result<std::collections::BTreeMap<_, _>, _>>()
    };
    let restored = ObjectMeta { labels: texts("labels")?, annotations: texts("annotations")?, ..meta.clone() };
    let mut changed = ObjectMeta::default();
    if restored.labels != meta.labels {
        changed.labels.clone_from(&restored.labels);
    }
    if restored.annotations != meta.annotations {
        changed.annotations.clone_from(&restored.annotations);
    }
    let errors: ErrorList = validate_embedded(&changed, &Path::new("metadata"));
    if errors.is_empty() { Ok(restored) } else { Err(Problem::Metadata(errors.to_string())) }
}

/// The type that upstream's decoder makes of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
