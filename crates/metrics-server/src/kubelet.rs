//! Asks the kubelets of all nodes, once in a period, what is used there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::Node;
use client::{Change, Client, ClientConfig, ClientCx, ClientError, ConfigError, Informer, Request};
use futures_util::StreamExt as _;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};

use crate::addresses::{Addressing, NoAddress};
use crate::exposition::{self, Scrape};
use crate::metrics::Monitor;
use crate::usage::Usages;

/// The most kubelets that are asked at a time.
const PARALLEL: usize = 64;
/// The largest answer that is read from a kubelet.
const LARGEST_BYTES: usize = 64 << 20;
const PATH: &str = "/metrics/resource";

/// Why a kubelet did not tell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(transparent)]
    Address(#[from] NoAddress),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the answer is not text")]
    NotText,
}

/// The kubelets.
pub(crate) struct Kubelets {
    config: ClientConfig,
    cx: ClientCx,
    addressing: Addressing,
    timeout: Duration,
    /// One client for each node, with the address that it is for, so that connections stay. Those of nodes that are gone go.
    clients: Mutex<HashMap<String, (String, Client)>>,
    monitor: Arc<Monitor>,
}

impl Kubelets {
    /// `config` says how kubelets are trusted and who asks them; the server in it does not matter.
    pub(crate) fn new(
        config: ClientConfig,
        cx: ClientCx,
        addressing: Addressing,
        timeout: Duration,
        monitor: Arc<Monitor>,
    ) -> Self {
        let config = ClientConfig { max_answer_bytes: LARGEST_BYTES, ..config.with_rate(-1.0, 1) };
        Self { config, cx, addressing, timeout, clients: Mutex::default(), monitor }
    }

    /// Forgets the clients of nodes that are gone.
    pub(crate) fn follow(self: &Arc<Self>, nodes: &Informer<Node>) {
        let kubelets = Arc::downgrade(self);
        nodes.subscribe(move |change: &Change<Node>| {
            if let (Some(kubelets), true) = (kubelets.upgrade(), change.is_deleted()) {
                let name = &change.object().metadata.name;
                kubelets.clients.lock().remove(name);
                kubelets.monitor.forget(name);
            }
        });
    }

    fn client(&self, node: &Node) -> Result<Client, AskError> {
        let (name, url) = (&node.metadata.name, self.addressing.url(node)?);
        if let Some((known, client)) = self.clients.lock().get(name)
            && *known == url
        {
            return Ok(client.clone());
        }
        let client = Client::new(ClientConfig { server: url.clone(), ..self.config.clone() }, self.cx.clone())?;
        self.clients.lock().insert(name.clone(), (url, client.clone()));
        Ok(client)
    }

    async fn ask(&self, node: &Node) -> Result<Scrape, AskError> {
        let request = Request::get(PATH).accept("text/plain").timeout(self.timeout);
        let answer = self.client(node)?.send(request).await?;
        let text = std::str::from_utf8(&answer.body).map_err(|_| AskError::NotText)?;
        Ok(exposition::read(text))
    }

    async fn ask_and_count(&self, node: &Node) -> Option<(String, Scrape)> {
        let (name, started) = (&node.metadata.name, self.cx.clock.monotonic());
        let outcome = self.ask(node).await;
        let took = self.cx.clock.monotonic().saturating_duration_since(started);
        let at = self.cx.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.monitor.asked(name, outcome.is_ok(), took, at);
        match outcome {
            Ok(told) => Some((name.clone(), told)),
            Err(error) => {
                tracing::error!(node = name, %error, "Failed to scrape node");
                None
            }
        }
    }

    /// Asks all nodes, and keeps what they tell.
    pub(crate) async fn round(self: &Arc<Self>, nodes: Vec<Arc<Node>>, usages: &Usages, resolution: Duration) {
        let (started, kubelets) = (self.cx.clock.monotonic(), Arc::clone(self));
        let asked = stream::iter(nodes).map(move |node| {
            let kubelets = Arc::clone(&kubelets);
            async move { kubelets.ask_and_count(&node).await }
        });
        let told: Vec<_> = asked.buffer_unordered(PARALLEL).filter_map(std::future::ready).collect().await;
        usages.take(told, resolution);
        let took = self.cx.clock.monotonic().saturating_duration_since(started);
        self.monitor.round(took, usages.points());
    }
}

/// When the last round began, for those who ask whether there are rounds at all.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<Option<Instant>>);

impl Rounds {
    /// Whether rounds come in time.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self, now: Instant, resolution: Duration) -> Result<(), String> {
        let begun = *self.0.lock();
        match begun {
            Some(begun) if now.saturating_duration_since(begun) > resolution.mul_f64(1.5) => {
                Err("time since last tick exceeds 1.5 times the metric resolution".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Asks all nodes again and again.
    pub(crate) async fn run(
        &self,
        kubelets: &Arc<Kubelets>,
        nodes: &Informer<Node>,
        usages: &Usages,
        resolution: Duration,
    ) {
        nodes.wait_synced().await;
        let mut ticks = tokio::time::interval(resolution);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            *self.0.lock() = Some(kubelets.cx.clock.monotonic());
            kubelets.round(nodes.list(), usages, resolution).await;
        }
    }
}
