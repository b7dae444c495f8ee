//! The controllers of kube-controller-manager, one file or folder each, by family.
//!
//! Every controller has the same parts: `DESCRIPTOR` (what it is called and what it watches), a controller with
//! `reconcile` (fetch, decide, act) and a pure plan that is tested from tables. Queues, retries and shutdown belong to
//! the `controller` crate. Deliberately not here: the controllers that only a cloud needs.

mod autoscaling;
mod certificates;
mod cluster;
mod component;
#[cfg(test)]
mod descriptors_test;
mod devices;
mod network;
mod nodes;
mod settings;
mod volumes;
mod workloads;

use std::sync::Arc;

use client::Client;
use controller::{Descriptor, Environment};

pub use component::{COMPONENT, run};
pub use settings::Settings;

/// Every controller, in the order in which they start.
pub const ALL: &[Descriptor] = &[
    // First, as the others may get their credentials from it.
    cluster::service_account_tokens::DESCRIPTOR,
    workloads::deployment::DESCRIPTOR,
    workloads::replica_set::DESCRIPTOR,
    workloads::replica_set::REPLICATION_CONTROLLER,
    workloads::daemon_set::DESCRIPTOR,
    workloads::job::DESCRIPTOR,
    workloads::cron_job::DESCRIPTOR,
    workloads::stateful_set::DESCRIPTOR,
    workloads::disruption::DESCRIPTOR,
    workloads::ttl_after_finished::DESCRIPTOR,
    workloads::pod_gc::DESCRIPTOR,
    cluster::cluster_role_aggregation::DESCRIPTOR,
    autoscaling::horizontal::DESCRIPTOR,
    devices::resource_claim::DESCRIPTOR,
    devices::pool_status::DESCRIPTOR,
    devices::taint_eviction::DESCRIPTOR,
    nodes::ipam::DESCRIPTOR,
    nodes::health::DESCRIPTOR,
    nodes::taint_eviction::DESCRIPTOR,
    nodes::ttl::DESCRIPTOR,
    cluster::garbage_collector::DESCRIPTOR,
    certificates::approving::DESCRIPTOR,
    certificates::signing::DESCRIPTOR,
    certificates::cleaning::DESCRIPTOR,
    certificates::pod_requests::DESCRIPTOR,
    cluster::namespace::DESCRIPTOR,
    cluster::resource_quota::DESCRIPTOR,
    volumes::binder::DESCRIPTOR,
    volumes::attach_detach::DESCRIPTOR,
    volumes::expander::DESCRIPTOR,
    volumes::ephemeral::DESCRIPTOR,
    volumes::storage_protection::CLAIMS,
    volumes::storage_protection::VOLUMES,
    volumes::attributes_class_protection::DESCRIPTOR,
    volumes::selinux::DESCRIPTOR,
    cluster::pod_group_protection::DESCRIPTOR,
    network::endpoint_slice::DESCRIPTOR,
    network::endpoints::DESCRIPTOR,
    network::endpoint_slice_mirroring::DESCRIPTOR,
    network::service_cidr::DESCRIPTOR,
    cluster::policy_status::DESCRIPTOR,
    cluster::storage_version_collector::DESCRIPTOR,
    cluster::storage_version_migrator::DESCRIPTOR,
    cluster::service_account::DESCRIPTOR,
    cluster::root_ca::DESCRIPTOR,
    cluster::trust_bundle::DESCRIPTOR,
    cluster::legacy_tokens::DESCRIPTOR,
    cluster::bootstrap_tokens::signer::DESCRIPTOR,
    cluster::bootstrap_tokens::cleaner::DESCRIPTOR,
];

/// What the controllers get from any process that runs them; the process adds what is its own.
#[must_use]
pub fn environment(process: &Client, settings: Settings) -> Environment {
    Environment { settings: Arc::new(settings), follows_quotas: true, ..Environment::new(process) }
}
