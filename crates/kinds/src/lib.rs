//! The rules of every kind, and the one table of them. A kind is a file here (its names, defaults, validation,
//! strategy, columns and selectable fields, in that order) and a line in its group's list. What rules are is
//! `kinds_frame`'s, what a pod's spec must be is `kinds_pod`'s; groups find both at the root of this crate.
//! Pure: no I/O, no clock.

pub mod admissionregistration_v1;
pub mod apiextensions_v1;
pub mod apiregistration_v1;
mod apiserverinternal_v1alpha1;
mod apps_v1;
mod authentication_v1;
mod authorization_v1;
mod autoscaling_v1;
mod autoscaling_v2;
mod batch_v1;
mod certificates_v1;
mod certificates_v1beta1;
mod coordination_v1;
mod coordination_v1beta1;
mod core_v1;
mod discovery_v1;
mod event_rules;
mod events_v1;
mod flowcontrol_v1;
pub mod gates;
pub mod go_url;
mod networking_v1;
mod node_v1;
mod policy_v1;
mod quota_rules;
mod rbac_v1;
mod replicas;
mod resource_v1;
mod resource_v1alpha3;
mod resource_v1beta1;
pub mod scale;
mod scheduling_v1;
mod scheduling_v1alpha2;
mod storage_v1;
mod storagemigration_v1beta1;
mod webhook_client;
mod workload;

use std::collections::HashMap;
use std::sync::LazyLock;

use api_machinery::object::{Kind, Object};
use groups::Version;
use info::ResourceInfo;
use kinds_frame::{
    address_warnings, conditions, field_rules, gated, go_json, internal_json, label_selector, other_form, signers,
    table,
};
pub use kinds_frame::{addresses, groups, info, lifecycle, metadata, object_name, rules, strategy, versions};
use kinds_pod::{self as pod_spec, claim_spec};
use rules::Rules;
use rustc_hash::FxBuildHasher;

/// Every group version in the order of discovery, each with its kinds.
pub static VERSIONS: &[Version] = &[
    Version::of(20_001, apiregistration_v1::KINDS),
    Version { priority: 1, ..Version::of(18_000, core_v1::KINDS) },
    Version::of(17_800, apps_v1::KINDS),
    Version::of(17_750, events_v1::KINDS),
    Version::of(17_700, authentication_v1::KINDS),
    Version::of(17_600, authorization_v1::KINDS),
    Version { priority: 30, ..Version::of(17_500, autoscaling_v2::KINDS) },
    Version::of(17_500, autoscaling_v1::KINDS),
    Version::of(17_400, batch_v1::KINDS),
    Version::of(17_300, certificates_v1::KINDS),
    Version { priority: 9, ..Version::of(17_300, certificates_v1beta1::KINDS) },
    Version { priority: 1, ..Version::of(17_300, certificates_v1beta1::V1ALPHA1) },
    Version::of(17_200, networking_v1::KINDS),
    Version { priority: 9, ..Version::of(17_200, networking_v1::V1BETA1) },
    Version::of(17_100, policy_v1::KINDS),
    Version::of(17_000, rbac_v1::KINDS),
    Version::of(16_800, storage_v1::KINDS),
    Version { priority: 9, ..Version::of(16_800, storage_v1::V1BETA1) },
    // Before the versions that share its objects.
    Version { priority: 12, ..Version::of(16_700, admissionregistration_v1::V1BETA1) },
    Version::of(16_700, admissionregistration_v1::KINDS),
    Version { priority: 9, ..Version::of(16_700, admissionregistration_v1::V1ALPHA1) },
    Version::of(16_700, apiextensions_v1::KINDS),
    Version::of(16_600, scheduling_v1::KINDS),
    Version { priority: 2, ..Version::of(16_600, scheduling_v1alpha2::KINDS) },
    Version::of(16_500, coordination_v1::KINDS),
    Version { priority: 13, ..Version::of(16_500, coordination_v1beta1::KINDS) },
    Version { priority: 12, ..Version::of(16_500, coordination_v1beta1::V1ALPHA2) },
    Version::of(16_300, node_v1::KINDS),
    Version::of(16_200, discovery_v1::KINDS),
    Version { priority: 21, ..Version::of(16_200, resource_v1::KINDS) },
    Version::of(16_200, resource_v1::V1BETA2),
    Version { priority: 9, ..Version::of(16_200, resource_v1beta1::KINDS) },
    Version { priority: 1, ..Version::of(16_200, resource_v1alpha3::KINDS) },
    Version { priority: 21, ..Version::of(16_100, flowcontrol_v1::KINDS) },
    Version { priority: 9, ..Version::of(16_000, apiserverinternal_v1alpha1::KINDS) },
    Version { priority: 9, ..Version::of(15_800, storagemigration_v1beta1::KINDS) },
];

/// Every kind.
pub fn all() -> impl Iterator<Item = &'static dyn Rules> {
    VERSIONS.iter().flat_map(|version| version.kinds.iter().copied())
}

/// The kind behind a group, version and plural name.
#[must_use]
pub fn find(group: &str, version: &str, resource: &str) -> Option<&'static dyn Rules> {
    type ByName = HashMap<[&'static str; 3], &'static dyn Rules, FxBuildHasher>;
    /// Every request asks several times.
    static BY_NAME: LazyLock<ByName> = LazyLock::new(|| {
        let named =
            |rules: &'static dyn Rules| ([rules.info().group, rules.info().version, rules.info().resource], rules);
        all().map(named).collect()
    });
    let by_name: &HashMap<[&str; 3], _, _> = &BY_NAME;
    by_name.get(&[group, version, resource]).copied()
}

/// The version of a kind that objects name by `apiVersion`, among those that are stored as `hub`; nothing for the hub itself.
#[must_use]
pub fn other_version(hub: &ResourceInfo<'_>, api_version: &str) -> Option<&'static dyn Rules> {
    all().find(|rules| {
        let info = rules.info();
        let shares = info.storage.is_some_and(|own| (own.group, own.version) == (hub.group, hub.version));
        shares && info.resource == hub.resource && rules.conversion().is_some() && info.api_version() == api_version
    })
}

/// Sets the defaults of an object, for those who compare what an older release wrote with what the API server hands out
/// now.
pub fn set_defaults<T: Kind + Object>(object: &mut T) {
    if let Some(rules) = find(T::TYPE.group, T::TYPE.version, T::TYPE.resource) {
        rules.set_defaults(object);
    }
}
