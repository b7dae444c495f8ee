//! The server's own health checks. Those of start-up work are added with the hooks.

use std::sync::Arc;
use std::time::Duration;

use component_base::health::{Check, Endpoint, Health, Installed};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use encryption::Live;
use storage::Backend;

use super::store::Store;
use crate::authorization::MirroredRoles;
use crate::config::ServerConfig;

/// The checks in upstream's order, which go to `slis` as well.
pub(super) fn of(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    slis: &Metrics,
    store: &Store,
    roles: &MirroredRoles,
    encryption: Option<&Arc<Live>>,
) -> Result<Arc<Health>, Installed> {
    let (health, config) = (Health::new(slis, config.livez_grace), &config.storage);
    if let Some(logging) = lifecycle.logging() {
        let logging = logging.clone();
        health.add(Endpoint::ALL, &Check::instant("log", move || logging.check()))?;
    }
    let names = |index: usize| (format!("etcd-override-{index}"), format!("etcd-override-readiness-{index}"));
    let overrides = store.overrides.all.iter().enumerate().map(|(index, own)| (names(index), &own.backend));
    let main = (("etcd".to_owned(), "etcd-readiness".to_owned()), &store.backend);
    for ((alive, ready), backend) in std::iter::once(main).chain(overrides) {
        health.add(Endpoint::ALL, &probe(&alive, backend, config.health_timeout).in_group("etcd"))?;
        health.add(Endpoint::READY, &probe(&ready, backend, config.ready_timeout).in_group("etcd-readiness"))?;
    }
    let roles = roles.clone();
    let informers = move || match roles.unsynced().as_slice() {
        [] => Ok(()),
        waiting => Err(format!("{} informers not started yet: [{}]", waiting.len(), waiting.join(" "))),
    };
    health.add(Endpoint::READY, &Check::instant("informer-sync", informers))?;
    // Of the plug-ins that keep the keys of what is stored.
    encryption.into_iter().flat_map(Live::checks).try_for_each(|check| health.add(Endpoint::ALL, &check))?;
    Ok(health)
}

/// Whether the store answers in time.
fn probe(name: &str, backend: &Arc<dyn Backend>, limit: Duration) -> Check {
    let backend = Arc::clone(backend);
    Check::new(name, move || {
        let backend = Arc::clone(&backend);
        async move {
            let failed = |error: String| format!("error getting data from etcd: {error}");
            match tokio::time::timeout(limit, backend.health()).await {
                Ok(answer) => answer.map_err(|error| failed(error.to_string())),
                Err(_) => Err(failed("context deadline exceeded".to_owned())),
            }
        }
    })
}
