//! What drivers publish of this node's devices, and how it goes when a driver is gone.

use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_types::resource_v1::ResourceSlice;
use base::{Backoff, SharedRng};
use client::{Client, ClientError};

/// What could not be removed is tried again after this, then after twice as long, up to the second.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);
const JITTER: f64 = 0.2;

/// The slices of one node.
pub(super) struct Slices {
    pub(super) client: Client,
    pub(super) node_name: String,
    pub(super) rng: SharedRng,
}

impl Slices {
    /// Removes those of one driver, or of all; tries until it is done.
    pub(super) async fn remove(&self, driver: Option<&str>) {
        let mut back_off = Backoff::new(FIRST_RETRY, 2.0, LAST_RETRY, JITTER);
        while let Err(error) = self.remove_once(driver).await {
            tracing::warn!(?driver, %error, "Removing the ResourceSlices of drivers that are gone failed");
            tokio::time::sleep(back_off.step(&self.rng)).await;
        }
    }

    async fn remove_once(&self, driver: Option<&str>) -> Result<(), ClientError> {
        let mut field_selector = format!("spec.nodeName={}", self.node_name);
        if let Some(driver) = driver {
            field_selector = format!("spec.driver={driver},{field_selector}");
        }
        let select = ListOptions { field_selector, ..ListOptions::default() };
        self.client.all::<ResourceSlice>().delete_collection(&DeleteOptions::default(), &select).await
    }
}
