//! NetworkPolicy of networking.k8s.io/v1: its names, and its rules.

use api_types::networking_v1::NetworkPolicy;

use super::network_policy_validation as validation;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["netpol"],
    storage: Some(StorageInfo::of::<NetworkPolicy>("networkpolicies", "YpfwF18m1G8=")),
    unconditional_update: true,
    ..ResourceInfo::of::<NetworkPolicy>()
};

/// The rules of the kind.
pub(crate) struct NetworkPolicyRules;

impl TypedRules for NetworkPolicyRules {
    type Object = NetworkPolicy;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<NetworkPolicy>] = &[
        Cell::NAME,
        Cell::text("Pod-Selector", |object, _| table::selector(Some(&object.spec.pod_selector), "<error>")),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("extensions/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut NetworkPolicy) {
        let spec = &mut object.spec;
        if spec.policy_types.is_empty() {
            spec.policy_types.push("Ingress".into());
            if !spec.egress.is_empty() {
                spec.policy_types.push("Egress".into());
            }
        }
    }

    fn validate(cx: &RuleContext, object: &NetworkPolicy) -> ErrorList {
        validation::validate(&object.spec, None, &cx.gates)
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &NetworkPolicy, old: &NetworkPolicy) -> ErrorList {
        validation::validate(&object.spec, Some(&old.spec), &cx.gates)
    }

    fn warnings(object: &NetworkPolicy, _: Option<&NetworkPolicy>) -> Vec<String> {
        validation::warnings(&object.spec)
    }
}
