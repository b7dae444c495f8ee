//! Keeps a store like the server's: fill it, follow the changes, begin again when the thread is lost.
//!
//! Knows no type: it feeds a [`Sink`]. What follows from a failure is decided in [`super::step`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::meta::constants::resource_version_match;
use api_machinery::object::Object;
use base::Backoff;
use tokio::time::Instant;

use super::step::{Failure, Happened, Step, next};
use crate::error::ClientError;
use crate::object_key::ObjectKey;
use crate::verbs::{PAGE_SIZE, Verbs};
use crate::watch::{RawEvent, RawWatch, WatchEvent};

/// The first wait after a failure, the longest one, and the rest of upstream's back-off.
const BACKOFF_FIRST: Duration = Duration::from_millis(800);
const BACKOFF_LONGEST: Duration = Duration::from_secs(30);
const BACKOFF_FACTOR: f64 = 2.0;
const BACKOFF_JITTER: f64 = 1.0;
/// A back-off this long after the last one begins anew.
const BACKOFF_RESET: Duration = Duration::from_secs(120);
/// A watch is asked to end after this and up to twice as long, so that watches do not all end at once.
const WATCH_SECONDS: u64 = 300;
/// How much longer than asked for a watch may last before it is taken for dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A watch that ends earlier and without an event is a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// How long to wait before what failed is tried again, as upstream's reflectors wait.
pub(crate) fn backoff() -> Backoff {
    Backoff::new(BACKOFF_FIRST, BACKOFF_FACTOR, BACKOFF_LONGEST, BACKOFF_JITTER)
}

/// Takes what the reflector learns.
pub(super) trait Sink: Send + Sync {
    /// The whole content, at a version.
    fn replace(&self, objects: Vec<Box<dyn Object>>, version: &str);
    /// An object is there in this state.
    fn put(&self, object: Box<dyn Object>);
    /// An object is gone.
    fn remove(&self, object: Box<dyn Object>);
    /// Nothing changed up to a version.
    fn advance(&self, version: &str);
    /// When to deliver everything again, if ever.
    fn next_resync(&self) -> Option<Instant>;
    /// Delivers everything again to those who want it now.
    fn resync(&self, now: Instant);
}

/// What to reflect.
pub(super) struct Reflector {
    pub(super) verbs: Verbs,
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    /// Whether the first fill may come as a stream of events.
    pub(super) stream_fill: bool,
    pub(super) sink: Arc<dyn Sink>,
}

/// What the reflector remembers between steps.
struct Progress {
    version: String,
    /// The last version is gone from the server or ahead of it.
    version_unusable: bool,
    /// A list from the server's cache came in pages nevertheless, so there is no cache.
    cache_ignored: bool,
    backoff: Backoff,
    backed_off_at: Option<Instant>,
    stream: Option<RawWatch>,
}

impl Progress {
    /// The version to ask for: any at first, none in particular once the last one is unusable.
    fn list_version(&self) -> &str {
        match (self.version_unusable, self.version.is_empty()) {
            (true, _) => "",
            (false, true) => "0",
            (false, false) => &self.version,
        }
    }
}

impl Reflector {
    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        let mut progress = Progress {
            version: String::new(),
            version_unusable: false,
            cache_ignored: false,
            backoff: backoff(),
            backed_off_at: None,
            stream: None,
        };
        let mut step = Step::Fill;
        loop {
            let happened = match step {
                Step::Fill if self.stream_fill => self.fill_by_stream(&mut progress).await,
                Step::Fill | Step::List => self.list(&mut progress).await,
                Step::Watch => self.watch(&mut progress).await,
                Step::ReadOn => self.read_on(&mut progress).await,
            };
            let follows = next(happened);
            // Once is mended at once; a server to which even no version is too old is not asked without end.
            let again = follows.forget_version && progress.version_unusable;
            progress.version_unusable |= follows.forget_version;
            if follows.wait || again {
                self.back_off(&mut progress).await;
            }
            step = follows.step;
        }
    }

    async fn back_off(&self, progress: &mut Progress) {
        let now = Instant::now();
        if progress.backed_off_at.is_some_and(|at| now.saturating_duration_since(at) > BACKOFF_RESET) {
            progress.backoff.reset();
        }
        progress.backed_off_at = Some(now);
        let delay = progress.backoff.step(self.verbs.client().rng());
        tokio::time::sleep(delay).await;
    }

    fn options(&self) -> ListOptions {
        ListOptions {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            ..ListOptions::default()
        }
    }

    fn failed(&self, doing: &str, error: &ClientError) -> Failure {
        let failure = Failure::of(error);
        let resource = &self.verbs.resource().resource;
        match failure {
            Failure::Gone | Failure::TooMany => tracing::debug!(%resource, %error, doing, "Reflector failed"),
            _ => tracing::warn!(%resource, %error, doing, "Reflector failed"),
        }
        failure
    }

    async fn list(&self, progress: &mut Progress) -> Happened {
        let mut options = self.options();
        progress.list_version().clone_into(&mut options.resource_version);
        let from_cache = options.resource_version == "0";
        let exact = !options.resource_version.is_empty() && !from_cache;
        let listed = if exact && !progress.cache_ignored {
            self.verbs.list(&options).await
        } else {
            options.limit = PAGE_SIZE;
            self.verbs.list_pages(&options).await
        };
        match listed {
            Ok(list) => {
                progress.cache_ignored |= from_cache && list.items.len() > usize::try_from(PAGE_SIZE).unwrap_or(0);
                progress.version_unusable = false;
                progress.version.clone_from(&list.metadata.resource_version);
                self.sink.replace(list.items, &progress.version);
                Happened::Listed
            }
            Err(error) => Happened::ListFailed(self.failed("list", &error)),
        }
    }

    /// How long this watch is asked to last.
    fn watch_seconds(&self) -> u64 {
        WATCH_SECONDS + self.verbs.client().rng().below(WATCH_SECONDS)
    }

    async fn watch(&self, progress: &mut Progress) -> Happened {
        let seconds = self.watch_seconds();
        let options = ListOptions {
            resource_version: progress.version.clone(),
            allow_watch_bookmarks: true,
            timeout_seconds: i64::try_from(seconds).ok(),
            ..self.options()
        };
        match self.verbs.watch(&options).await {
            Ok(stream) => self.follow(stream, progress, seconds).await,
            Err(error) => Happened::WatchNotStarted(self.failed("start watch", &error)),
        }
    }

    async fn read_on(&self, progress: &mut Progress) -> Happened {
        match progress.stream.take() {
            Some(stream) => self.follow(stream, progress, 2 * WATCH_SECONDS).await,
            None => Happened::WatchEnded,
        }
    }

    /// Applies the events of a stream until it ends.
    async fn follow(&self, mut stream: RawWatch, progress: &mut Progress, seconds: u64) -> Happened {
        let started = Instant::now();
        let deadline = started + Duration::from_secs(seconds) + WATCH_GRACE;
        let mut events = 0_u64;
        loop {
            let resync = self.sink.next_resync();
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                () = sleep_until(resync) => {
                    self.sink.resync(Instant::now());
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => None,
            };
            match event {
                None if events == 0 && started.elapsed() < SHORT_WATCH => {
                    let resource = &self.verbs.resource().resource;
                    tracing::warn!(%resource, "very short watch: Unexpected watch close - watch lasted less than a second and no items received");
                    return Happened::WatchTooShort;
                }
                None => return Happened::WatchEnded,
                Some(Ok(WatchEvent::Error(error))) => {
                    return Happened::WatchFailed(self.failed("watch", &error.into()));
                }
                Some(Ok(event)) => {
                    events += 1;
                    self.apply(event, progress);
                }
                // A stream that breaks off loses nothing: the version says where to go on.
                Some(Err(ClientError::Body(error))) => {
                    tracing::debug!(error, resource = %self.verbs.resource().resource, "Watch broke off");
                    return if events == 0 && started.elapsed() < SHORT_WATCH {
                        Happened::WatchTooShort
                    } else {
                        Happened::WatchEnded
                    };
                }
                Some(Err(error)) => return Happened::WatchFailed(self.failed("watch", &error)),
            }
        }
    }

    fn apply(&self, event: RawEvent, progress: &mut Progress) {
        let version = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let version = object.meta().resource_version.clone();
                self.sink.put(object);
                version
            }
            WatchEvent::Deleted(object) => {
                let version = object.meta().resource_version.clone();
                self.sink.remove(object);
                version
            }
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
            WatchEvent::Error(_) => return,
        };
        if !version.is_empty() {
            self.sink.advance(&version);
            progress.version = version;
        }
    }

    /// Fills the store from a watch that starts with all objects and marks their end.
    async fn fill_by_stream(&self, progress: &mut Progress) -> Happened {
        let seconds = self.watch_seconds();
        let version = if progress.version_unusable { "" } else { &progress.version };
        let options = ListOptions {
            resource_version: version.to_owned(),
            resource_version_match: resource_version_match::NOT_OLDER_THAN.to_owned(),
            allow_watch_bookmarks: true,
            send_initial_events: Some(true),
            timeout_seconds: i64::try_from(seconds).ok(),
            ..self.options()
        };
        let started = Instant::now();
        let mut stream = match self.verbs.watch(&options).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, resource = %self.verbs.resource().resource, "Filling by watch failed");
                return Happened::StreamFailed(Failure::of(&error));
            }
        };
        let deadline = started + Duration::from_secs(seconds) + WATCH_GRACE;
        let filled = tokio::time::timeout_at(deadline, initial_events(&mut stream)).await;
        match filled {
            Ok(Ok((objects, version))) => {
                progress.version_unusable = false;
                self.sink.replace(objects, &version);
                progress.version = version;
                progress.stream = Some(stream);
                Happened::Streamed
            }
            // Ended at once: this server cannot do it.
            Ok(Err(Failure::Ended)) if started.elapsed() < SHORT_WATCH => Happened::StreamFailed(Failure::Other),
            Ok(Err(failure)) => Happened::StreamFailed(failure),
            Err(_) => Happened::StreamFailed(Failure::Ended),
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Collects the objects up to the bookmark that ends them; answers with them and its version.
async fn initial_events(stream: &mut RawWatch) -> Result<(Vec<Box<dyn Object>>, String), Failure> {
    let mut objects = BTreeMap::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                objects.insert(ObjectKey::of(object.meta()), object);
            }
            Ok(WatchEvent::Deleted(object)) => {
                objects.remove(&ObjectKey::of(object.meta()));
            }
            Ok(WatchEvent::Bookmark { resource_version, initial_events_end: true }) => {
                return Ok((objects.into_values().collect(), resource_version));
            }
            Ok(WatchEvent::Bookmark { .. }) => {}
            Ok(WatchEvent::Error(error)) => return Err(Failure::of(&error.into())),
            Err(ClientError::Body(_)) => return Err(Failure::Ended),
            Err(error) => return Err(Failure::of(&error)),
        }
    }
    Err(Failure::Ended)
}
