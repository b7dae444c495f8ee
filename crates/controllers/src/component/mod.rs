//! kube-controller-manager itself: flags, identities, and the frame around the controllers.

mod configz;
mod flags;
#[cfg(test)]
mod flags_tests;
mod identities;
mod options;

use std::sync::Arc;
use std::time::Duration;

use component_base::flags::Options;
use component_base::serving::BoxError;
use component_base::shared_gates::{
    API_SERVER_IDENTITY, CLUSTER_TRUST_BUNDLE, COMPARING_TOLERATIONS, COORDINATED_ELECTION, EXTENDED_RESOURCE,
    GENERIC_WORKLOAD, POD_CERTIFICATE_REQUEST, RELEASE_LEASE_ON_EXIT, STORAGE_VERSION_API, STORAGE_VERSION_MIGRATOR,
};
use component_base::{Component, Gates, Known, Lifecycle, Part, no_config_file};
use controller::process::{Leading, run_process};
use controller::{ControllerSet, Environment, Stopped};

use crate::{ALL, volumes};
use options::Config;

const NAME: &str = "kube-controller-manager";
/// How long connections and recorders may take to end.
const DRAIN: Duration = Duration::from_secs(5);
/// The gates whose two sides are here, and the one whose only part for this component is.
const GATES: Known = Known::switching(&[
    &[
        RELEASE_LEASE_ON_EXIT,
        COORDINATED_ELECTION,
        STORAGE_VERSION_API,
        STORAGE_VERSION_MIGRATOR,
        volumes::selinux::GATE,
    ],
    &[
        API_SERVER_IDENTITY,
        CLUSTER_TRUST_BUNDLE,
        COMPARING_TOLERATIONS,
        EXTENDED_RESOURCE,
        GENERIC_WORKLOAD,
        POD_CERTIFICATE_REQUEST,
    ],
    crate::autoscaling::horizontal::GATES,
    crate::devices::pool_status::GATES,
    crate::devices::taint_eviction::GATES,
    crate::workloads::job::GATES,
    crate::workloads::replica_set::GATES,
    crate::volumes::storage_protection::GATES,
    crate::workloads::stateful_set::GATES,
    crate::workloads::STALENESS_GATES,
    crate::devices::resource_claim::GATES,
    controller::process::UID_GATES,
    component_base::zpages::GATES,
    client::features::GATES,
    component_base::logging::GATES,
    component_base::metrics::GATES,
])
.of(Part::ControllerManager);

/// The binary.
pub const COMPONENT: Component = Component {
    name: NAME,
    about: "The Kubernetes controller manager runs the control loops that ship with Kubernetes: each watches the \
            cluster through the API server and moves what is there towards what was asked for.",
    flags: flags::FLAGS,
    gates: GATES,
    prepare: no_config_file,
    drain: DRAIN,
};

/// Runs the component until it is asked to end.
///
/// # Errors
/// When a flag is wrong, a controller cannot be built, or the leadership is lost.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let config = Config::from_options(&options, lifecycle.rng(), lifecycle.gates())?;
    let set = ControllerSet::new(ALL, &config.selection, lifecycle.gates());
    let checks = set.checks();
    let shown = configz::shown(&options);
    let gates = lifecycle.gates().clone();
    let process = config.process.clone().releasing_where_told(&gates).coordinated();
    run_process(process, &lifecycle, checks, shown, |leading| lead(set, config, gates, leading)).await
}

async fn lead(set: Arc<ControllerSet>, config: Config, gates: Gates, leading: Leading) -> Result<(), BoxError> {
    let environment = Environment {
        client_for: identities::clients(&leading.client, config.service_accounts)?,
        gates,
        metrics: Some(leading.metrics),
        min_resync: config.min_resync,
        start_interval: config.start_interval,
        shutdown_timeout: config.shutdown_timeout,
        debug_pages: config.process.debug_pages(),
        ..crate::environment(&leading.client, config.settings)
    };
    match set.run(&environment, leading.stop).await? {
        Stopped::Cleanly => Ok(()),
        Stopped::TimedOut(_) => Err("controller shutdown timeout reached".into()),
    }
}
