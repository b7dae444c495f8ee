//! What is known of the node, for everyone who asks.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_types::core_v1::Node;
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use client::{Client, Informer};
use node_api::cri::v1::StatusResponse;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::addresses;
use crate::interfaces::NodeView;
use crate::shutdown::ShutdownView;

/// How long a look at the node in the API may take.
const FRESH_LIMIT: Duration = Duration::from_secs(5);

/// Why a node that goes down is not ready.
const SHUTTING_DOWN: &str = "node is shutting down";

/// A change of the node in the API that was missed is found after this.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// What the pod engine says about the runtime, and of the pods' volumes.
pub trait RuntimeHealth: Send + Sync + 'static {
    /// Why pods cannot run, in the words of the `Ready` condition.
    fn ready_errors(&self) -> Vec<String>;

    /// The runtime's last status.
    fn runtime_status(&self) -> Option<StatusResponse>;

    /// The volumes that a controller attached, or is to attach, and that the node may not lose; `None` while that is not
    /// known.
    fn volumes_in_use(&self) -> Option<Vec<String>> {
        None
    }
}

/// The node as this process sees it.
pub struct NodeState {
    name: String,
    client: Option<Client>,
    informer: Option<Informer<Node>>,
    /// What this process made of the machine; stands in until the API has the object.
    own: ArcSwapOption<Node>,
    pressures: Mutex<BTreeSet<String>>,
    shutting_down: AtomicBool,
    health: OnceLock<Arc<dyn RuntimeHealth>>,
    /// Something changed that the status should show at once.
    changed: Notify,
    /// The API has another node than before.
    api_changed: Arc<Notify>,
}

impl NodeState {
    pub fn new(name: &str, client: Option<Client>, informer: Option<Informer<Node>>) -> Arc<Self> {
        let api_changed = Arc::new(Notify::new());
        if let Some(informer) = &informer {
            let told = Arc::clone(&api_changed);
            informer.subscribe(move |_| told.notify_waiters());
        }
        Arc::new(Self {
            name: name.to_owned(),
            client,
            informer,
            own: ArcSwapOption::empty(),
            pressures: Mutex::default(),
            shutting_down: AtomicBool::new(false),
            health: OnceLock::new(),
            changed: Notify::new(),
            api_changed,
        })
    }

    /// Who knows about the runtime; only the first call counts.
    pub fn set_health(&self, health: Arc<dyn RuntimeHealth>) {
        let _ = self.health.set(health);
    }

    pub(super) fn health(&self) -> Option<&Arc<dyn RuntimeHealth>> {
        self.health.get()
    }

    /// Why the node is not ready.
    pub(super) fn ready_errors(&self) -> Vec<String> {
        let mut errors = self.health().map(|health| health.ready_errors()).unwrap_or_default();
        errors.extend(self.shutting_down().then(|| SHUTTING_DOWN.to_owned()));
        errors
    }

    /// What this process made of the machine.
    pub(super) fn set_own(&self, node: Node) {
        self.own.store(Some(Arc::new(node)));
    }

    pub(super) fn own(&self) -> Option<Arc<Node>> {
        self.own.load_full()
    }

    /// Replaces the pressures that are on.
    pub fn set_pressures(&self, pressures: BTreeSet<String>) {
        let mut present = self.pressures.lock();
        if *present != pressures {
            *present = pressures;
            self.changed.notify_one();
        }
    }

    /// Waits until the status should be looked at out of turn.
    pub(super) async fn status_to_show(&self) {
        self.changed.notified().await;
    }

    /// The API object, if it is known.
    pub fn known_to_api(&self) -> Option<Arc<Node>> {
        self.informer.as_ref()?.find("", &self.name)
    }
}

impl ShutdownView for NodeState {
    fn set_shutting_down(&self, going: bool) {
        self.shutting_down.store(going, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

#[async_trait]
impl NodeView for NodeState {
    fn node(&self) -> Option<Arc<Node>> {
        self.known_to_api().or_else(|| self.own())
    }

    async fn fresh_node(&self) -> Option<Arc<Node>> {
        let Some(client) = &self.client else { return self.own() };
        // The pods of all sources wait meanwhile.
        match tokio::time::timeout(FRESH_LIMIT, client.all::<Node>().get(&self.name)).await {
            Ok(Ok(node)) => Some(Arc::new(node)),
            _ => self.node(),
        }
    }

    fn host_ips(&self) -> Vec<IpAddr> {
        let known = self.known_to_api().map(|node| addresses::host_ips(&node)).filter(|ips| !ips.is_empty());
        known.or_else(|| self.own().map(|node| addresses::host_ips(&node))).unwrap_or_default()
    }

    fn pressures(&self) -> Vec<String> {
        self.pressures.lock().iter().cloned().collect()
    }

    fn shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Relaxed)
    }

    fn status_changed(&self) {
        self.changed.notify_one();
    }

    async fn changed(&self) {
        // Whoever looked before this was called may have missed a change.
        let _ = tokio::time::timeout(LOOK_PERIOD, self.api_changed.notified()).await;
    }
}
