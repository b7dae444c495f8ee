//! The drivers that are registered, and their clients.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use node_api::csi::{CsiClient, CsiObserver};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::driver_version::Version;

/// Volumes of a driver that is not there wait for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("driver name {0} not found in the list of registered CSI drivers")]
pub struct NotRegistered(pub String);

struct Driver {
    endpoint: String,
    version: Version,
    client: CsiClient,
}

/// The drivers of a node, by name.
#[derive(Default)]
pub struct Drivers {
    drivers: Mutex<BTreeMap<String, Driver>>,
    observer: Option<Arc<dyn CsiObserver>>,
    changed: Notify,
}

impl Drivers {
    /// No driver yet; calls of later ones are told to the observer.
    pub fn new(observer: Option<Arc<dyn CsiObserver>>) -> Arc<Self> {
        Arc::new(Self { drivers: Mutex::default(), observer, changed: Notify::new() })
    }

    /// The client of a driver.
    ///
    /// # Errors
    /// The driver is not registered; it may be later.
    pub fn client(&self, name: &str) -> Result<CsiClient, NotRegistered> {
        let drivers = self.drivers.lock();
        drivers.get(name).map(|driver| driver.client.clone()).ok_or_else(|| NotRegistered(name.to_owned()))
    }

    /// The drivers that are registered.
    pub(super) fn names(&self) -> Vec<String> {
        self.drivers.lock().keys().cloned().collect()
    }

    /// Waits until a driver has come or gone; for one who waits.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The version of a driver that is registered.
    pub(super) fn version(&self, name: &str) -> Option<Version> {
        self.drivers.lock().get(name).map(|driver| driver.version.clone())
    }

    pub(super) fn put(&self, name: &str, endpoint: &str, version: Version) -> CsiClient {
        let client = CsiClient::new(name, Path::new(endpoint), self.observer.clone());
        let driver = Driver { endpoint: endpoint.to_owned(), version, client: client.clone() };
        self.drivers.lock().insert(name.to_owned(), driver);
        self.changed.notify_one();
        client
    }

    /// Takes a driver away if it is the one at this endpoint; whether it was.
    pub(super) fn remove(&self, name: &str, endpoint: &str) -> bool {
        let mut drivers = self.drivers.lock();
        let own = drivers.get(name).is_some_and(|driver| driver.endpoint == endpoint);
        if own {
            drivers.remove(name);
            self.changed.notify_one();
        }
        own
    }

    /// A driver as if it had registered.
    #[cfg(any(test, feature = "fake"))]
    pub fn put_for_test(&self, name: &str, endpoint: &Path) {
        let version = super::driver_version::highest(&["1.0.0".to_owned()]).expect("a version");
        self.put(name, &endpoint.display().to_string(), version);
    }
}
