//! One watch of etcd: a gRPC stream that is opened again from the last revision seen whenever it breaks off.
//!
//! Responses are not asked to be fragmented, so that etcd never splits a revision over two of them; the limit on the
//! size of a message is lifted instead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::{Backoff, SharedRng};
use etcd_client::{WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream};
use futures_util::stream::unfold;
use tokio::time::Instant;

use super::connection::{Members, WatchLane};
use super::convert;
use crate::{Event, EventBatch, EventStream, KeyRange, ProgressHandle, Revision, StorageError, WatchItem};

/// How often in a row a watch may fail without having delivered anything before its reader is told.
const RESUME_ATTEMPTS: u32 = 10;

/// How long etcd may take to accept a watch.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// A stream that lasted this long was healthy, whatever it delivered.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// A stream that is open.
struct Open {
    requests: WatchRequestSender,
    responses: WatchResponseStream,
    member: usize,
    /// Whether the member's marks of progress may be trusted.
    dependable: bool,
    since: Instant,
    /// Counts this watch on its connection.
    _lane: WatchLane,
}

struct Watch {
    members: Arc<Members>,
    range: KeyRange,
    /// The newest revision that was delivered or need not be.
    seen: Revision,
    progress: ProgressHandle,
    rng: SharedRng,
    backoff: Backoff,
    failures: u32,
    open: Option<Open>,
    ready: VecDeque<WatchItem>,
    ended: bool,
}

/// What woke an open stream.
enum Wake {
    Response(Box<Result<Option<WatchResponse>, etcd_client::Error>>),
    ProgressRequested,
}

/// Starts a watch of `range` from the revision after `after`.
pub(super) fn watch(members: Arc<Members>, range: KeyRange, after: Revision, rng: SharedRng) -> EventStream {
    let progress = ProgressHandle::default();
    let watch = Watch {
        members,
        range,
        seen: after.max(Revision(0)),
        progress: progress.clone(),
        rng,
        backoff: Backoff::new(Duration::from_millis(50), 2.0, Duration::from_secs(5), 0.5),
        failures: 0,
        open: None,
        ready: VecDeque::new(),
        ended: false,
    };
    let items = unfold(watch, |mut watch| async move {
        if watch.ended {
            return None;
        }
        let item = watch.next().await;
        watch.ended = item.is_err();
        Some((item, watch))
    });
    EventStream::new(items, progress)
}

impl Watch {
    async fn next(&mut self) -> Result<WatchItem, StorageError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            match self.step().await {
                Ok(()) => {}
                Err(error) if error.is_transient() && self.failures < RESUME_ATTEMPTS => self.pause(&error).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn pause(&mut self, error: &StorageError) {
        if let Some(open) = self.open.take() {
            self.members.watch_failed(open.member);
            if open.since.elapsed() >= HEALTHY_AFTER {
                self.succeeded();
            }
        }
        self.failures += 1;
        tracing::debug!(%error, after = self.seen.0, failures = self.failures, "a watch broke off; resuming");
        tokio::time::sleep(self.backoff.step(&self.rng)).await;
    }

    /// Opens the stream or takes one response from it.
    async fn step(&mut self) -> Result<(), StorageError> {
        let Some(open) = self.open.as_mut() else {
            self.open = Some(self.open().await?);
            return Ok(());
        };
        let wake = tokio::select! {
            biased;
            response = open.responses.message() => Wake::Response(Box::new(response)),
            () = self.progress.requested() => Wake::ProgressRequested,
        };
        match wake {
            Wake::Response(response) => match *response {
                Ok(Some(response)) => self.accept(&response),
                Ok(None) => Err(StorageError::unavailable("etcd ended a watch")),
                Err(error) => Err(convert::error(&error)),
            },
            Wake::ProgressRequested if open.dependable => {
                open.requests.request_progress().await.map_err(|error| convert::error(&error))
            }
            Wake::ProgressRequested => Ok(()),
        }
    }

    async fn open(&self) -> Result<Open, StorageError> {
        let (member, lane) = self.members.watch_lane().await?;
        let options = WatchOptions::new()
            .with_range(convert::range_end(&self.range))
            .with_start_revision(self.seen.0 + 1)
            .with_prev_key()
            .with_progress_notify();
        let mut client = lane.0.clone();
        let opening = client.watch(convert::range_start(&self.range), Some(options));
        let opened = tokio::time::timeout(OPEN_TIMEOUT, opening).await;
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            outcome => {
                self.members.watch_failed(member);
                let error = outcome.map(|refused| refused.err().map(|error| convert::error(&error)));
                let timed_out = || StorageError::unavailable("etcd did not accept a watch in time");
                return Err(error.ok().flatten().unwrap_or_else(timed_out));
            }
        };
        let (requests, responses) = stream.split();
        let dependable = self.members.has_dependable_marks(member).await;
        Ok(Open { requests, responses, member, dependable, since: Instant::now(), _lane: lane })
    }

    fn accept(&mut self, response: &WatchResponse) -> Result<(), StorageError> {
        if response.compact_revision() > 0 {
            let compacted = Some(Revision(response.compact_revision()));
            return Err(StorageError::Compacted { requested: self.seen, compacted });
        }
        if response.canceled() {
            return Err(StorageError::unavailable(format!("etcd cancelled a watch: {}", response.cancel_reason())));
        }
        if response.created() {
            return Ok(());
        }
        self.succeeded();
        if response.events().is_empty() {
            return self.mark(convert::revision(response.header())?);
        }
        let events = response.events().iter().filter_map(convert::event).collect();
        self.deliver(events);
        Ok(())
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    /// Groups events by revision and leaves out what was delivered before the stream broke off.
    fn deliver(&mut self, events: Vec<Event>) {
        let seen = self.seen;
        let fresh: Vec<Event> = events.into_iter().filter(|event| event.revision() > seen).collect();
        for events in fresh.chunk_by(|one, two| one.revision() == two.revision()) {
            let Some(revision) = events.first().map(Event::revision) else { continue };
            self.seen = revision;
            self.ready.push_back(WatchItem::Events(EventBatch { revision, events: events.into() }));
        }
    }

    /// A response without events says how far the watch has come.
    fn mark(&mut self, revision: Revision) -> Result<(), StorageError> {
        if revision >= self.seen && self.open.as_ref().is_some_and(|open| open.dependable) {
            self.seen = revision;
            self.ready.push_back(WatchItem::Progress(revision));
        }
        Ok(())
    }
}
