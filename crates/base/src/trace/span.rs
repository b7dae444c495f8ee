//! A piece of work, from its beginning to its end.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use super::context::SpanContext;

/// Attributes of one span; the specification's default bound.
const ATTRIBUTES: usize = 128;
/// How long a text may be that is told of one, in bytes: headers and queries are as long as others like.
const TEXT_BYTES: usize = 1024;

/// Whose work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The process's own.
    Internal,
    /// For somebody who asked over the network.
    Server,
    /// A request to somebody else.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(Cow<'static, str>),
    /// A whole number.
    Int(i64),
    /// Yes or no.
    Bool(bool),
}

impl AttributeValue {
    fn shortened(self) -> Self {
        match self {
            Self::Text(Cow::Owned(mut text)) if text.len() > TEXT_BYTES => {
                text.truncate(text.floor_char_boundary(TEXT_BYTES));
                text.shrink_to_fit();
                Self::Text(Cow::Owned(text))
            }
            other => other,
        }
    }
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

/// What is recorded of a span.
#[derive(Debug, Clone)]
pub struct Record {
    /// As others know it.
    pub context: SpanContext,
    /// The span above it.
    pub parent: Option<[u8; 8]>,
    /// What it is.
    pub name: Cow<'static, str>,
    /// Whose work it is.
    pub kind: Kind,
    /// When it began.
    pub started: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What is told of it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Another trace that it came from.
    pub link: Option<SpanContext>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

impl Record {
    /// Of a span that begins now.
    #[must_use]
    pub fn begun(context: SpanContext, name: impl Into<Cow<'static, str>>, kind: Kind, now: SystemTime) -> Self {
        let (parent, attributes, link, error) = (None, Vec::new(), None, None);
        Self { context, parent, name: name.into(), kind, started: now, ended: now, attributes, link, error }
    }
}

/// Who takes what is recorded.
pub trait Recorder: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> SystemTime;

    /// The id of a new span.
    fn span_id(&self) -> [u8; 8];

    /// Takes a span that has ended. This must not wait.
    fn take(&self, record: Record);
}

/// A piece of work. It ends when it is dropped, and is sent to the collector then; one that nobody records does nothing.
#[derive(Debug, Default)]
pub struct Span(Option<Box<Recorded>>);

struct Recorded {
    recorder: Arc<dyn Recorder>,
    record: Record,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.record.fmt(out)
    }
}

impl Span {
    /// One that nobody records.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// One that somebody records.
    #[must_use]
    pub fn recorded(recorder: Arc<dyn Recorder>, record: Record) -> Self {
        Self(Some(Box::new(Recorded { recorder, record })))
    }

    /// Whether somebody records it. What takes work to tell is worth telling only then.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// As others know it; nothing where nobody records it.
    #[must_use]
    pub fn context(&self) -> Option<SpanContext> {
        self.0.as_ref().map(|own| own.record.context)
    }

    pub(super) fn recorder(&self) -> Option<&Arc<dyn Recorder>> {
        self.0.as_ref().map(|own| &own.recorder)
    }

    /// Tells more of it.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if let Some(own) = &mut self.0
            && own.record.attributes.len() < ATTRIBUTES
        {
            own.record.attributes.push((name, value.into().shortened()));
        }
    }

    /// Names it anew, once it is known what it is.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(own) = &mut self.0 {
            own.record.name = name.into();
        }
    }

    /// Says that it began before it was made.
    #[must_use]
    pub fn since(mut self, started: SystemTime) -> Self {
        if let Some(own) = &mut self.0 {
            own.record.started = started;
        }
        self
    }

    /// Says that it failed.
    pub fn fail(&mut self, why: impl Into<String>) {
        if let Some(own) = &mut self.0 {
            own.record.error = Some(why.into());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(own) = self.0.take() {
            let Recorded { recorder, mut record } = *own;
            record.ended = recorder.now().max(record.started);
            recorder.take(record);
        }
    }
}
