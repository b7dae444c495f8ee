//! The Service `kubernetes` in `default`, and which servers stand behind it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::intstr::IntOrString;
use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Service, ServicePort, ServiceSpec};
use async_trait::async_trait;
use client::Request;

use super::endpoints::{self, NAME, NAMESPACE};
use super::error::BootstrapError;
use super::master_leases::{MasterLeases, at};
use super::namespaces;
use crate::address::secure_port;
use crate::config::EndpointReconciler;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// How often Service and endpoints are looked at, and keys renewed.
const PERIOD: Duration = Duration::from_secs(10);
/// How often the server asks itself whether it is ready.
const READY_PERIOD: Duration = Duration::from_millis(100);
/// The longest that removing the own address may hold up the shutdown.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);
const SERVICE_PORT: i32 = 443;

/// The hook `bootstrap-controller`.
pub(super) struct BootstrapController;

#[async_trait]
impl PostStartHook for BootstrapController {
    fn name(&self) -> &'static str {
        "bootstrap-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let config = cx.config();
        let address = config.advertise_address;
        if let Some(service) = config.services.first_address()
            && service.is_ipv4() != address.is_ipv4()
        {
            let (network, length) = config.services.cluster_ip_ranges.first().copied().unwrap_or((service, 0));
            return Err(HookError::Family { network, length, address });
        }
        let keeper = Arc::new(Keeper {
            leases: MasterLeases::new(Arc::clone(cx.backend()), &config.storage.prefix, "masterleases"),
            address,
            stopped: AtomicBool::new(false),
            turn: tokio::sync::Mutex::new(()),
        });
        let (context, own) = (Arc::clone(cx), Arc::clone(&keeper));
        cx.tasks().spawn_cancellable("kubernetes-service", async move { own.keep(&context).await });
        cx.before_shutdown(move |cx| {
            let keeper = Arc::clone(&keeper);
            async move {
                if tokio::time::timeout(REMOVE_LIMIT, keeper.leave(&cx)).await.is_err() {
                    tracing::warn!("Removing the own address from the Service kubernetes took too long");
                }
            }
        });
        Ok(())
    }
}

/// Keeps the Service and its endpoints.
struct Keeper {
    leases: MasterLeases,
    address: IpAddr,
    /// Set when the server ends; later passes do nothing.
    stopped: AtomicBool,
    /// One pass at a time, so that none ends after the own address was removed.
    turn: tokio::sync::Mutex<()>,
}

impl Keeper {
    async fn keep(&self, cx: &Arc<ApiCx>) {
        if let Err(error) = self.forget_former_run(cx).await {
            tracing::warn!(%error, "Removing the address of a former run failed");
        }
        while !is_ready(cx).await {
            tokio::time::sleep(READY_PERIOD).await;
        }
        loop {
            if let Err(error) = self.pass(cx).await {
                tracing::warn!(%error, "Reconciling the Service kubernetes failed");
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// An address that this server left behind must not be used before it is ready. Where nobody else serves, what is told
    /// stays, as upstream: none at all would help nobody.
    async fn forget_former_run(&self, cx: &ApiCx) -> Result<(), BootstrapError> {
        let Some(others) = self.remaining(cx).await?.filter(|others| !others.is_empty()) else { return Ok(()) };
        if endpoints::published(cx.loopback()).await?.contains(&self.address.to_string()) {
            endpoints::publish(cx.loopback(), &others, secure_port(cx.config())).await?;
        }
        Ok(())
    }

    async fn pass(&self, cx: &ApiCx) -> Result<(), BootstrapError> {
        let _turn = self.turn.lock().await;
        if self.stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        ensure_service(cx).await?;
        let client = cx.loopback();
        let addresses = match cx.config().services.reconciler {
            EndpointReconciler::None => return Ok(()),
            EndpointReconciler::Lease => {
                let own = self.address.to_string();
                self.leases.renew(&own, at(own.clone())).await?;
                let addresses = self.leases.names().await?;
                if addresses.is_empty() {
                    return Err(BootstrapError::NoAddresses);
                }
                addresses
            }
            EndpointReconciler::MasterCount => {
                let published = endpoints::published(client).await?;
                joined(published, &self.address.to_string(), cx.config().services.apiserver_count)
            }
        };
        endpoints::publish(client, &addresses, secure_port(cx.config())).await?;
        Ok(())
    }

    /// Takes the own address out, for good.
    async fn leave(&self, cx: &ApiCx) {
        let _turn = self.turn.lock().await;
        if self.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        let left = self.remaining(cx).await;
        let result = match left {
            Ok(Some(addresses)) => endpoints::publish(cx.loopback(), &addresses, secure_port(cx.config()))
                .await
                .map_err(BootstrapError::from),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "Removing the own address from the Service kubernetes failed");
        }
    }

    /// The addresses without the own one; nothing where nobody keeps them.
    async fn remaining(&self, cx: &ApiCx) -> Result<Option<BTreeSet<String>>, BootstrapError> {
        match cx.config().services.reconciler {
            EndpointReconciler::None => Ok(None),
            EndpointReconciler::Lease => {
                self.leases.remove(&self.address.to_string()).await?;
                Ok(Some(self.leases.names().await?))
            }
            EndpointReconciler::MasterCount => {
                let mut published = endpoints::published(cx.loopback()).await?;
                published.remove(&self.address.to_string());
                Ok(Some(published))
            }
        }
    }
}

/// The published addresses with the own one, and without those that follow it while there are too many.
fn joined(mut published: BTreeSet<String>, own: &str, count: usize) -> BTreeSet<String> {
    published.insert(own.to_owned());
    while published.len() > count.max(1) {
        let after = published.range(own.to_owned()..).nth(1).or_else(|| published.first()).cloned();
        match after {
            Some(after) => published.remove(&after),
            None => break,
        };
    }
    published
}

pub(crate) async fn is_ready(cx: &ApiCx) -> bool {
    let answer = cx.loopback().send(Request::get("/readyz")).await;
    answer.is_ok_and(|answer| answer.status.is_success())
}

/// Creates the Service unless it is there; one that is there is left as it is.
async fn ensure_service(cx: &ApiCx) -> Result<(), BootstrapError> {
    let client = cx.loopback();
    namespaces::ensure(client, NAMESPACE).await?;
    let api = client.namespaced::<Service>(NAMESPACE);
    if api.get_opt(NAME).await?.is_some() {
        return Ok(());
    }
    match api.create(&service(cx)).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

fn service(cx: &ApiCx) -> Service {
    let config = cx.config();
    let node_port = config.services.kubernetes_node_port;
    let labels = [("component", "apiserver"), ("provider", "kubernetes")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let port = ServicePort {
        name: "https".to_owned(),
        protocol: "TCP".to_owned(),
        port: SERVICE_PORT,
        target_port: IntOrString::Int(secure_port(config).into()),
        node_port: node_port.into(),
        ..ServicePort::default()
    };
    Service {
        metadata: ObjectMeta { name: NAME.into(), namespace: NAMESPACE.into(), labels, ..ObjectMeta::default() },
        spec: ServiceSpec {
            ports: vec![port],
            cluster_ip: config.services.first_address().map(|address| address.to_string()).unwrap_or_default(),
            type_: if node_port > 0 { "NodePort" } else { "ClusterIP" }.to_owned(),
            session_affinity: "None".to_owned(),
            ip_family_policy: Some("SingleStack".to_owned()),
            ..ServiceSpec::default()
        },
        ..Service::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_addresses_lose_the_next_one() {
        let set = |addresses: &[&str]| addresses.iter().map(|&address| address.to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(joined(set(&["a", "c"]), "b", 3), set(&["a", "b", "c"]));
        assert_eq!(joined(set(&["a", "c"]), "b", 2), set(&["a", "b"]));
        assert_eq!(joined(set(&["a", "b"]), "c", 2), set(&["b", "c"]));
        assert_eq!(joined(set(&["a"]), "b", 0), set(&["b"]));
    }
}
