//! What the server sees to once it serves: the objects that every cluster has.

mod authentication_info;
mod ca_union;
mod endpoints;
mod error;
mod identity_lease;
mod kubernetes_service;
mod legacy_tokens;
mod master_leases;
mod namespaces;
mod priority_classes;
mod retry;
mod roles;
mod service_cidr;
mod service_repair;

use std::sync::Arc;

use component_base::Gates;

use crate::gates::API_SERVER_IDENTITY;
use crate::hooks::PostStartHook;

pub(crate) use identity_lease::has_ended;
pub(crate) use kubernetes_service::is_ready;
pub(crate) use master_leases::{MasterLeases, at};

/// Adds the hooks, in the order of upstream's health checks.
pub(crate) fn install(hooks: &mut Vec<Arc<dyn PostStartHook>>, gates: &Gates) {
    hooks.push(Arc::new(namespaces::SystemNamespaces));
    hooks.push(Arc::new(authentication_info::AuthenticationInfo));
    if gates.enabled(API_SERVER_IDENTITY) {
        hooks.push(Arc::new(identity_lease::IdentityLease));
        hooks.push(Arc::new(identity_lease::LeaseCollector));
    }
    hooks.push(Arc::new(legacy_tokens::LegacyTokenTracking));
    hooks.push(Arc::new(service_repair::ServiceRepair));
    hooks.push(Arc::new(roles::BootstrapRoles));
    hooks.push(Arc::new(priority_classes::SystemPriorityClasses));
    hooks.push(Arc::new(kubernetes_service::BootstrapController));
    hooks.push(Arc::new(service_cidr::DefaultServiceCidr));
}
