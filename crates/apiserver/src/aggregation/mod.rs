//! Other API servers behind this one: which of them answers for a version of a group is looked up before anything else
//! is, and requests for it are passed on with the identity of whoever sent them (`docs/adr/0021-groups-before-dispatch.md`).
//! Concept: <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>
//!
//! Deliberately not here: what a group is preferred by (`discovery::order`), how connections are opened (`node_proxy`).

mod autoregistration;
mod availability;
pub(crate) mod connections;
mod described;
mod destination;
mod discovered;
mod documents;
pub(crate) mod fetch;
pub(crate) mod identity;
mod known;
mod legacy_resources;
mod metrics;
pub(crate) mod passed_on;
mod poll;
mod queues;
mod registration;
mod service_checks;
mod specs;
pub(crate) mod state;
mod table;
mod transport;

use std::sync::Arc;

use described::{OpenApi2, OpenApi3};
use discovered::Discovery;
use poll::Poller;
use state::Aggregation;

use crate::hooks::{PostStartHook, Ready};
use crate::routes::Routes;

/// Adds the places of other servers, and the work, in the order of upstream's health checks.
pub(crate) fn install(routes: &mut Routes, hooks: &mut Vec<Arc<dyn PostStartHook>>, aggregation: &Arc<Aggregation>) {
    routes.first(Arc::new(passed_on::Elsewhere(Arc::clone(aggregation))));
    if aggregation.shows_certificate {
        hooks.push(Arc::new(Ready("aggregator-reload-proxy-client-cert")));
    }
    hooks.push(Arc::new(Ready("start-kube-aggregator-informers")));
    hooks.push(Arc::new(Ready("apiservice-status-local-available-controller")));
    hooks.push(Arc::new(table::Follow(Arc::clone(&aggregation.table))));
    hooks.push(Arc::new(availability::Controller(Arc::clone(aggregation))));
    hooks.push(Arc::new(Poller::new(aggregation, Arc::new(Discovery))));
    hooks.push(Arc::new(autoregistration::Controller(Arc::clone(aggregation))));
    hooks.push(Arc::new(Poller::new(aggregation, Arc::new(OpenApi2))));
    hooks.push(Arc::new(Poller::new(aggregation, Arc::new(OpenApi3))));
}
