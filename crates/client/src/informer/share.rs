//! A share in an informer of a resource that may go away. Several parts of a process follow such resources, each at its own
//! pace; the informer runs as long as one of them wants it.

use std::sync::Arc;

use super::{Change, Hold, Informer};
use crate::resource::ApiObject;

/// A share in an informer. The handlers that were added through it end with it.
pub struct Share<T> {
    // Handlers end before the informer may.
    handlers: Arc<()>,
    informer: Informer<T>,
    _hold: Option<Arc<Hold>>,
}

impl<T: ApiObject> Share<T> {
    pub(super) fn new(informer: Informer<T>, hold: Option<Arc<Hold>>) -> Self {
        Self { handlers: Arc::new(()), informer, _hold: hold }
    }

    /// The informer, to read from; it stands still once no share is left.
    #[must_use]
    pub fn informer(&self) -> &Informer<T> {
        &self.informer
    }

    /// Calls `handler` like [`Informer::subscribe`], until this share is dropped.
    pub fn subscribe(&self, handler: impl FnMut(&Change<T>) + Send + 'static) {
        self.informer.subscribe_while(Arc::downgrade(&self.handlers), handler);
    }
}
