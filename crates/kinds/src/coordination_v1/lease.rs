//! Lease of coordination.k8s.io/v1: its names, and its rules.

use api_types::coordination_v1::Lease;
use api_types::coordination_v1::constants::coordinated_lease_strategy::OLDEST_EMULATION_VERSION;

use crate::field_rules;
use crate::gates::COORDINATED_ELECTION;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::{BadValue, Path};
use api_machinery::names;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<Lease>("leases", "gqkMMb/YqFM=")),
    create_on_update: true,
    ..ResourceInfo::of::<Lease>()
};

/// The rules of the kind.
pub(crate) struct LeaseRules;

impl TypedRules for LeaseRules {
    type Object = Lease;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Lease>] = &[
        Cell::NAME,
        Cell::text("Holder", |object, _| object.spec.holder_identity.clone().unwrap_or_default().into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("coordination.k8s.io/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(cx: &RuleContext, object: &mut Lease) {
        if cx.gates.enabled(COORDINATED_ELECTION) {
            return;
        }
        object.spec.strategy = None;
        object.spec.preferred_holder = None;
    }

    fn prepare_update(cx: &RuleContext, _: Endpoint, object: &mut Lease, old: &Lease) {
        if cx.gates.enabled(COORDINATED_ELECTION) {
            return;
        }
        if old.spec.strategy.is_none() {
            object.spec.strategy = None;
        }
        if old.spec.preferred_holder.is_none() {
            object.spec.preferred_holder = None;
        }
    }

    fn validate(_: &RuleContext, object: &Lease) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("spec");
        if let Some(seconds) = object.spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
            errors.push(path.child("leaseDurationSeconds").invalid(seconds, "must be greater than 0"));
        }
        let transitions = object.spec.lease_transitions.unwrap_or(0);
        field_rules::not_negative(&path.child("leaseTransitions"), transitions.into(), &mut errors);
        let strategy = object.spec.strategy.as_deref();
        if let Some(strategy) = strategy {
            validate_strategy(&path, strategy, &mut errors);
        }
        let preferred = object.spec.preferred_holder.as_ref().is_some_and(|holder| !holder.is_empty());
        if preferred && strategy.unwrap_or_default().is_empty() {
            let detail = "may only be specified if `strategy` is defined";
            errors.push(path.child("preferredHolder").forbidden(detail));
        }
        errors
    }
}

/// Checks how an election is to decide: as Kubernetes knows it, or by a qualified name. Leases and candidates say it.
pub(crate) fn validate_strategy(spec: &Path, strategy: &str, errors: &mut ErrorList) {
    // Upstream doubles the path, too.
    let path = spec.child("strategy").child("strategy");
    if strategy.contains('/') {
        let problems = names::qualified_name(strategy).into_iter();
        errors.extend(problems.map(|problem| path.invalid(BadValue::named(strategy), problem)));
    } else {
        field_rules::one_of(&path, strategy, &[OLDEST_EMULATION_VERSION], errors);
    }
}
