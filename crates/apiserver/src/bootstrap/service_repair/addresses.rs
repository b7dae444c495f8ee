//! Addresses compared with the Services: each as it changes, and all of them every few minutes.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use api_types::networking_v1::IPAddress;
use client::{NoMetrics, RateLimit, SeriesRecorder, WorkQueue};
use registry::RepairReport;

use super::super::retry;
use super::{PERIOD, RETRY_PERIOD, tell};
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};

/// How many look at what has changed, of Services and of addresses each; upstream's number.
const WORKERS: usize = 5;
/// How often something that fails is tried before the next look at all.
const MOST_RETRIES: u32 = 15;
/// How long after a change something is looked at: the caches of Services and of addresses are not equally fast.
const SETTLING: Duration = Duration::from_secs(1);

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    /// Namespace and name.
    Service(String, String),
    Address(String),
}

/// Why something has to be looked at again.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("{0}")]
    Unfinished(String),
}

pub(super) struct Keeper {
    cx: Arc<ApiCx>,
    recorder: SeriesRecorder,
    services: WorkQueue<Changed>,
    addresses: WorkQueue<Changed>,
}

impl Keeper {
    pub(super) fn new(cx: &Arc<ApiCx>) -> Self {
        let queue = |name| WorkQueue::new(name, RateLimit::default(), Arc::clone(cx.clock()), Arc::new(NoMetrics));
        Self {
            cx: Arc::clone(cx),
            recorder: SeriesRecorder::new(cx.loopback(), "ipallocator-repair-controller", ""),
            services: queue("repair-services"),
            addresses: queue("repair-addresses"),
        }
    }

    /// One look at all of them.
    pub(super) async fn pass(&self) -> Result<(), PassError> {
        let looked = self.cx.registry().repair_addresses(self.cx.clock().wall().into()).await;
        self.conclude(looked).map(drop)
    }

    /// One look at something that changed; says when to look again.
    async fn look(&self, changed: &Changed) -> Result<Option<Duration>, PassError> {
        let (registry, now) = (self.cx.registry(), self.cx.clock().wall().into());
        let looked = match changed {
            Changed::Service(namespace, name) => registry.repair_service(namespace, name, now).await,
            Changed::Address(name) => registry.repair_address(name, now).await,
        };
        self.conclude(looked)
    }

    /// Counts and tells what a look found.
    fn conclude(&self, looked: Result<RepairReport, ApiError>) -> Result<Option<Duration>, PassError> {
        let metrics = &self.cx.metrics.repair;
        let report = looked.inspect_err(|_| metrics.addresses_failed())?;
        metrics.addresses(&report);
        if report.freed > 0 {
            tracing::info!(count = report.freed, "Freed addresses that no Service has");
        }
        for finding in report.findings {
            tell(&self.recorder, finding);
        }
        match report.failure {
            None => Ok(report.again),
            Some(failure) => {
                metrics.addresses_failed();
                Err(PassError::Unfinished(failure))
            }
        }
    }

    async fn work(&self, queue: &WorkQueue<Changed>) {
        while let Some(changed) = queue.next().await {
            match self.look(&changed).await {
                Ok(again) => {
                    queue.forget(&changed);
                    if let Some(after) = again {
                        queue.add_after(changed.clone(), after);
                    }
                }
                Err(error) if queue.failures(&changed) < MOST_RETRIES => {
                    tracing::debug!(%error, ?changed, "Comparing an address with its Service failed");
                    queue.add_rate_limited(changed.clone());
                }
                Err(error) => {
                    tracing::warn!(%error, ?changed, "Comparing an address with its Service failed");
                    queue.forget(&changed);
                }
            }
            queue.done(&changed);
        }
    }
}

/// Goes on comparing for as long as the server runs.
pub(super) fn spawn(keeper: &Arc<Keeper>, cx: &ApiCx) {
    let tasks = cx.tasks();
    for queue in [&keeper.services, &keeper.addresses] {
        for _ in 0..WORKERS {
            let (keeper, queue) = (Arc::clone(keeper), queue.clone());
            tasks.spawn_cancellable("address-repair", async move { keeper.work(&queue).await });
        }
    }
    let (services, addresses) = (ChangedServices(Arc::clone(keeper)), ChangedAddresses(Arc::clone(keeper)));
    let place = |of: api_machinery::object::KindType| (of.group, of.version, of.resource);
    follow(cx.registry(), place(Service::TYPE), Arc::new(services), tasks);
    follow(cx.registry(), place(IPAddress::TYPE), Arc::new(addresses), tasks);
    let keeper = Arc::clone(keeper);
    tasks.spawn_cancellable("addresses-repair", async move {
        tokio::time::sleep(PERIOD).await;
        retry::repeat("Comparing addresses with the Services", PERIOD, RETRY_PERIOD, || keeper.pass()).await;
    });
}

struct ChangedServices(Arc<Keeper>);

impl Follower for ChangedServices {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let meta = object.meta();
        self.0.services.add_after(Changed::Service(meta.namespace.clone(), meta.name.clone()), SETTLING);
    }

    /// Its addresses go with it; what is left of them is found when all are looked at.
    fn gone(&self, _namespace: &str, _name: &str) {}
}

struct ChangedAddresses(Arc<Keeper>);

impl Follower for ChangedAddresses {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        self.0.addresses.add_after(Changed::Address(object.meta().name.clone()), SETTLING);
    }

    /// Whose it was has to say so himself.
    fn removed(&self, object: &dyn Object) {
        let parent = object.downcast_ref::<IPAddress>().and_then(|address| address.spec.parent_ref.clone());
        if let Some(parent) = parent.filter(|parent| (&*parent.group, &*parent.resource) == ("", "services")) {
            self.0.services.add_after(Changed::Service(parent.namespace, parent.name), SETTLING);
        }
    }

    fn gone(&self, _namespace: &str, _name: &str) {}
}
