//! One stored version of an object: parsed once, encoded once per media type, shared by everyone who reads it.
//!
//! One that nobody asks for is at rest: it is its encoding alone, packed, a tenth or less of what it takes as structs, and
//! is read again by the next who asks. Whoever is sent that very encoding does not wake it.

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

use crate::packed::{Packed, Packer};
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
    /// Where the object is not there yet: what it is read again from.
    at_rest: Option<Resting>,
    /// Whether somebody has asked for it since [`Self::was_asked_for`].
    asked_for: AtomicBool,
    /// Of its stored form.
    fingerprint: Fingerprint,
    /// Whether it was read from a protobuf message, and so comes back from one.
    of_message: bool,
    encodings: OnceLock<Arc<Encodings>>,
    /// The object in other API versions, as far as somebody has asked for them.
    views: Mutex<Vec<(VersionId, Arc<Stored>)>>,
}

/// What an object at rest is read again from.
#[derive(Clone)]
struct Resting {
    codec: Arc<dyn Codec>,
    /// Of the encoding.
    form: Form,
    packed: Packed,
    /// Whether it was put to rest while others were being written.
    early: bool,
}

/// A type of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// That of custom objects.
    Json,
    Protobuf,
}

impl Form {
    fn read(self, bytes: &[u8], mut empty: Box<dyn Object>) -> Result<Box<dyn Object>, String> {
        let target = empty.as_reflect_mut();
        let failed = match self {
            Self::Json => json::decode(bytes, target).err().map(|error| error.to_string()),
            Self::Protobuf => protobuf::decode(bytes, target).err().map(|error| error.to_string()),
        };
        failed.map_or(Ok(empty), Err)
    }
}

/// The members of an object, without its kind and version: shared with versions of the same form.
#[derive(Default)]
struct Encodings {
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl Encodings {
    fn of(&self, form: Form) -> &OnceLock<Bytes> {
        match form {
            Form::Json => &self.json,
            Form::Protobuf => &self.protobuf,
        }
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
        let read = Self::new(key, kv.mod_revision, object, Fingerprint::of(&kv.value));
        Ok(Arc::new(Self { of_message: protobuf::is_enveloped(&kv.value), ..read }))
    }

    fn new_encoded_later(key: Arc<str>, revision: Revision, object: Arc<dyn Object>, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            revision,
            object: object.into(),
            at_rest: None,
            asked_for: AtomicBool::new(false),
            fingerprint,
            of_message: false,
            encodings: OnceLock::new(),
            views: Mutex::default(),
        }
    }

    /// The same at rest, with nothing that it need not have: nothing where that is so already, where somebody else keeps the
    /// object, which would then be there twice, and where it would not come back the same. What was read from a protobuf
    /// message does; what was only written as one may be nested deeper than any that is read.
    #[must_use]
    pub(crate) fn put_to_rest(&self, codec: &Arc<dyn Codec>, packer: &mut Packer) -> Option<Arc<Self>> {
        self.rested(codec, packer, false)
    }

    /// The same while others are still being written: it lies among what they take in memory then, and is packed once more
    /// when it is put to rest the next time, so that it keeps none of that.
    #[must_use]
    pub(crate) fn put_to_rest_early(&self, codec: &Arc<dyn Codec>, packer: &mut Packer) -> Option<Arc<Self>> {
        self.rested(codec, packer, true)
    }

    fn rested(&self, codec: &Arc<dyn Codec>, packer: &mut Packer, early: bool) -> Option<Arc<Self>> {
        let object = self.object.get();
        if object.is_some_and(|object| Arc::strong_count(object) > 1) {
            return None;
        }
        let resting = match (&self.at_rest, object) {
            (Some(resting), _) if resting.early && !early => {
                Resting { packed: packer.pack(&resting.packed.unpack()), early, ..resting.clone() }
            }
            (Some(resting), _) => {
                let has_more = object.is_some() || self.encodings.get().is_some() || !self.views.lock().is_empty();
                has_more.then(|| resting.clone())?
            }
            (None, object) => {
                let (form, bytes) = self.encoding_of(object?, codec)?;
                Resting { codec: Arc::clone(codec), form, packed: packer.pack(&bytes), early }
            }
        };
        Some(Arc::new(Self {
            key: Arc::clone(&self.key),
            revision: self.revision,
            object: OnceLock::new(),
            at_rest: Some(resting),
            asked_for: AtomicBool::new(false),
            fingerprint: self.fingerprint,
            of_message: self.of_message,
            encodings: OnceLock::new(),
            views: Mutex::default(),
        }))
    }

    /// The encoding that the object can be read from again.
    fn encoding_of(&self, object: &Arc<dyn Object>, codec: &Arc<dyn Codec>) -> Option<(Form, Bytes)> {
        let empty = codec.empty();
        let (one, other): (&dyn Any, &dyn Any) = (&**object, &*empty);
        if one.type_id() != other.type_id() || object.api_version() != empty.api_version() {
            return None;
        }
        let form = self.form();
        let encode = || match form {
            Form::Json => self.encode_json(),
            Form::Protobuf => self.encode_protobuf(),
        };
        // One that is made for this is not kept by the other as well.
        let bytes = self.encodings.get().and_then(|kept| kept.of(form).get().cloned()).unwrap_or_else(encode);
        let comes_back = || {
            let read = form.read(&bytes, empty);
            read.is_ok_and(|read| reflect::equal_structs(read.as_reflect(), object.as_reflect()))
        };
        if self.of_message {
            debug_assert!(comes_back(), "{self:?} does not come back as it was");
        } else if !comes_back() {
            return None;
        }
        Some((form, bytes))
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
        let resting = self.at_rest.as_ref().expect("invariant: what has no object is at rest");
        let made = self.encodings.get().and_then(|made| made.of(resting.form).get().cloned());
        let bytes = made.unwrap_or_else(|| resting.packed.unpack().into());
        resting.form.read(&bytes, resting.codec.empty()).expect("invariant: it was read when it was put to rest")
    }

    /// The encoding that it rests as, if that is of this form.
    fn unpacked(&self, form: Form) -> Option<Bytes> {
        let resting = self.at_rest.as_ref().filter(|resting| resting.form == form)?;
        Some(resting.packed.unpack().into())
    }

    fn encodings(&self) -> &Arc<Encodings> {
        self.encodings.get_or_init(Arc::default)
    }

    /// What it rests as.
    fn form(&self) -> Form {
        match &self.at_rest {
            Some(resting) => resting.form,
            None if self.object().downcast_ref::<Unstructured>().is_some() => Form::Json,
            None => Form::Protobuf,
        }
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
            view.encodings = Arc::clone(self.encodings()).into();
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

    /// The object, shared, for somebody who will not ask again: one at rest is read for that, and stays at rest.
    #[must_use]
    pub fn shared_for_once(&self) -> Arc<dyn Object> {
        self.object.get().map_or_else(|| self.read_again().into(), Arc::clone)
    }

    /// The object, shared, if it is a `T`.
    #[must_use]
    pub fn shared<T: Object>(&self) -> Option<Arc<T>> {
        let object: Arc<dyn Any + Send + Sync> = self.shared_object();
        object.downcast().ok()
    }

    /// How long its stored form is.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.fingerprint.length()
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
        self.encodings().json.get_or_init(|| self.unpacked(Form::Json).unwrap_or_else(|| self.encode_json())).clone()
    }

    fn encode_json(&self) -> Bytes {
        // Copied, because it is kept for long, and the text's buffer may be twice as large.
        Bytes::copy_from_slice(self.look(<dyn Object>::to_json_item).as_bytes())
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
        self.note_asked_for();
        let encode = || self.unpacked(Form::Protobuf).unwrap_or_else(|| self.encode_protobuf());
        self.encodings().protobuf.get_or_init(encode).clone()
    }

    fn encode_protobuf(&self) -> Bytes {
        Bytes::copy_from_slice(&protobuf::encode(self.object().as_reflect()))
    }

    /// Shows an object of the same kind and version to somebody who asks for no more.
    fn of_its_type<T>(&self, look: impl FnOnce(&dyn Object) -> T) -> T {
        match (self.object.get(), &self.at_rest) {
            (None, Some(resting)) => look(&*resting.codec.empty()),
            _ => look(self.object()),
        }
    }

    fn is_custom(&self) -> bool {
        self.form() == Form::Json
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
