//! One stored version of an object: parsed once, encoded once per media type, shared by everyone who reads it.
//!
//! One that nobody asks for is at rest: it is its encoding alone, less than a third of what it takes as structs, and is
//! read again by the next who asks. Whoever is sent that very encoding does not wake it.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use api_machinery::json;
use api_machinery::object::{Object, Unstructured};
use api_machinery::protobuf::{self, Encoder};
use api_machinery::reflect;
use api_machinery::renamed::Renamed;
use api_machinery::value::Value;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::{KeyValue, Revision};

use crate::{Codec, CorruptObject, CorruptStage, Fingerprint, VersionId};

/// What a version takes for each byte of its stored form, parsed and encoded once; as measured with pods.
const BYTES_PER_STORED_BYTE: usize = 4;

/// How many other API versions an object is kept in. More are made anew each time; no kind has as many.
pub(crate) const MOST_VIEWS: usize = 8;

/// A version of an object, with its resource version set.
pub struct Stored {
    key: Arc<str>,
    revision: Revision,
    object: OnceLock<Arc<dyn Object>>,
    /// Where the object is not there yet: what it is read with, out of one of the encodings.
    at_rest: Option<Arc<dyn Codec>>,
    /// Whether somebody has asked for the object since [`Self::was_asked_for`].
    asked_for: AtomicBool,
    /// Of its stored form.
    fingerprint: Fingerprint,
    encodings: Arc<Encodings>,
    /// The object in other API versions, as far as somebody has asked for them.
    views: Mutex<Vec<(VersionId, Arc<Stored>)>>,
}

/// The members of an object, without its kind and version: shared with versions of the same form.
#[derive(Default)]
struct Encodings {
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl Encodings {
    /// The one that an object at rest is read from, where there is another one as well.
    fn without_the_other(&self) -> Option<Self> {
        let (protobuf, _json) = (self.protobuf.get()?.clone(), self.json.get()?);
        Some(Self { protobuf: protobuf.into(), json: OnceLock::new() })
    }

    /// Reads the object of which one of them is.
    fn read(&self, mut empty: Box<dyn Object>) -> Result<Box<dyn Object>, String> {
        if let Some(message) = self.protobuf.get() {
            protobuf::decode(message, empty.as_reflect_mut()).map_err(|error| error.to_string())?;
        } else {
            let text = self.json.get().ok_or("there is nothing to read")?;
            json::decode(text, empty.as_reflect_mut()).map_err(|error| error.to_string())?;
        }
        Ok(empty)
    }
}

impl Stored {
    /// The object that `key` (relative to the resource's prefix) had at `revision`, in a value of this fingerprint.
    #[must_use]
    pub fn new(key: Arc<str>, revision: Revision, mut object: Box<dyn Object>, fingerprint: Fingerprint) -> Self {
        object.meta_mut().resource_version = revision.to_string();
        Self::new_encoded_later(key, revision, object.into(), fingerprint)
    }

    /// An object that was never written, or not in this form: of a dry run, or converted. Its resource version is left as
    /// it is.
    #[must_use]
    pub fn unwritten(key: Arc<str>, revision: Revision, object: Box<dyn Object>) -> Self {
        Self::new_encoded_later(key, revision, object.into(), Fingerprint::default())
    }

    /// The same without the encodings it has by now: whoever keeps it for long keeps no more than a reader needs.
    #[must_use]
    pub(crate) fn without_encodings(&self) -> Self {
        Self::new_encoded_later(Arc::clone(&self.key), self.revision, self.shared_object(), self.fingerprint)
    }

    /// Decodes a pair of the store.
    ///
    /// # Errors
    /// When its value cannot be read.
    pub fn read(codec: &dyn Codec, key: Arc<str>, kv: &KeyValue) -> Result<Arc<Self>, CorruptObject> {
        let corrupt = |stage, message| CorruptObject { key: kv.key.to_string(), message, stage };
        if let Some(why) = kv.unreadable() {
            return Err(corrupt(CorruptStage::Transformed, why.to_owned()));
        }
        let object = codec.decode(&kv.value).map_err(|message| corrupt(CorruptStage::Decoded, message))?;
        Ok(Arc::new(Self::new(key, kv.mod_revision, object, Fingerprint::of(&kv.value))))
    }

    fn new_encoded_later(key: Arc<str>, revision: Revision, object: Arc<dyn Object>, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            revision,
            object: object.into(),
            at_rest: None,
            asked_for: AtomicBool::new(false),
            fingerprint,
            encodings: Arc::default(),
            views: Mutex::default(),
        }
    }

    /// The same at rest, if it can be and is not: nothing where somebody else keeps the object, which would then be there
    /// twice, and where it would not come back the same. With `checked` that is known, as it has just been read.
    #[must_use]
    pub(crate) fn put_to_rest(&self, codec: &Arc<dyn Codec>, checked: bool) -> Option<Arc<Self>> {
        let encodings = match self.object.get() {
            Some(object) => self.encoding_of(object, codec, checked)?,
            None => self.encodings.without_the_other()?,
        };
        Some(Arc::new(Self {
            key: Arc::clone(&self.key),
            revision: self.revision,
            object: OnceLock::new(),
            at_rest: Some(Arc::clone(codec)),
            asked_for: AtomicBool::new(false),
            fingerprint: self.fingerprint,
            encodings: Arc::new(encodings),
            views: Mutex::default(),
        }))
    }

    /// The encoding that the object can be read from again.
    fn encoding_of(&self, object: &Arc<dyn Object>, codec: &Arc<dyn Codec>, checked: bool) -> Option<Encodings> {
        if Arc::strong_count(object) > 1 {
            return None;
        }
        let empty = codec.empty();
        let (one, other): (&dyn Any, &dyn Any) = (&**object, &*empty);
        if one.type_id() != other.type_id() || object.api_version() != empty.api_version() {
            return None;
        }
        let encodings = Encodings::default();
        let (slot, bytes) = if self.is_custom() {
            (&encodings.json, self.json_item())
        } else {
            (&encodings.protobuf, self.protobuf_item())
        };
        slot.get_or_init(|| bytes);
        let comes_back = || {
            let read = encodings.read(empty);
            read.is_ok_and(|read| reflect::equal_structs(read.as_reflect(), object.as_reflect()))
        };
        if checked {
            debug_assert!(comes_back(), "{self:?} does not come back as it was");
        } else if !comes_back() {
            return None;
        }
        Some(encodings)
    }

    /// Whether it is its encoding alone.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.object.get().is_none()
    }

    /// Whether the object has been asked for since this was called last.
    pub(crate) fn was_asked_for(&self) -> bool {
        self.asked_for.swap(false, Ordering::Relaxed)
    }

    /// Shows the object to somebody who looks at it once; one at rest is read for that, and stays at rest.
    pub fn look<T>(&self, look: impl FnOnce(&dyn Object) -> T) -> T {
        match self.object.get() {
            Some(object) => look(&**object),
            None => look(&*self.read_again()),
        }
    }

    fn awake(&self) -> &Arc<dyn Object> {
        self.note_asked_for();
        self.object.get_or_init(|| self.read_again().into())
    }

    fn note_asked_for(&self) {
        // Readers on many threads would write to the same line for nothing.
        if !self.asked_for.load(Ordering::Relaxed) {
            self.asked_for.store(true, Ordering::Relaxed);
        }
    }

    fn read_again(&self) -> Box<dyn Object> {
        let codec = self.at_rest.as_ref().expect("invariant: what has no object is at rest");
        self.encodings.read(codec.empty()).expect("invariant: it was read when it was put to rest")
    }

    /// The object in another API version, where it was converted before: with its encodings, shared by all who ask.
    #[must_use]
    pub fn view(&self, version: VersionId) -> Option<Arc<Self>> {
        let views = self.views.lock();
        views.iter().find(|(own, _)| *own == version).map(|(_, view)| Arc::clone(view))
    }

    /// Keeps the object as it is in another API version. Of several that convert it at a time the first is kept; all get
    /// that one.
    #[must_use]
    pub fn keep_view(&self, version: VersionId, object: Box<dyn Object>) -> Arc<Self> {
        let mut views = self.views.lock();
        if let Some((_, view)) = views.iter().find(|(own, _)| *own == version) {
            return Arc::clone(view);
        }
        let mut view = Self::unwritten(Arc::clone(&self.key), self.revision, object);
        let renamed = view.object().downcast_ref::<Renamed>();
        if renamed.is_some_and(|renamed| Arc::ptr_eq(renamed.object(), self.awake())) {
            view.encodings = Arc::clone(&self.encodings);
        }
        let view = Arc::new(view);
        if views.len() == MOST_VIEWS {
            views.remove(0);
        }
        views.push((version, Arc::clone(&view)));
        view
    }

    /// The same object as of a later revision: what a deletion event shows.
    #[must_use]
    pub fn at(&self, revision: Revision) -> Self {
        Self::new(Arc::clone(&self.key), revision, self.object().clone_object(), self.fingerprint)
    }

    /// `{namespace}/{name}`, or the name alone where the kind has no namespaces.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// When it was written.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether this may be stored as `value`; one that differs in length or hash is not.
    #[must_use]
    pub fn may_be_stored_as(&self, value: &[u8]) -> bool {
        self.fingerprint == Fingerprint::of(value)
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &dyn Object {
        &**self.awake()
    }

    /// The object, shared.
    #[must_use]
    pub fn shared_object(&self) -> Arc<dyn Object> {
        Arc::clone(self.awake())
    }

    /// The object, shared, if it is a `T`.
    #[must_use]
    pub fn shared<T: Object>(&self) -> Option<Arc<T>> {
        let object: Arc<dyn Any + Send + Sync> = self.shared_object();
        object.downcast().ok()
    }

    /// About how many bytes of memory this takes, whether it has been encoded yet or not, so that the number never
    /// changes and sums of it stay true.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.fingerprint.length() * BYTES_PER_STORED_BYTE
    }

    /// The object as JSON, as a get shows it, without a newline.
    #[must_use]
    pub fn json(&self) -> Bytes {
        if self.is_custom() { self.json_item() } else { self.with_type(&self.json_item()).into() }
    }

    /// The object as JSON, as an item of a list: built-in kinds leave `kind` and `apiVersion` to the list.
    #[must_use]
    pub fn json_item(&self) -> Bytes {
        self.note_asked_for();
        let encode = || {
            let plain = self.look(<dyn Object>::to_json_item);
            // Copied, because it is kept for long, and the text's buffer may be twice as large.
            Bytes::copy_from_slice(&if self.is_custom() { self.with_type(plain.as_bytes()) } else { plain.into() })
        };
        self.encodings.json.get_or_init(encode).clone()
    }

    /// The object as an enveloped protobuf message. Custom objects have no protobuf form.
    #[must_use]
    pub fn protobuf(&self) -> Bytes {
        let item = self.protobuf_item();
        self.of_its_type(|typed| {
            protobuf::seal(&typed.api_version(), typed.kind(), |out: &mut Encoder| out.raw(&item)).into()
        })
    }

    /// The object as a bare protobuf message, as an item of a list.
    #[must_use]
    pub fn protobuf_item(&self) -> Bytes {
        self.encodings
            .protobuf
            .get_or_init(|| Bytes::copy_from_slice(&protobuf::encode(self.object().as_reflect())))
            .clone()
    }

    /// Shows an object of the same kind and version to somebody who asks for no more.
    fn of_its_type<T>(&self, look: impl FnOnce(&dyn Object) -> T) -> T {
        match (self.object.get(), &self.at_rest) {
            (None, Some(codec)) => look(&*codec.empty()),
            _ => look(self.object()),
        }
    }

    fn is_custom(&self) -> bool {
        match &self.at_rest {
            // JSON is what custom objects rest as.
            Some(_) => self.encodings.protobuf.get().is_none(),
            None => self.object().downcast_ref::<Unstructured>().is_some(),
        }
    }

    /// Puts `kind` and `apiVersion` before the members of a JSON object.
    fn with_type(&self, plain: &[u8]) -> Vec<u8> {
        let quoted = |text: &str| json::encode_value(&Value::from(text));
        let members = plain.strip_prefix(b"{").unwrap_or(plain);
        let (kind, api_version) = self.of_its_type(|typed| (quoted(typed.kind()), quoted(&typed.api_version())));
        let mut out = Vec::with_capacity(plain.len() + kind.len() + api_version.len() + 24);
        out.extend_from_slice(b"{\"kind\":");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b",\"apiVersion\":");
        out.extend_from_slice(api_version.as_bytes());
        if members != b"}" {
            out.push(b',');
        }
        out.extend_from_slice(members);
        out
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the content: it may be a Secret.
        write!(out, "Stored({}@{})", self.key, self.revision)
    }
}
