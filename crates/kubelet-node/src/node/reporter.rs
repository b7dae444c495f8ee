//! Keeps the node's object in the API true: registers it and sends its status.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use api_types::core_v1::{ContainerImage, Node};
use base::{Backoff, SharedClock, SharedRng};
use client::{Client, ClientError, Patch};
use node_api::cri::v1::VersionResponse;
use node_api::cri::{Images, Runtime};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::conditions::Health;
use super::registration::{self, Registered};
use super::status::{self, Observed};
use super::{AddressSource, Facts, NodeSettings, NodeState, Start, addresses, image_list, patch, reference};
use crate::devices::Devices;
use crate::interfaces::{Events, Level, NodeView as _};
use crate::versions::is_newer;

/// Attempts of one update; later ones read the object first.
const TRIES: usize = 5;
/// Pauses between attempts to register.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(7);
/// How often the status is looked at until the node is ready, and for how long.
const FAST_PERIOD: Duration = Duration::from_millis(100);
const FAST_PHASE: Duration = Duration::from_secs(120);
/// How long a kubelet that was started anew looks round before it says that the node is not ready: until the runtime has
/// been asked once there is nothing to say, and pods would count as not ready with the node.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// How long the list of images is good.
const IMAGES_TTL: Duration = Duration::from_secs(30);
/// How long the status waits for a new list of images: of a runtime that is stuck there is more to tell.
const IMAGES_LIMIT: Duration = Duration::from_secs(2);

/// What the reporter works with.
pub struct Reporter {
    pub settings: NodeSettings,
    pub state: Arc<NodeState>,
    pub facts: Facts,
    pub addresses: Arc<dyn AddressSource>,
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<dyn Images>,
    pub events: Arc<dyn Events>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    /// For the heartbeat; none without an API server.
    pub client: Option<Client>,
    pub memory: Memory,
    /// What plugins offer beside what the machine has.
    pub devices: Option<Arc<Devices>>,
    /// Who is told how long the start takes.
    pub start: Option<Mutex<Start>>,
}

/// What is remembered from one report to the next.
#[derive(Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    version: Option<VersionResponse>,
    images: Vec<ContainerImage>,
    images_at: Option<Instant>,
    /// The object as it was last sent.
    last: Option<Node>,
    last_report: Option<Instant>,
    report_after: Option<Duration>,
    boot_id_told: bool,
    /// Whether the node was closed to new pods when it was last looked at.
    unschedulable: bool,
}

impl Reporter {
    /// Works for ever.
    pub async fn run(self: Arc<Self>) {
        let Some(client) = self.client.clone() else {
            return self.stand_alone().await;
        };
        if self.settings.register {
            let node = self.register(&client).await;
            self.memory.0.lock().last = Some(node);
        }
        let _ = tokio::time::timeout(FIRST_LOOK, self.well()).await;
        let started = Instant::now();
        loop {
            let ready = self.report(&client).await;
            let fast = !ready && started.elapsed() < FAST_PHASE;
            let period = self.settings.update_frequency.mul_f64(1.0 + 0.04 * self.rng.unit());
            tokio::select! {
                () = tokio::time::sleep(if fast { FAST_PERIOD } else { period }) => {}
                () = self.state.status_to_show() => {}
                () = self.other_devices() => {}
            }
        }
    }

    /// Waits until plugins offer other devices than before.
    async fn other_devices(&self) {
        match &self.devices {
            Some(devices) => devices.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until nothing keeps the node from being ready.
    async fn well(&self) {
        while self.state.health().is_some_and(|health| !health.ready_errors().is_empty()) {
            tokio::time::sleep(FAST_PERIOD).await;
        }
    }

    /// Tries until the object is there.
    async fn register(&self, client: &Client) -> Node {
        let mut pause = Backoff::new(RETRY_FIRST, 2.0, RETRY_LAST, 0.0);
        loop {
            let observed = self.observe(None).await;
            let node = status::initial(&self.settings, &observed, self.now());
            self.state.set_own(node.clone());
            tracing::info!(node = self.settings.name, "Attempting to register node");
            self.start(Start::attempted);
            match registration::register(client, &self.settings, &node).await {
                Ok(Registered { node, is_new }) => {
                    if is_new {
                        self.start(Start::registered);
                    }
                    return node;
                }
                Err(error) => {
                    tracing::error!(node = self.settings.name, %error, "Unable to register node with API server");
                    tokio::time::sleep(pause.step(&self.rng)).await;
                }
            }
        }
    }

    /// Notes a moment of the start.
    fn start(&self, moment: fn(&mut Start, SystemTime)) {
        if let Some(start) = &self.start {
            moment(&mut start.lock(), self.clock.wall());
        }
    }

    /// Without an API server the object is for this process alone.
    async fn stand_alone(&self) {
        loop {
            self.refresh_own().await;
            tokio::time::sleep(self.settings.update_frequency).await;
        }
    }

    async fn refresh_own(&self) {
        let present = self.state.own();
        let observed = self.observe(present.as_deref()).await;
        let node = match present {
            Some(present) => {
                let mut node = Node::clone(&present);
                status::compute(&mut node, &self.settings, &observed, self.now());
                node
            }
            None => status::initial(&self.settings, &observed, self.now()),
        };
        self.state.set_own(node);
    }

    /// Makes this process's own picture of the node, before pods need it.
    pub async fn prime(&self) {
        self.refresh_own().await;
    }

    fn now(&self) -> Time {
        Time::from(self.clock.wall())
    }

    /// Sends the status if there is something to send; whether the node is ready.
    async fn report(&self, client: &Client) -> bool {
        for attempt in 0..TRIES {
            match self.try_report(client, attempt > 0).await {
                Ok(ready) => return ready,
                Err(error) => tracing::error!(%error, "Error updating node status, will retry"),
            }
        }
        tracing::error!("Unable to update node status: update node status exceeds retry count");
        false
    }

    async fn try_report(&self, client: &Client, fresh: bool) -> Result<bool, ClientError> {
        let api = client.all::<Node>();
        let cached = if fresh { None } else { self.state.known_to_api() };
        let old = match cached {
            Some(node) => node,
            None => Arc::new(api.get(&self.settings.name).await?),
        };
        self.tell_schedulable(&old);
        let observed = self.observe(Some(&old)).await;
        let mut new = Node::clone(&old);
        let mut reasons = status::compute(&mut new, &self.settings, &observed, self.now());
        let ready = observed.health.errors.is_empty();
        let changed = self.is_changed(&old, &new);
        if !changed && !self.is_due() {
            return Ok(ready);
        }
        self.tell_reboot(&old, &new);
        reasons.retain(|reason| !reason.is_empty());
        if let Some(patch) = patch::of(&old, &new) {
            let sent = api.patch_status(&self.settings.name, &Patch::Strategic(patch)).await?;
            for reason in reasons {
                self.tell_status(reason);
            }
            self.state.set_own(new);
            self.remember(sent, changed);
            if ready {
                self.start(Start::ready);
            }
        }
        Ok(ready)
    }

    /// Whether there is more to tell than a heartbeat. What was sent last counts as well as what the cache has, which may
    /// lag behind.
    fn is_changed(&self, old: &Node, new: &Node) -> bool {
        let memory = self.memory.0.lock();
        let base = memory.last.as_ref().filter(|last| is_newer(&last.metadata, &old.metadata)).unwrap_or(old);
        patch::differs(&base.status, &new.status)
    }

    /// A change goes out at once; mere heartbeats only now and then.
    fn is_due(&self) -> bool {
        let memory = self.memory.0.lock();
        let after = memory.report_after.unwrap_or(self.settings.report_frequency);
        memory.last_report.is_none_or(|at| at.elapsed() >= after)
    }

    fn remember(&self, sent: Node, changed: bool) {
        let mut memory = self.memory.0.lock();
        memory.last = Some(sent);
        memory.last_report = Some(Instant::now());
        // After a change the next report is shifted, so that nodes that changed together do not report together; from then
        // on they go on in step.
        memory.report_after = changed.then(|| self.settings.report_frequency.mul_f64(0.5 + self.rng.unit()));
    }

    fn tell_status(&self, reason: &str) {
        let text = format!("Node {} status is now: {reason}", self.settings.name);
        self.events.event(reference(&self.settings.name), Level::Normal, reason, &text);
    }

    /// Somebody closed the node to new pods, or opened it again.
    fn tell_schedulable(&self, node: &Node) {
        let closed = node.spec.unschedulable;
        if std::mem::replace(&mut self.memory.0.lock().unschedulable, closed) != closed {
            self.tell_status(if closed { "NodeNotSchedulable" } else { "NodeSchedulable" });
        }
    }

    fn tell_reboot(&self, old: &Node, new: &Node) {
        let (before, now) = (&old.status.node_info.boot_id, &new.status.node_info.boot_id);
        if before.is_empty() || before == now || std::mem::replace(&mut self.memory.0.lock().boot_id_told, true) {
            return;
        }
        let text = format!("Node {} has been rebooted, boot id: {now}", self.settings.name);
        self.events.event(reference(&self.settings.name), Level::Warning, "Rebooted", &text);
    }

    async fn observe(&self, present: Option<&Node>) -> Observed {
        let addresses = addresses::of_node(&self.settings, self.addresses.as_ref(), present).await;
        let addresses = addresses.inspect_err(|error| tracing::error!(%error, "Failed to set some node status fields"));
        let health = self.state.health();
        Observed {
            addresses: addresses.ok(),
            capacity: self.facts.capacity(&self.settings),
            devices: self.devices.as_ref().map(|devices| devices.amounts()).unwrap_or_default(),
            info: self.facts.system_info(self.version().await.as_ref()),
            images: self.image_list().await,
            runtime: health.and_then(|health| health.runtime_status()),
            volumes_in_use: health.and_then(|health| health.volumes_in_use()),
            health: Health {
                pressures: self.state.pressures().into_iter().collect(),
                errors: self.state.ready_errors(),
                lacks_quota: false,
            },
        }
    }

    async fn version(&self) -> Option<VersionResponse> {
        if let Some(version) = self.memory.0.lock().version.clone() {
            return Some(version);
        }
        let version = self.runtime.version().await.ok()?;
        self.memory.0.lock().version = Some(version.clone());
        Some(version)
    }

    async fn image_list(&self) -> Vec<ContainerImage> {
        {
            let memory = self.memory.0.lock();
            if memory.images_at.is_some_and(|at| at.elapsed() < IMAGES_TTL) {
                return memory.images.clone();
            }
        }
        let listed = tokio::time::timeout(IMAGES_LIMIT, self.images.list_images(None)).await;
        let mut memory = self.memory.0.lock();
        memory.images_at = Some(Instant::now());
        match listed {
            Ok(Ok(images)) => memory.images = image_list::of(&images, self.settings.max_images),
            Ok(Err(error)) => tracing::error!(%error, "Error getting image list"),
            Err(_) => tracing::error!("Error getting image list: the runtime does not answer"),
        }
        memory.images.clone()
    }
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
