//! Upstream's bytes in the store: protobuf in its envelope for built-in kinds, JSON with a newline for custom ones and what
//! upstream writes so, or CBOR. Any is read, whatever is written.

use std::borrow::Cow;

use api_machinery::object::Object;
use api_machinery::{cbor, json, protobuf};
use bytes::Bytes;
use kinds::lifecycle::Written;
use kinds::rules::Rules;
use kinds::versions::{FormerForm, VersionConversion};
use watch_cache::Codec;

use crate::context::RulesRef;

/// What objects are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageMedia {
    /// Enveloped protobuf.
    Protobuf,
    /// JSON and a newline.
    Json,
    /// CBOR.
    Cbor,
}

/// A version that is not the one that is kept.
enum OtherVersion {
    /// One that is served: its rules, and how its objects become those of the version that is kept.
    Served(&'static dyn Rules, VersionConversion),
    /// One that is served no more, of another form.
    Former { empty: fn() -> Box<dyn Object>, to_current: fn(&dyn Object) -> Option<Box<dyn Object>> },
}

/// The codec of one resource's stored version.
pub struct ObjectCodec {
    /// The rules of the stored version, for its empty object and its defaults.
    pub(crate) rules: RulesRef,
    pub(crate) media: StorageMedia,
}

impl ObjectCodec {
    /// That of a built-in kind.
    #[must_use]
    pub fn built_in(rules: &'static dyn Rules, media: StorageMedia) -> Self {
        Self { rules: RulesRef::Static(rules), media }
    }

    /// The bytes to store: without resource version and self link.
    pub fn encode(&self, object: &mut dyn Object) -> Bytes {
        let meta = object.meta_mut();
        meta.resource_version.clear();
        meta.self_link.clear();
        match self.rules.lifecycle().written {
            Written::AsAsked => bytes(object, self.media),
            Written::Json => bytes(object, StorageMedia::Json),
            Written::JsonIn(form) => bytes(form(object).as_deref().unwrap_or(object), StorageMedia::Json),
        }
    }

    /// Reads an object as the version that it says it is of, and makes it one of the version that is kept.
    ///
    /// # Errors
    /// Why it cannot be read: it is damaged, of another kind, or of a version that nobody knows.
    pub fn read(&self, value: &[u8]) -> Result<Box<dyn Object>, String> {
        let mut object = self.rules.new_object();
        match self.other_version(value, &object.api_version())? {
            Some(OtherVersion::Served(other, conversion)) => {
                let mut stored = other.new_object();
                fill(value, &mut *stored)?;
                other.set_defaults(&mut *stored);
                object = converted(&*stored, |stored| conversion.to_stored(stored))?;
            }
            Some(OtherVersion::Former { empty, to_current }) => {
                let mut stored = empty();
                fill(value, &mut *stored)?;
                object = converted(&*stored, to_current)?;
            }
            None => {
                let stored = fill(value, &mut *object)?;
                self.bring_up_to_date(&mut *object, &stored)?;
            }
        }
        self.rules.complete_stored(&mut *object);
        Ok(object)
    }

    /// The version that a value is of, where that is read as something else than the one that is kept. Custom kinds have
    /// none that differ in more than their name.
    fn other_version(&self, value: &[u8], current: &str) -> Result<Option<OtherVersion>, String> {
        let RulesRef::Static(rules) = &self.rules else { return Ok(None) };
        let stored = if protobuf::is_enveloped(value) {
            protobuf::open(value).map_err(|error| error.to_string())?.api_version
        } else {
            let text = json_of(value)?;
            let text = std::str::from_utf8(&text).map_err(|error| error.to_string())?;
            json::read_type_meta(text).map_err(|error| error.to_string())?.api_version
        };
        if stored == current {
            return Ok(None);
        }
        let served = kinds::other_version(rules.info(), &stored).and_then(|other| Some((other, other.conversion()?)));
        if let Some((other, conversion)) = served {
            return Ok(Some(OtherVersion::Served(other, conversion)));
        }
        let former = rules.former().iter().find(|former| former.api_version == stored);
        Ok(former.and_then(|former| match former.form {
            FormerForm::Own { empty, to_current } => Some(OtherVersion::Former { empty, to_current }),
            FormerForm::Same(_) => None,
        }))
    }

    /// Objects are stored as another version than the current one in an etcd that was taken over, and where the stored
    /// version of a definition moved on.
    fn bring_up_to_date(&self, object: &mut dyn Object, stored: &str) -> Result<(), String> {
        let current = object.api_version();
        if stored == current {
            return Ok(());
        }
        if stored.is_empty() {
            return Err("Object 'apiVersion' is missing".to_owned());
        }
        if self.rules.bring_up_to_date(object, stored) {
            return Ok(());
        }
        Err(format!("{} is stored as {stored}, which this server cannot read as {current}", object.kind()))
    }
}

fn bytes(object: &dyn Object, media: StorageMedia) -> Bytes {
    match media {
        StorageMedia::Protobuf => object.to_protobuf().into(),
        StorageMedia::Cbor => object.to_cbor().into(),
        StorageMedia::Json => {
            let text = object.to_json();
            // Some stores keep it for long: no larger than it is.
            let mut line = Vec::with_capacity(text.len() + 1);
            line.extend_from_slice(text.as_bytes());
            line.push(b'\n');
            line.into()
        }
    }
}

fn converted(
    stored: &dyn Object,
    to_current: impl FnOnce(&dyn Object) -> Option<Box<dyn Object>>,
) -> Result<Box<dyn Object>, String> {
    to_current(stored).ok_or_else(|| format!("{} cannot be converted", stored.api_version()))
}

/// Decodes a value into an empty object; gives the `apiVersion` that it states.
fn fill(value: &[u8], object: &mut dyn Object) -> Result<String, String> {
    let (kind, current) = (object.kind().to_owned(), object.api_version());
    if protobuf::is_enveloped(value) {
        let envelope = protobuf::open(value).map_err(|error| error.to_string())?;
        expect_kind(&kind, &envelope.kind)?;
        protobuf::decode(envelope.raw, object.as_reflect_mut()).map_err(|error| error.to_string())?;
        return Ok(envelope.api_version);
    }
    let text = json_of(value)?;
    let decoded = json::decode(&text, object.as_reflect_mut()).map_err(|error| error.to_string())?;
    expect_kind(&kind, &decoded.type_meta.kind)?;
    let stored = decoded.type_meta.api_version;
    // Members of an older version may have had other names, of which nothing is left here.
    if !decoded.problems.is_empty() && stored != current {
        let problems = decoded.problems.join(", ");
        return Err(format!("{kind} is stored as {stored}, which has fields of its own: {problems}"));
    }
    Ok(stored)
}

/// A value that is not protobuf as JSON.
fn json_of(value: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !cbor::is_self_described(value) {
        return Ok(Cow::Borrowed(value));
    }
    cbor::to_json(value).map(|text| Cow::Owned(text.into_bytes())).map_err(|error| error.to_string())
}

fn expect_kind(expected: &str, found: &str) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("stored object is a {found:?}, not a {expected:?}")) }
}

impl Codec for ObjectCodec {
    fn decode(&self, value: &[u8]) -> Result<Box<dyn Object>, String> {
        self.read(value)
    }

    fn empty(&self) -> Box<dyn Object> {
        self.rules.new_object()
    }
}

#[cfg(test)]
mod former_tests;
#[cfg(test)]
mod written_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(group: &str, resource: &str, object: &mut dyn Object, stored: &str) -> Result<(), String> {
        let rules = RulesRef::Static(kinds::find(group, "v1", resource).expect("a kind"));
        ObjectCodec { rules, media: StorageMedia::Protobuf }.bring_up_to_date(object, stored)
    }

    #[test]
    fn former_versions_are_read_where_they_have_the_same_form() {
        for (group, resource, stored, text) in [
            ("networking.k8s.io", "ingressclasses", "networking.k8s.io/v1beta1", ""),
            ("networking.k8s.io", "networkpolicies", "extensions/v1beta1", ""),
            ("policy", "poddisruptionbudgets", "policy/v1beta1", ""),
            ("apps", "deployments", "apps/v1beta2", ""),
            ("rbac.authorization.k8s.io", "rolebindings", "rbac.authorization.k8s.io/v1beta1", ""),
            ("apps", "deployments", "", "Object 'apiVersion' is missing"),
            (
                "batch",
                "cronjobs",
                "batch/v2alpha1",
                "CronJob is stored as batch/v2alpha1, which this server cannot read as batch/v1",
            ),
        ] {
            let mut object = kinds::find(group, "v1", resource).expect("a kind").new_object();
            let outcome = read(group, resource, &mut *object, stored);
            assert_eq!(outcome.err().unwrap_or_default(), text, "{resource} as {stored:?}");
        }
    }

    /// An event that was stored in its newer form is read as the one that is kept, with the fields of the newer form.
    #[test]
    fn another_version_that_is_served_is_read_as_what_it_is() {
        let codec = |media| {
            let rules = RulesRef::Static(kinds::find("", "v1", "events").expect("a kind"));
            ObjectCodec { rules, media }
        };
        let mut newer = api_types::events_v1::Event { note: "hello".into(), ..Default::default() };
        (newer.reporting_controller, newer.deprecated_count) = ("me".into(), 3);
        for media in [StorageMedia::Protobuf, StorageMedia::Json, StorageMedia::Cbor] {
            let value = codec(media).encode(&mut newer);
            let read = codec(media).read(&value).unwrap();
            let event = read.downcast_ref::<api_types::core_v1::Event>().expect("of the version that is kept");
            let shown = (event.message.as_str(), event.reporting_component.as_str(), event.count);
            assert_eq!(shown, ("hello", "me", 3), "{media:?}");
        }
        let candidates = RulesRef::Static(kinds::find("coordination.k8s.io", "v1beta1", "leasecandidates").unwrap());
        let older = kinds::find("coordination.k8s.io", "v1alpha2", "leasecandidates").unwrap();
        let mut object = older.new_object();
        object.meta_mut().name = "c".into();
        let codec = ObjectCodec { rules: candidates, media: StorageMedia::Protobuf };
        let read = codec.read(&codec.encode(&mut *object)).unwrap();
        assert_eq!((read.api_version().as_str(), read.meta().name.as_str()), ("coordination.k8s.io/v1beta1", "c"));
    }
}
