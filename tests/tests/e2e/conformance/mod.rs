//! What the conformance suite demands of containers, shown on the live cluster with small images: a table of checks per
//! area, each naming the items of the suite that it shows. The checks run side by side, a namespace per area.
//!
//! Where the suite's definition is at hand, the names are looked up there and the number of shown items is printed.
//! `COXSWAIN_E2E_CHECKS=TEXT` runs only the checks whose names contain one of the texts, separated by commas.

mod check;
mod definition;
mod live;
mod object;
mod rows;

mod beyond;
mod budgets;
mod cli;
mod containers;
mod daemon_sets;
mod deployments;
mod dns;
mod empty_dir;
mod endpoints;
mod environment;
mod ephemeral;
mod hosts;
mod init;
mod jobs;
mod lifecycle;
mod namespaces;
mod networking;
mod pods;
mod probes;
mod proxying;
mod replica_sets;
mod resize;
mod scheduling;
mod security;
mod service_accounts;
mod services;
mod socket;
mod stateful_sets;
mod sub_paths;
mod taints;
mod volume_updates;
mod volumes;
mod websockets;
mod workloads;

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::cluster::Cluster;
use check::{Check, Outcome};
use live::Place;

/// Checks that run at once: more would only wait for the processors.
const AT_ONCE: usize = 12;

/// Every area with its namespace.
fn areas() -> Vec<(&'static str, Vec<Check>)> {
    vec![
        // The slowest first.
        ("conformance-stateful", stateful_sets::checks()),
        ("conformance-updates", volume_updates::checks()),
        ("conformance-containers", containers::checks()),
        ("conformance-probes", probes::checks()),
        ("conformance-volumes", volumes::checks()),
        ("conformance-empty-dir", empty_dir::checks()),
        ("conformance-environment", environment::checks()),
        ("conformance-security", security::checks()),
        ("conformance-lifecycle", lifecycle::checks()),
        ("conformance-init", init::checks()),
        ("conformance-pods", pods::checks()),
        ("conformance-hosts", hosts::checks()),
        ("conformance-ephemeral", ephemeral::checks()),
        ("conformance-resize", resize::checks()),
        ("conformance-sub-paths", sub_paths::checks()),
        ("conformance-network", networking::checks()),
        ("conformance-services", services::checks()),
        ("conformance-endpoints", endpoints::checks()),
        ("conformance-dns", dns::checks()),
        ("conformance-proxy", proxying::checks()),
        ("conformance-accounts", service_accounts::checks()),
        ("conformance-cli", cli::checks()),
        ("conformance-deployments", deployments::checks()),
        ("conformance-replicas", replica_sets::checks()),
        ("conformance-daemons", daemon_sets::checks()),
        ("conformance-jobs", jobs::checks()),
        ("conformance-budgets", budgets::checks()),
        ("conformance-scheduling", scheduling::checks()),
        ("conformance-namespaces", namespaces::checks()),
        ("conformance-websockets", websockets::checks()),
        ("conformance-beyond", beyond::checks()),
    ]
}

pub(crate) async fn story(cluster: Cluster) {
    run(cluster, areas()).await;
}

/// What ends others' pods.
pub(crate) async fn serial_story(cluster: Cluster) {
    run(cluster, vec![("conformance-taints", taints::checks())]).await;
}

async fn run(cluster: Cluster, areas: Vec<(&'static str, Vec<Check>)>) {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let areas = areas.into_iter().filter_map(|(name, mut checks)| {
        checks.retain(check::wanted);
        (!checks.is_empty()).then_some((name, checks))
    });
    let told = join_all(areas.map(|(namespace, checks)| area(&cluster, namespace, checks, &gate))).await;
    let outcomes: Vec<Outcome> = told.into_iter().flatten().collect();
    let wrong = definition::report(&outcomes);
    assert_eq!(wrong, 0, "checks failed");
}

/// Runs the checks of one area in its namespace.
async fn area(cluster: &Cluster, namespace: &str, checks: Vec<Check>, gate: &Arc<Semaphore>) -> Vec<Outcome> {
    let place = Place::make(cluster, namespace).await;
    let outcomes = join_all(checks.into_iter().map(|check| check.run(place.clone(), Arc::clone(gate)))).await;
    place.remove().await;
    outcomes
}
