//! Upstream's bytes in the store: protobuf in its envelope for built-in kinds, JSON with a newline for custom ones.
//! Either is read, whatever is written.

use api_machinery::object::Object;
use api_machinery::{json, protobuf};
use bytes::Bytes;
use watch_cache::{Codec, CorruptObject};

use crate::context::RulesRef;
use crate::stored_version::bring_up_to_date;

/// What objects are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageMedia {
    /// Enveloped protobuf.
    Protobuf,
    /// JSON and a newline.
    Json,
}

/// The codec of one resource's stored version.
pub(crate) struct ObjectCodec {
    /// The rules of the stored version, for its empty object and its defaults.
    pub(crate) rules: RulesRef,
    pub(crate) media: StorageMedia,
}

impl ObjectCodec {
    /// The bytes to store: without resource version and self link.
    pub(crate) fn encode(&self, object: &mut dyn Object) -> Bytes {
        let meta = object.meta_mut();
        meta.resource_version.clear();
        meta.self_link.clear();
        match self.media {
            StorageMedia::Protobuf => object.to_protobuf().into(),
            StorageMedia::Json => {
                let mut text = object.to_json();
                text.push('\n');
                text.into()
            }
        }
    }

    fn read(&self, value: &[u8]) -> Result<Box<dyn Object>, String> {
        let mut object = self.rules.new_object();
        let kind = object.kind().to_owned();
        if protobuf::is_enveloped(value) {
            let envelope = protobuf::open(value).map_err(|error| error.to_string())?;
            expect_kind(&kind, &envelope.kind)?;
            protobuf::decode(envelope.raw, object.as_reflect_mut()).map_err(|error| error.to_string())?;
            bring_up_to_date(&mut *object, &envelope.api_version)?;
        } else {
            let decoded = json::decode(value, object.as_reflect_mut()).map_err(|error| error.to_string())?;
            expect_kind(&kind, &decoded.type_meta.kind)?;
            // Members of an older version may have had other names, of which nothing is left here.
            if !decoded.problems.is_empty() && decoded.type_meta.api_version != object.api_version() {
                let (problems, stored) = (decoded.problems.join(", "), &decoded.type_meta.api_version);
                return Err(format!("{kind} is stored as {stored}, which has fields of its own: {problems}"));
            }
            bring_up_to_date(&mut *object, &decoded.type_meta.api_version)?;
        }
        self.rules.set_defaults(&mut *object);
        Ok(object)
    }
}

fn expect_kind(expected: &str, found: &str) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("stored object is a {found:?}, not a {expected:?}")) }
}

impl Codec for ObjectCodec {
    fn decode(&self, key: &str, value: &[u8]) -> Result<Box<dyn Object>, CorruptObject> {
        self.read(value).map_err(|message| CorruptObject { key: key.to_owned(), message })
    }
}
