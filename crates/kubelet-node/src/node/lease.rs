//! The node's heartbeat: a lease that is renewed every few seconds.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::time::MicroTime;
use api_types::coordination_v1::{Lease, LeaseSpec};
use api_types::core_v1::Node;
use base::Backoff;
use client::{Client, ClientError};

/// The namespace of all nodes' leases.
const NAMESPACE: &str = "kube-node-lease";
/// Which part of its validity passes between two renewals.
const RENEWALS: u32 = 4;
/// Updates that are tried at once before the lease is read again.
const QUICK_TRIES: usize = 5;
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(7);

/// Renews the lease of a node.
pub struct LeaseKeeper {
    client: Client,
    name: String,
    seconds: i32,
}

impl LeaseKeeper {
    /// A keeper of a lease that is valid for `seconds`.
    pub fn new(client: &Client, name: &str, seconds: i32) -> Arc<Self> {
        Arc::new(Self { client: client.clone(), name: name.to_owned(), seconds })
    }

    /// Renews for ever.
    pub async fn run(&self) {
        let period = Duration::from_secs(u64::try_from(self.seconds).unwrap_or(40)) / RENEWALS;
        let mut lease = None;
        loop {
            lease = Some(self.renew(lease).await);
            tokio::time::sleep(period.mul_f64(1.0 + 0.04 * self.client.rng().unit())).await;
        }
    }

    /// Renews the lease as it was last seen; if that fails, reads or makes it, until it is renewed.
    async fn renew(&self, known: Option<Lease>) -> Lease {
        if let Some(mut lease) = known {
            for _ in 0..QUICK_TRIES {
                match self.update(&lease).await {
                    Ok(renewed) => return renewed,
                    Err(error) if error.is_conflict() => match self.api().get(&self.name).await {
                        Ok(fresh) => lease = fresh,
                        Err(_) => break,
                    },
                    Err(error) if error.is_not_found() => break,
                    Err(error) => tracing::error!(%error, "Failed to update lease"),
                }
            }
        }
        let mut pause = Backoff::new(RETRY_FIRST, 2.0, RETRY_LAST, 0.0);
        loop {
            match self.ensure().await {
                Ok(lease) => return lease,
                Err(error) => {
                    let wait = pause.step(self.client.rng());
                    tracing::error!(%error, interval = ?wait, "Failed to ensure lease exists, will retry");
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn ensure(&self) -> Result<Lease, ClientError> {
        match self.api().get_opt(&self.name).await? {
            Some(lease) => self.update(&lease).await,
            None => self.api().create(&self.renewed(&Lease::default(), self.owner().await)).await,
        }
    }

    async fn update(&self, lease: &Lease) -> Result<Lease, ClientError> {
        let owner = if lease.metadata.owner_references.is_empty() { self.owner().await } else { None };
        self.api().update(&self.renewed(lease, owner)).await
    }

    fn api(&self) -> client::Api<Lease> {
        self.client.namespaced(NAMESPACE)
    }

    fn renewed(&self, lease: &Lease, owner: Option<OwnerReference>) -> Lease {
        let mut metadata = if lease.metadata.name.is_empty() {
            ObjectMeta { name: self.name.clone(), namespace: NAMESPACE.to_owned(), ..ObjectMeta::default() }
        } else {
            lease.metadata.clone()
        };
        metadata.owner_references.extend(owner);
        let now = MicroTime::from(self.client.clock().wall());
        let spec = LeaseSpec {
            holder_identity: Some(self.name.clone()),
            lease_duration_seconds: Some(self.seconds),
            renew_time: Some(now.as_renewal_after(lease.spec.renew_time)),
            ..lease.spec.clone()
        };
        Lease { metadata, spec }
    }

    /// The node owns its lease, so that it goes when the node does; unknown until the node is registered.
    async fn owner(&self) -> Option<OwnerReference> {
        let node = self.client.all::<Node>().get(&self.name).await.ok()?;
        Some(OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: self.name.clone(),
            uid: node.metadata.uid,
            ..OwnerReference::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use base::StandingClock;
    use client::fake::FakeServer;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leases_are_made_and_renewed() {
        let server = FakeServer::new();
        let client = server.client();
        let keeper = LeaseKeeper::new(&client, "n1", 40);
        client.tasks().spawn_cancellable("lease", async move { keeper.run().await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = || server.objects("coordination.k8s.io/v1/leases").remove(0);
        let first = lease();
        assert_eq!(first["metadata"]["namespace"], NAMESPACE);
        assert_eq!(
            (&first["spec"]["holderIdentity"], &first["spec"]["leaseDurationSeconds"]),
            (&json!("n1"), &json!(40))
        );
        assert!(first["metadata"]["ownerReferences"].is_null());
        server.put("v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u1"}}));
        tokio::time::sleep(Duration::from_secs(11)).await;
        let second = lease();
        assert_ne!(first["spec"]["renewTime"], second["spec"]["renewTime"]);
        assert_eq!(second["metadata"]["ownerReferences"][0]["uid"], "u1");
        server.remove("coordination.k8s.io/v1/leases", NAMESPACE, "n1");
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(lease()["spec"]["holderIdentity"], "n1", "made anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_whose_clock_stands_is_heard() {
        let server = FakeServer::new();
        let client = server.client_on(Arc::new(StandingClock(SystemTime::UNIX_EPOCH)));
        let keeper = LeaseKeeper::new(&client, "n1", 40);
        client.tasks().spawn_cancellable("lease", async move { keeper.run().await });
        let renewed = async || {
            tokio::time::sleep(Duration::from_secs(11)).await;
            server.objects("coordination.k8s.io/v1/leases").remove(0)["spec"]["renewTime"].clone()
        };
        assert_ne!(renewed().await, renewed().await);
    }
}
