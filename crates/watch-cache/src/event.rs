//! What a watcher gets.

use std::sync::Arc;

use bytes::Bytes;
use storage::Revision;

use crate::change::{self, Change, ChangeKind};
use crate::{Stored, VersionId, WatchFault};

/// One item of a watch.
#[derive(Debug, Clone)]
pub enum Event {
    /// An object came, changed or went.
    Change(ChangeEvent),
    /// Everything up to this revision has been delivered.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// The events before this one were the initial state; clients are told by an annotation.
        initial_events_end: bool,
    },
    /// The watch cannot go on; nothing follows.
    Error(WatchFault),
}

/// An object that came, changed or went.
#[derive(Clone)]
pub struct ChangeEvent {
    /// Which of the three.
    pub kind: ChangeKind,
    /// The object to show; for a deletion its last content, with the revision of the deletion.
    pub item: Arc<Stored>,
    source: Option<Arc<Change>>,
    /// The API version of the object to show, where that is not the one that is kept.
    version: Option<VersionId>,
}

impl ChangeEvent {
    /// An event that shares no frames: an initial one.
    #[must_use]
    pub fn new(kind: ChangeKind, item: Arc<Stored>) -> Self {
        Self { kind, item, source: None, version: None }
    }

    pub(crate) fn of(source: &Arc<Change>, kind: ChangeKind, item: Arc<Stored>) -> Self {
        Self { kind, item, source: Some(Arc::clone(source)), version: None }
    }

    /// The same event in another API version: the object to show is that of `item`'s view.
    #[must_use]
    pub fn seen_as(self, version: VersionId, view: Arc<Stored>) -> Self {
        Self { item: view, version: Some(version), ..self }
    }

    /// `{"type":"ADDED","object":{...}}` and a newline; encoded once for all watchers.
    #[must_use]
    pub fn json_frame(&self) -> Bytes {
        match &self.source {
            Some(source) => source.json_frame(self.version, self.kind, &self.item),
            None => change::json_frame(self.kind, &self.item),
        }
    }

    /// A four-byte length and a protobuf `WatchEvent`; encoded once for all watchers.
    #[must_use]
    pub fn protobuf_frame(&self) -> Bytes {
        match &self.source {
            Some(source) => source.protobuf_frame(self.version, self.kind, &self.item),
            None => change::protobuf_frame(self.kind, &self.item),
        }
    }
}

impl std::fmt::Debug for ChangeEvent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {:?}", self.kind.as_str(), self.item)
    }
}
