//! Asking other servers, again and again, for what they say of themselves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client::WorkQueue;

use super::Aggregation;
use super::table::Remote;
use crate::cx::ApiCx;
use crate::hooks::PostStartHook;

/// How often a server is asked again.
const PERIOD: Duration = Duration::from_secs(60);
/// First and longest pause before it is asked again after a failure.
pub(super) const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
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
    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), String>;
    /// There is no such server any more.
    fn forget(&self, aggregation: &Aggregation, name: &str);
}

/// A hook that asks all servers for something, for as long as the server runs.
pub(super) struct Poller {
    aggregation: Arc<Aggregation>,
    subject: Arc<dyn Subject>,
}

impl Poller {
    /// What they serve.
    pub(super) fn discovery(aggregation: &Arc<Aggregation>) -> Self {
        Self { aggregation: Arc::clone(aggregation), subject: Arc::new(super::documents::Discovery) }
    }

    /// How they describe it.
    pub(super) fn openapi(aggregation: &Arc<Aggregation>) -> Self {
        Self { aggregation: Arc::clone(aggregation), subject: Arc::new(super::specs::OpenApi) }
    }
}

#[async_trait]
impl PostStartHook for Poller {
    fn name(&self) -> &'static str {
        self.subject.name()
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), String> {
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
                    tracing::debug!(error, apiservice = name, subject = subject.name(), "Asking another server failed");
                    queue.add_rate_limited(name.clone());
                }
            },
        }
        queue.done(&name);
    }
}
