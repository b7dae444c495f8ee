//! One change of one object, as the log keeps it, with its encoded frames shared by all watchers.

use std::sync::{Arc, OnceLock};

use api_machinery::protobuf::Encoder;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::Revision;
use tokio::time::Instant;

use crate::stored::MOST_VIEWS;
use crate::{Stored, VersionId};

/// What a change is to a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It came into being, or into the selection.
    Added,
    /// It changed.
    Modified,
    /// It ceased to be, or left the selection.
    Deleted,
}

impl ChangeKind {
    /// The `type` of a watch event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one object.
pub(crate) struct Change {
    /// Its number in the log.
    pub(crate) sequence: u64,
    /// The revision that made it.
    pub(crate) revision: Revision,
    /// When it was received.
    pub(crate) received: Instant,
    /// The object's key.
    pub(crate) key: Arc<str>,
    /// The object after it; `None` for a deletion.
    pub(crate) current: Option<Arc<Stored>>,
    /// The object before it; `None` for a creation.
    pub(crate) previous: Option<Arc<Stored>>,
    tombstone: OnceLock<Arc<Stored>>,
    frames: Frames,
    /// The frames of the object in other API versions, as far as somebody watches these.
    views: Mutex<Vec<(VersionId, Arc<Frames>)>>,
}

/// The encoded frames of a change, one for each kind of it.
#[derive(Default)]
struct Frames {
    json: [OnceLock<Bytes>; 3],
    protobuf: [OnceLock<Bytes>; 3],
}

impl Frames {
    fn json(&self, kind: ChangeKind, item: &Stored) -> Bytes {
        self.json[kind as usize].get_or_init(|| json_frame(kind, item)).clone()
    }

    fn protobuf(&self, kind: ChangeKind, item: &Stored) -> Bytes {
        self.protobuf[kind as usize].get_or_init(|| protobuf_frame(kind, item)).clone()
    }
}

impl Change {
    pub(crate) fn new(
        (sequence, revision, received): (u64, Revision, Instant),
        key: Arc<str>,
        current: Option<Arc<Stored>>,
        previous: Option<Arc<Stored>>,
    ) -> Self {
        Self {
            sequence,
            revision,
            received,
            key,
            current,
            previous,
            tombstone: OnceLock::new(),
            frames: Frames::default(),
            views: Mutex::default(),
        }
    }

    /// About how many bytes it keeps alive: what came before mostly is in the log as well, as what an earlier change led to.
    pub(crate) fn size_bytes(&self) -> usize {
        let kept = self.current.as_ref().or(self.previous.as_ref());
        size_of::<Self>() + kept.map_or(0, |stored| stored.size_bytes())
    }

    /// How long the stored form of what it led to is, or of what was deleted.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.current.as_ref().or(self.previous.as_ref()).map_or(0, |stored| stored.stored_bytes())
    }

    /// What a watcher with this filter sees of it: nothing, or its kind and the object to show. A deletion shows the
    /// previous content with the revision of the change, and so does leaving a selection.
    pub(crate) fn seen_through(&self, matches: impl Fn(&Stored) -> bool) -> Option<(ChangeKind, Arc<Stored>)> {
        let before = self.previous.as_deref().is_some_and(&matches);
        match (&self.current, before) {
            (Some(current), false) if matches(current) => Some((ChangeKind::Added, Arc::clone(current))),
            (Some(current), true) if matches(current) => Some((ChangeKind::Modified, Arc::clone(current))),
            (_, true) => Some((ChangeKind::Deleted, self.tombstone()?)),
            (_, false) => None,
        }
    }

    fn tombstone(&self) -> Option<Arc<Stored>> {
        let previous = self.previous.as_ref()?;
        Some(Arc::clone(self.tombstone.get_or_init(|| Arc::new(previous.at(self.revision)))))
    }

    /// The frame of the change, of the object as it is kept or in another API version.
    pub(crate) fn json_frame(&self, version: Option<VersionId>, kind: ChangeKind, item: &Stored) -> Bytes {
        version.map_or_else(|| self.frames.json(kind, item), |version| self.view(version).json(kind, item))
    }

    pub(crate) fn protobuf_frame(&self, version: Option<VersionId>, kind: ChangeKind, item: &Stored) -> Bytes {
        version.map_or_else(|| self.frames.protobuf(kind, item), |version| self.view(version).protobuf(kind, item))
    }

    fn view(&self, version: VersionId) -> Arc<Frames> {
        let mut views = self.views.lock();
        if let Some((_, frames)) = views.iter().find(|(own, _)| *own == version) {
            return Arc::clone(frames);
        }
        let frames = Arc::new(Frames::default());
        if views.len() == MOST_VIEWS {
            views.remove(0);
        }
        views.push((version, Arc::clone(&frames)));
        frames
    }
}

/// `{"type":"ADDED","object":{...}}` and a newline.
pub(crate) fn json_frame(kind: ChangeKind, item: &Stored) -> Bytes {
    let object = item.json();
    let head = format!("{{\"type\":\"{}\",\"object\":", kind.as_str());
    [head.as_bytes(), &object, b"}\n"].concat().into()
}

/// A big-endian length and a bare `WatchEvent` around an enveloped object.
pub(crate) fn protobuf_frame(kind: ChangeKind, item: &Stored) -> Bytes {
    let mut out = Encoder::default();
    // The encoder writes back to front.
    out.message(2, |out| out.bytes(1, &item.protobuf()));
    out.bytes(1, kind.as_str().as_bytes());
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out.raw(&length.to_be_bytes());
    out.into_vec().into()
}
