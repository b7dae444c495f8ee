//! The kinds of core/v1.

mod claim_validation;
mod component_status;
mod config_map;
mod endpoints;
mod event;
mod key_pair;
mod limit_range;
mod limit_range_validation;
mod namespace;
mod node;
mod node_annotations;
mod node_validation;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_create;
mod pod_resize;
mod pod_status;
mod pod_table;
mod pod_template;
mod pod_update;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;
mod service_validation;
mod service_warnings;
#[cfg(test)]
mod validation_test;
mod volume_validation;
mod volume_warnings;

use crate::rules::{Rules, Typed};

pub(crate) use volume_validation::inline as inline_volume;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<component_status::ComponentStatusRules>::new(),
    &Typed::<config_map::ConfigMapRules>::new(),
    &Typed::<endpoints::EndpointsRules>::new(),
    &Typed::<event::EventRules>::new(),
    &Typed::<limit_range::LimitRangeRules>::new(),
    &Typed::<namespace::NamespaceRules>::new(),
    &Typed::<node::NodeRules>::new(),
    &Typed::<persistent_volume_claim::PersistentVolumeClaimRules>::new(),
    &Typed::<persistent_volume::PersistentVolumeRules>::new(),
    &Typed::<pod::PodRules>::new(),
    &Typed::<pod_template::PodTemplateRules>::new(),
    &Typed::<replication_controller::ReplicationControllerRules>::new(),
    &Typed::<resource_quota::ResourceQuotaRules>::new(),
    &Typed::<secret::SecretRules>::new(),
    &Typed::<service_account::ServiceAccountRules>::new(),
    &Typed::<service::ServiceRules>::new(),
];
