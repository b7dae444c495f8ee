//! ReplicaSet of apps/v1: its names, and its rules.

use api_types::apps_v1::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};

use crate::field_rules;
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::pod_spec::disabled;
use crate::replicas::{self, Counts};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, Scale, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use crate::workload;
use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::PodSpec;
use feature_gates::Gates;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["rs"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<ReplicaSet>("replicasets", "P1RzHs8/mWQ=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::SCALE, SubresourceInfo::status("ReplicaSet")],
    ..ResourceInfo::of::<ReplicaSet>()
};

/// The rules of the kind.
pub(crate) struct ReplicaSetRules;

impl TypedRules for ReplicaSetRules {
    type Object = ReplicaSet;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ReplicaSet>] = &[
        Cell::NAME,
        Cell::number("Desired", |object, _| object.spec.replicas.unwrap_or_default().into()),
        Cell::number("Current", |object, _| object.status.replicas.into()),
        Cell::number("Ready", |object, _| object.status.ready_replicas.into()),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.template.spec.containers)),
        Cell::wide("Selector", |object, _| table::selector(object.spec.selector.as_ref(), "<error>")),
    ];
    const FORMER: &'static [Former] = &[Former::same("apps/v1beta2"), Former::same("extensions/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const GATED: &'static [Gated<ReplicaSet>] = &[Gated {
        features: &[gates::TERMINATING_REPLICAS],
        used: |own| own.status.terminating_replicas.is_some(),
        drop: |own| own.status.terminating_replicas = None,
    }];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut ReplicaSet) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
    }

    fn prepare_create(cx: &RuleContext, object: &mut ReplicaSet) {
        disabled::drop_fields(&mut object.spec.template.spec, None, &cx.gates);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut ReplicaSet, old: &ReplicaSet) {
        if endpoint != Endpoint::Status {
            disabled::drop_fields(&mut object.spec.template.spec, Some(&old.spec.template.spec), &cx.gates);
        }
    }

    fn validate(cx: &RuleContext, object: &ReplicaSet) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, None, &cx.gates, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &ReplicaSet, old: &ReplicaSet) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            replicas::validate(&Path::new("status"), &counts(&object.status), &mut errors);
            return errors;
        }
        validate_spec(&Path::new("spec"), &object.spec, Some(&old.spec), &cx.gates, &mut errors);
        workload::selector_stays(object.spec.selector.as_ref(), old.spec.selector.as_ref(), &mut errors);
        errors
    }

    fn warnings(object: &ReplicaSet, old: Option<&ReplicaSet>) -> Vec<String> {
        workload::warnings(&object.metadata, old.map(|old| &old.metadata), &object.spec.template)
    }

    fn pods(object: &ReplicaSet) -> Option<(Path, &PodSpec)> {
        Some((workload::pods_path(), &object.spec.template.spec))
    }

    fn scale(object: &ReplicaSet) -> Option<Scale> {
        let (spec, status) = (&object.spec, &object.status);
        Some(crate::workload::scale(spec.replicas, status.replicas, spec.selector.as_ref()))
    }

    fn set_replicas(object: &mut ReplicaSet, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }
}

fn validate_spec(
    path: &Path,
    spec: &ReplicaSetSpec,
    old: Option<&ReplicaSetSpec>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    field_rules::not_negative(&path.child("replicas"), spec.replicas.unwrap_or(0).into(), errors);
    field_rules::not_negative(&path.child("minReadySeconds"), spec.min_ready_seconds.into(), errors);
    let stored = old.map(|old| &old.template);
    workload::validate_replicated(path, spec.selector.as_ref(), (&spec.template, stored), gates, errors);
}

fn counts(status: &ReplicaSetStatus) -> Counts {
    Counts {
        all: status.replicas,
        fully_labeled: status.fully_labeled_replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        terminating: status.terminating_replicas,
        observed_generation: status.observed_generation,
    }
}
