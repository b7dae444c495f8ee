//! Renewing a certificate before it expires.

use std::time::{Duration, SystemTime};

use base::{Backoff, Rng, SharedClock};
use client::Client;
use pki::Certificate;

use super::CertificateError;
use super::request::{Template, obtain};
use super::store::{Pair, Store};

/// Pauses after failures.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LAST: Duration = Duration::from_secs(32);
/// Time is looked at least this often, so that a clock that is set is noticed.
const LOOK: Duration = Duration::from_secs(60);

/// When to renew: at 70 to 90 percent of the lifetime.
pub(super) fn deadline(certificate: &Certificate, rng: &Rng) -> SystemTime {
    let lifetime = certificate.not_after().duration_since(certificate.not_before()).unwrap_or_default();
    certificate.not_before() + lifetime.mul_f64(0.7 + 0.2 * rng.unit())
}

/// Waits for a moment of the wall clock.
pub(super) async fn wait_until(clock: &SharedClock, moment: SystemTime) {
    while let Ok(left) = moment.duration_since(clock.wall()) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

/// Asks until there is a certificate.
pub(super) async fn obtain_surely(client: &Client, template: &Template) -> Pair {
    let mut pause = Backoff::new(RETRY_FIRST, 2.0, RETRY_LAST, 0.1);
    loop {
        match obtain(client, template).await {
            Ok(pair) => return pair,
            Err(error) => {
                template.count_failure();
                tracing::error!(%error, signer = template.signer, "Failed while requesting a signed certificate from the control plane");
                tokio::time::sleep(pause.step(client.rng())).await;
            }
        }
    }
}

/// The client certificate, renewed.
pub(crate) struct Rotation {
    pub(super) store: Store,
    pub(super) template: Template,
}

impl Rotation {
    /// Renews for as long as the client's tasks run. The client follows the file.
    pub(crate) fn start(self, client: &Client) {
        let own = client.clone();
        client.tasks().spawn_cancellable("client-certificate", async move {
            loop {
                match self.store.load().map(|pair| pair.leaf()) {
                    Some(Ok(leaf)) => wait_until(own.clock(), deadline(&leaf, own.rng())).await,
                    Some(Err(error)) => tracing::error!(%error, "The client certificate cannot be read"),
                    None => {}
                }
                tracing::info!("Rotating certificates");
                let pair = obtain_surely(&own, &self.template).await;
                if let Err(error) = self.save(&pair, own.clock().wall()) {
                    tracing::error!(%error, "The new client certificate could not be kept");
                    tokio::time::sleep(RETRY_LAST).await;
                }
            }
        });
    }

    fn save(&self, pair: &Pair, now: SystemTime) -> Result<(), CertificateError> {
        self.store.save(pair, now)
    }
}
