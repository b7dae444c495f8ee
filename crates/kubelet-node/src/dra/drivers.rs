//! The drivers that are registered: which of them are there, and what becomes of those that are not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Backoff, CancellationToken, SharedRng, TaskGroup};
use client::Client;
use futures_util::StreamExt as _;
use node_api::RpcError;
use node_api::dra::{DraClient, DraObserver, DraVersion};
use node_api::tonic::Code;
use parking_lot::Mutex;

use super::Healths;
use super::slices::Slices;

/// How long a driver may be away, to be updated or to crash, before what it published goes.
const ABSENCE: Duration = Duration::from_secs(30);
/// A driver whose connection was lost is dialled again after this, then after twice as long, up to the second.
const FIRST_DIAL: Duration = Duration::from_millis(100);
const LAST_DIAL: Duration = Duration::from_secs(5);
const JITTER: f64 = 0.1;
/// Between two tries to hear of the health of a driver's devices.
const HEALTH_RETRY: Duration = Duration::from_secs(5);

/// Claims of a driver that is not there wait for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("DRA driver {0} is not registered")]
pub struct NotRegistered(pub String);

/// An instance of the driver is registered at this endpoint already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("endpoint {endpoint} already registered for DRA driver plugin {driver}")]
pub struct AlreadyRegistered {
    driver: String,
    endpoint: String,
}

/// One process of a driver; there are two while it is updated.
struct Instance {
    endpoint: String,
    client: DraClient,
    connected: bool,
    token: CancellationToken,
}

#[derive(Default)]
struct Driver {
    /// The newest last.
    instances: Vec<Instance>,
    /// Cancelled when an instance is there: what the driver published stays.
    departure: Option<CancellationToken>,
}

/// What drivers are followed with.
pub struct DriverDeps {
    /// The API, which has what drivers publish.
    pub client: Client,
    /// The node.
    pub node_name: String,
    /// Who sees the calls of drivers.
    pub observer: Option<Arc<dyn DraObserver>>,
    /// Where the health of devices is kept; nobody asks for it where there is none.
    pub healths: Option<Arc<Healths>>,
    /// Randomness.
    pub rng: SharedRng,
    /// What follows drivers ends with this.
    pub tasks: TaskGroup,
}

/// The drivers of a node, by name.
pub struct DraDrivers {
    drivers: Mutex<BTreeMap<String, Driver>>,
    slices: Slices,
    observer: Option<Arc<dyn DraObserver>>,
    healths: Option<Arc<Healths>>,
    rng: SharedRng,
    tasks: TaskGroup,
}

impl DraDrivers {
    /// No driver yet.
    #[must_use]
    pub fn new(deps: DriverDeps) -> Arc<Self> {
        let DriverDeps { client, node_name, observer, healths, rng, tasks } = deps;
        let slices = Slices { client, node_name, rng: Arc::clone(&rng) };
        Arc::new(Self { drivers: Mutex::default(), slices, observer, healths, rng, tasks })
    }

    /// Removes what drivers published to an earlier kubelet: those that are there publish it again.
    pub fn start(self: &Arc<Self>) {
        let me = Arc::clone(self);
        self.tasks.spawn_cancellable("dra-slices", async move { me.slices.remove(None).await });
    }

    /// The client of a driver: of its newest instance that is there, or of the newest at all.
    ///
    /// # Errors
    /// The driver is not registered; it may be later.
    pub fn client(&self, name: &str) -> Result<DraClient, NotRegistered> {
        let drivers = self.drivers.lock();
        let instances = drivers.get(name).map(|driver| driver.instances.as_slice()).unwrap_or_default();
        let there = instances.iter().rev().find(|instance| instance.connected);
        let chosen = there.or(instances.last()).map(|instance| instance.client.clone());
        chosen.ok_or_else(|| NotRegistered(name.to_owned()))
    }

    /// An instance of a driver has registered.
    ///
    /// # Errors
    /// It was registered before.
    pub fn add(self: &Arc<Self>, name: &str, endpoint: &str, version: DraVersion) -> Result<(), AlreadyRegistered> {
        let client = DraClient::new(name, version, Path::new(endpoint), self.observer.clone());
        let token = CancellationToken::new();
        let instance =
            Instance { endpoint: endpoint.to_owned(), client: client.clone(), connected: false, token: token.clone() };
        {
            let mut drivers = self.drivers.lock();
            let driver = drivers.entry(name.to_owned()).or_default();
            if driver.instances.iter().any(|known| known.endpoint == endpoint) {
                return Err(AlreadyRegistered { driver: name.to_owned(), endpoint: endpoint.to_owned() });
            }
            driver.instances.push(instance);
            self.watch_for_departure(name, driver);
        }
        let (me, name, endpoint) = (Arc::clone(self), name.to_owned(), endpoint.to_owned());
        self.tasks.spawn_cancellable("dra-driver", async move {
            let followed = async { tokio::join!(me.follow(&name, &endpoint, &client), me.hear(&name, &client)) };
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                _ = followed => {}
            }
        });
        Ok(())
    }

    /// An instance of a driver is gone.
    pub fn remove(self: &Arc<Self>, name: &str, endpoint: &str) {
        let mut drivers = self.drivers.lock();
        let Some(driver) = drivers.get_mut(name) else { return };
        for gone in driver.instances.extract_if(.., |known| known.endpoint == endpoint) {
            gone.token.cancel();
        }
        if let Some(healths) = self.healths.as_ref().filter(|_| driver.instances.is_empty()) {
            healths.forget(name);
        }
        self.watch_for_departure(name, driver);
    }

    /// Holds a connection to an instance, and dials again whenever it is lost. Does not return.
    async fn follow(self: &Arc<Self>, name: &str, endpoint: &str, client: &DraClient) {
        let mut back_off = Backoff::new(FIRST_DIAL, 2.0, LAST_DIAL, JITTER);
        loop {
            if let Ok(presence) = client.presence().await {
                self.set_connected(name, endpoint, true);
                back_off.reset();
                presence.ended().await;
                self.set_connected(name, endpoint, false);
                tracing::info!(driver = name, endpoint, "The connection to a DRA driver was lost");
            }
            tokio::time::sleep(back_off.step(&self.rng)).await;
        }
    }

    fn set_connected(self: &Arc<Self>, name: &str, endpoint: &str, connected: bool) {
        let mut drivers = self.drivers.lock();
        let Some(driver) = drivers.get_mut(name) else { return };
        for known in driver.instances.iter_mut().filter(|known| known.endpoint == endpoint) {
            known.connected = connected;
        }
        self.watch_for_departure(name, driver);
    }

    /// Has what a driver published removed, unless it comes back in time.
    fn watch_for_departure(self: &Arc<Self>, name: &str, driver: &mut Driver) {
        if driver.instances.iter().any(|instance| instance.connected) {
            if let Some(departure) = driver.departure.take() {
                departure.cancel();
            }
            return;
        }
        if driver.departure.is_some() {
            return;
        }
        let token = CancellationToken::new();
        driver.departure = Some(token.clone());
        let (me, name) = (Arc::clone(self), name.to_owned());
        self.tasks.spawn_cancellable("dra-departure", async move {
            let departed = async {
                tokio::time::sleep(ABSENCE).await;
                tracing::info!(driver = name, "Removing the ResourceSlices of a DRA driver that is gone");
                me.slices.remove(Some(&name)).await;
            };
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = departed => me.drivers.lock().retain(|own, driver| *own != name || !driver.instances.is_empty()),
            }
        });
    }

    /// Hears of the health of an instance's devices, as long as it tells.
    async fn hear(&self, name: &str, client: &DraClient) {
        let Some(healths) = &self.healths else { return };
        loop {
            let heard = async {
                let mut lists = client.watch_health().await?;
                while let Some(list) = lists.next().await {
                    healths.hear(name, list?);
                }
                Ok::<(), RpcError>(())
            };
            match heard.await {
                Err(error) if error.code == Code::Unimplemented => {
                    tracing::info!(driver = name, "A DRA driver does not tell the health of its devices");
                    return;
                }
                Err(error) => tracing::debug!(driver = name, %error, "The health of a driver's devices is not told"),
                Ok(()) => {}
            }
            tokio::time::sleep(HEALTH_RETRY).await;
        }
    }
}

#[cfg(test)]
#[path = "drivers_tests.rs"]
mod tests;
