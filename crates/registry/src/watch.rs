//! Watches of a resource: from its cache, or straight from the store.

use std::collections::VecDeque;
use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::status::ApiError;
use storage::Revision;
use tokio::time::Instant;
use watch_cache::{Bookmarks, CacheError, DirectWatcher, Event, Scope, Since, WatchFault, WatchRequest, Watcher};

use crate::context::RequestCx;
use crate::conversion::Conversion;
use crate::list_options::{Reading, WATCH_LIST, default_list_options, validate_list_options};
use crate::resource::Resource;
use crate::{failure, resource_version};

/// How many events are converted at a time where somebody else has to be asked.
const MOST_AT_A_TIME: usize = 256;

/// A running watch. Dropping it ends it.
pub struct Watch {
    source: Source,
    /// Of what is seen; nothing where objects are served as they are stored.
    conversion: Option<Arc<Conversion>>,
    /// Events whose objects are yet to be converted, at most one batch.
    unconverted: VecDeque<Event>,
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
        let gates = &self.shared.gates;
        default_list_options(&mut options, Reading::Watch, gates);
        validate_list_options(&options, Reading::Watch, gates)?;
        let selection = self.selection(&cx.namespace, &options)?;
        let version = resource_version::parse(&options.resource_version).map_err(ApiError::unclassified)?;
        let bookmarks = match options.allow_watch_bookmarks {
            false => Bookmarks::None,
            true if gates.enabled(WATCH_LIST) => Bookmarks::AndInitialEnd,
            true => Bookmarks::Periodic,
        };
        if waits && !self.store.backend.supports_progress() {
            let text = "a watch stream was requested by the client but the required storage feature \
                RequestWatchProgress is disabled";
            return Ok(Watch::faulty(WatchFault::Internal(text.to_owned())));
        }
        match self.since(&options, version).await {
            Ok(since) => {
                let (scope, matcher) = (selection.scope, selection.matcher);
                self.begin(WatchRequest { since, scope, matcher, bookmarks, deadline }).await
            }
            Err(error) => self.not_begun(error),
        }
    }

    /// Watches all objects without an end, for the server itself: first those there are, to a bookmark that says so. What
    /// clients may ask for makes no difference to it, and not every store can say that the cache has caught up: whatever is
    /// missing follows.
    ///
    /// # Errors
    /// When the cache is being filled.
    pub async fn follow(self: &Arc<Self>) -> Result<Watch, ApiError> {
        let (since, bookmarks) = (Since::InitialEvents(None), Bookmarks::AndInitialEnd);
        self.begin(WatchRequest { since, scope: Scope::All, matcher: None, bookmarks, deadline: None }).await
    }

    async fn begin(&self, request: WatchRequest) -> Result<Watch, ApiError> {
        match self.start(request).await {
            Ok(source) => Ok(Watch { source, conversion: self.conversion.clone(), unconverted: VecDeque::new() }),
            Err(error) => self.not_begun(error),
        }
    }

    /// What is told of a watch that could not begin.
    fn not_begun(&self, error: CacheError) -> Result<Watch, ApiError> {
        match error {
            CacheError::TooOld { requested, oldest } => Ok(Watch::faulty(WatchFault::TooOld { requested, oldest })),
            CacheError::TooLarge { requested, current } => {
                Ok(Watch::faulty(WatchFault::TooLarge { requested, current }))
            }
            error => Err(failure::cache(&self.group_resource, "watch", error)),
        }
    }

    async fn since(&self, options: &ListOptions, version: Revision) -> Result<Since, CacheError> {
        let consistent = async || match &self.store.cache {
            Some(cache) if !cache.is_ready() => cache.snapshot().map(|_| None),
            Some(_) if !self.store.backend.supports_progress() => Ok(None),
            _ => Ok(Some(self.store.backend.current_revision().await?)),
        };
        // As it was before a watch could ask for it: what there is comes first, in whatever state is at hand.
        if !self.shared.gates.enabled(WATCH_LIST) && version == Revision(0) {
            return Ok(Since::InitialEvents(None));
        }
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
        Self { source: Source::Faulty(Some(fault)), conversion: None, unconverted: VecDeque::new() }
    }

    /// The next event; `None` at the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        if self.unconverted.is_empty() {
            let event = match &mut self.source {
                Source::Cached(watcher) => watcher.next().await?,
                Source::Direct(watcher) => watcher.next().await?,
                Source::Faulty(fault) => Event::Error(fault.take()?),
            };
            self.unconverted.push_back(event);
        }
        if let Some(event) = self.convert_first() {
            return Some(event);
        }
        // Somebody has to be asked: about all that is there by now.
        while self.unconverted.len() < MOST_AT_A_TIME
            && let Some(event) = self.source.try_next()
        {
            self.unconverted.push_back(event);
        }
        let items = self.unconverted.iter().filter_map(|event| match event {
            Event::Change(change) => Some(&change.item),
            Event::Bookmark { .. } | Event::Error(_) => None,
        });
        let fetched = match &self.conversion {
            Some(conversion) => conversion.fetch(items).await,
            None => Ok(()),
        };
        match fetched {
            Ok(()) => self.convert_first(),
            Err(error) => Some(self.fail(error)),
        }
    }

    /// An event that is there already, so that frames are flushed when there is none.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.unconverted.is_empty() {
            self.unconverted.push_back(self.source.try_next()?);
        }
        self.convert_first()
    }

    /// The first event in the served version; nothing where somebody has to be asked for that.
    fn convert_first(&mut self) -> Option<Event> {
        let (Some(conversion), Some(Event::Change(change))) = (&self.conversion, self.unconverted.front()) else {
            return self.unconverted.pop_front();
        };
        let converted = conversion.event_at_hand(change);
        match converted {
            Ok(Some(event)) => {
                self.unconverted.pop_front();
                Some(Event::Change(event))
            }
            Ok(None) => None,
            Err(error) => Some(self.fail(error)),
        }
    }

    /// A watch ends with the first object that cannot be shown.
    fn fail(&mut self, error: ApiError) -> Event {
        self.source = Source::Faulty(None);
        self.unconverted.clear();
        Event::Error(WatchFault::Internal(error.message))
    }
}

impl Source {
    fn try_next(&mut self) -> Option<Event> {
        match self {
            Self::Cached(watcher) => watcher.try_next(),
            Self::Direct(watcher) => watcher.try_next(),
            Self::Faulty(fault) => fault.take().map(Event::Error),
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
