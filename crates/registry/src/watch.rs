//! Watches of a resource: from its cache, or straight from the store.

use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::status::ApiError;
use storage::Revision;
use tokio::time::Instant;
use watch_cache::{CacheError, ChangeEvent, DirectWatcher, Event, Since, WatchFault, WatchRequest, Watcher};

use crate::context::RequestCx;
use crate::list_options::{Reading, default_list_options, validate_list_options};
use crate::resource::Resource;
use crate::{failure, resource_version};

/// A running watch. Dropping it ends it.
pub struct Watch {
    source: Source,
    /// For conversion of what is seen; nothing where objects are served as they are stored.
    resource: Option<Arc<Resource>>,
}

enum Source {
    Cached(Box<Watcher>),
    Direct(Box<DirectWatcher>),
    /// One last event, told in the stream because the request as such was fine.
    Faulty(Option<WatchFault>),
}

impl Resource {
    /// Watches objects of the request's namespace, or of all, until `deadline`.
    ///
    /// # Errors
    /// When the options contradict each other, a selector cannot be read, or the cache is being filled. What the sheet
    /// of a watch says of history that is gone or not there yet comes as an event of the watch instead.
    pub async fn watch(
        self: &Arc<Self>,
        cx: &RequestCx,
        options: &ListOptions,
        deadline: Option<Instant>,
    ) -> Result<Watch, ApiError> {
        // The mark at the end of the initial state waits for the cache to get there, unless any state will do. A client
        // that asks for it in so many words can do without; one that was only understood so cannot.
        let waits = options.send_initial_events == Some(true)
            && options.allow_watch_bookmarks
            && options.resource_version != "0"
            && self.store.cache.is_some();
        let mut options = options.clone();
        default_list_options(&mut options, Reading::Watch);
        validate_list_options(&options, Reading::Watch)?;
        let selection = self.selection(&cx.namespace, &options)?;
        let version = resource_version::parse(&options.resource_version).map_err(ApiError::unclassified)?;
        let bookmarks = options.allow_watch_bookmarks;
        if waits && !self.store.backend.supports_progress() {
            let text = "a watch stream was requested by the client but the required storage feature \
                RequestWatchProgress is disabled";
            return Ok(Watch::faulty(WatchFault::Internal(text.to_owned())));
        }
        let started = match self.since(&options, version).await {
            Ok(since) => {
                let (scope, matcher) = (selection.scope, selection.matcher);
                self.start(WatchRequest { since, scope, matcher, bookmarks, deadline }).await
            }
            Err(error) => Err(error),
        };
        match started {
            Ok(source) => {
                let resource = self.conversion.as_ref().map(|_| Arc::clone(self));
                Ok(Watch { source, resource })
            }
            Err(CacheError::TooOld { requested, oldest }) => {
                Ok(Watch::faulty(WatchFault::TooOld { requested, oldest }))
            }
            Err(CacheError::TooLarge { requested, current }) => {
                Ok(Watch::faulty(WatchFault::TooLarge { requested, current }))
            }
            Err(error) => Err(failure::cache(&self.group_resource, "watch", error)),
        }
    }

    async fn since(&self, options: &ListOptions, version: Revision) -> Result<Since, CacheError> {
        let consistent = async || match &self.store.cache {
            Some(cache) if !cache.is_ready() => cache.snapshot().map(|_| None),
            Some(_) if !self.store.backend.supports_progress() => Ok(None),
            _ => Ok(Some(self.store.backend.current_revision().await?)),
        };
        Ok(match (options.resource_version.as_str(), options.send_initial_events) {
            ("", Some(true)) => Since::InitialEvents(consistent().await?),
            ("", _) => Since::Now(consistent().await?),
            (_, Some(true)) => Since::InitialEvents(Some(version).filter(|version| *version > Revision(0))),
            _ if version == Revision(0) => Since::Now(None),
            _ => Since::Revision(version),
        })
    }

    async fn start(&self, request: WatchRequest) -> Result<Source, CacheError> {
        Ok(match &self.store.cache {
            Some(cache) => Source::Cached(Box::new(cache.watch(request).await?)),
            None => {
                let (backend, codec) = (Arc::clone(&self.store.backend), Arc::clone(&self.store.codec));
                let watcher = DirectWatcher::start(backend, codec, &self.store.prefix, request).await?;
                Source::Direct(Box::new(watcher))
            }
        })
    }
}

impl Watch {
    fn faulty(fault: WatchFault) -> Self {
        Self { source: Source::Faulty(Some(fault)), resource: None }
    }

    /// The next event; `None` at the end. Dropping the future loses nothing, except where objects are converted: there
    /// it must be polled to its end.
    pub async fn next(&mut self) -> Option<Event> {
        let event = match &mut self.source {
            Source::Cached(watcher) => watcher.next().await?,
            Source::Direct(watcher) => watcher.next().await?,
            Source::Faulty(fault) => Event::Error(fault.take()?),
        };
        Some(self.convert(event).await)
    }

    /// An event that is there already, so that frames are flushed when there is none. Where objects are converted
    /// there never is.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.resource.is_some() {
            return None;
        }
        match &mut self.source {
            Source::Cached(watcher) => watcher.try_next(),
            Source::Direct(watcher) => watcher.try_next(),
            Source::Faulty(fault) => fault.take().map(Event::Error),
        }
    }

    async fn convert(&mut self, event: Event) -> Event {
        let (Some(resource), Event::Change(change)) = (&self.resource, &event) else { return event };
        match resource.to_served(Arc::clone(&change.item)).await {
            Ok(item) => Event::Change(ChangeEvent::new(change.kind, item)),
            Err(error) => {
                let fault = WatchFault::Internal(error.message);
                self.source = Source::Faulty(None);
                Event::Error(fault)
            }
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Source::Cached(watcher) => watcher.fmt(out),
            Source::Direct(watcher) => watcher.fmt(out),
            Source::Faulty(fault) => write!(out, "Watch({fault:?})"),
        }
    }
}
