//! Asking other servers, again and again, for what they say of themselves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client::WorkQueue;
use futures_util::StreamExt as _;

use super::fetch::FetchError;
use super::state::Aggregation;
use super::table::Remote;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// How often a server is asked again.
const PERIOD: Duration = Duration::from_secs(60);
/// How many are asked at once at the start, when this server is not ready yet.
const AT_FIRST: usize = 32;
/// How many are asked at once, as upstream.
const WORKERS: usize = 2;

/// Something to ask for.
#[async_trait]
pub(super) trait Subject: Send + Sync + 'static {
    /// The name of the work, as health checks have it.
    fn name(&self) -> &'static str;
    /// The names of APIServices to ask for.
    fn queue<'a>(&self, aggregation: &'a Aggregation) -> &'a WorkQueue<String>;
    /// Asks one server.
    ///
    /// # Errors
    /// Why to ask again soon.
    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), FetchError>;
    /// Whether the server is ready only when each server that is known at the start was asked once.
    fn is_awaited(&self) -> bool {
        false
    }
    /// There is no such server any more.
    fn forget(&self, aggregation: &Aggregation, name: &str);
}

/// A hook that asks all servers for something, for as long as the server runs.
pub(super) struct Poller {
    aggregation: Arc<Aggregation>,
    subject: Arc<dyn Subject>,
}

impl Poller {
    pub(super) fn new(aggregation: &Arc<Aggregation>, subject: Arc<dyn Subject>) -> Self {
        Self { aggregation: Arc::clone(aggregation), subject }
    }
}

#[async_trait]
impl PostStartHook for Poller {
    fn name(&self) -> &'static str {
        self.subject.name()
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        if self.subject.is_awaited() {
            self.aggregation.table.completed().await;
            let remotes: Vec<Arc<Remote>> = self.aggregation.table.current().remotes().cloned().collect();
            let asked: Vec<_> = remotes.iter().map(|remote| self.subject.ask(&self.aggregation, cx, remote)).collect();
            // What failed is in the queue, as all of them are.
            futures_util::stream::iter(asked).buffer_unordered(AT_FIRST).for_each(async |_| ()).await;
        }
        for _ in 0..WORKERS {
            let (own, subject, cx) = (Arc::clone(&self.aggregation), Arc::clone(&self.subject), Arc::clone(cx));
            let tasks = cx.tasks().clone();
            tasks.spawn_cancellable(subject.name(), async move { work(&own, &*subject, &cx).await });
        }
        Ok(())
    }
}

async fn work(aggregation: &Aggregation, subject: &dyn Subject, cx: &ApiCx) {
    let queue = subject.queue(aggregation);
    while let Some(name) = queue.next().await {
        let remote = aggregation.table.current().named(&name).and_then(|(_, remote)| remote.cloned());
        match remote {
            None => {
                subject.forget(aggregation, &name);
                queue.forget(&name);
            }
            Some(remote) => match subject.ask(aggregation, cx, &remote).await {
                Ok(()) => {
                    queue.forget(&name);
                    queue.add_after(name.clone(), PERIOD);
                }
                Err(error) => {
                    tracing::debug!(%error, apiservice = name, subject = subject.name(), "Asking another server failed");
                    queue.add_rate_limited(name.clone());
                }
            },
        }
        queue.done(&name);
    }
}
