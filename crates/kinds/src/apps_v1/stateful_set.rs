//! StatefulSet of apps/v1: its names, and its rules.

use api_types::apps_v1::StatefulSet;

use super::stateful_set_validation as validation;
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::pod_spec::defaults::round_up;
use crate::pod_spec::disabled;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, Scale, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::PodSpec;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["sts"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<StatefulSet>("statefulsets", "H+vl74LkKdo=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::SCALE, SubresourceInfo::status("StatefulSet")],
    ..ResourceInfo::of::<StatefulSet>()
};

/// The rules of the kind.
pub(crate) struct StatefulSetRules;

impl TypedRules for StatefulSetRules {
    type Object = StatefulSet;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<StatefulSet>] = &[
        Cell::NAME,
        Cell::text("Ready", |object, _| {
            format!("{}/{}", object.status.ready_replicas, object.spec.replicas.unwrap_or_default()).into()
        }),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.template.spec.containers)),
    ];
    const FORMER: &'static [Former] = &[Former::same("apps/v1beta1"), Former::same("apps/v1beta2")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const GATED: &'static [Gated<StatefulSet>] = &[MAX_UNAVAILABLE];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_label(name, prefix)
    }

    fn set_defaults_first(object: &mut StatefulSet) {
        let strategy = &mut object.spec.update_strategy;
        if strategy.type_.is_empty() {
            strategy.rolling_update.get_or_insert_default();
        }
    }

    fn set_defaults(object: &mut StatefulSet) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        for claim in &mut object.spec.volume_claim_templates {
            let (resources, status) = (&mut claim.spec.resources, &mut claim.status);
            round_up([&mut resources.limits, &mut resources.requests, &mut status.capacity]);
        }
        let strategy = &mut object.spec.update_strategy;
        if let Some(rolling) = strategy.rolling_update.as_mut().filter(|_| strategy.type_ == "RollingUpdate") {
            rolling.partition.get_or_insert(0);
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut StatefulSet) {
        disabled::drop_fields(&mut object.spec.template.spec, None, &cx.gates);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut StatefulSet, old: &StatefulSet) {
        if endpoint != Endpoint::Status {
            disabled::drop_fields(&mut object.spec.template.spec, Some(&old.spec.template.spec), &cx.gates);
        }
    }

    fn validate(cx: &RuleContext, object: &StatefulSet) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_create(&Path::new("spec"), &object.spec, &cx.gates, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &StatefulSet, old: &StatefulSet) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validation::validate_status(&Path::new("status"), &object.status, &old.status, &mut errors);
        } else {
            validation::validate_update(&Path::new("spec"), &object.spec, &old.spec, &cx.gates, &mut errors);
        }
        errors
    }

    fn warnings(object: &StatefulSet, old: Option<&StatefulSet>) -> Vec<String> {
        let keeps_all = object.spec.revision_history_limit.is_some_and(|limit| limit < 0);
        let text =
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
        let mut warnings = crate::workload::template_warnings(
            &Path::new("spec").child("template"),
            &object.metadata,
            old.map(|old| &old.metadata),
            &object.spec.template,
        );
        warnings.extend(keeps_all.then(|| text.to_owned()));
        for (index, claim) in object.spec.volume_claim_templates.iter().enumerate() {
            let at = Path::new("spec").child("volumeClaimTemplates").index(index);
            // Upstream's paths differ, and neither is that of the field.
            let at = if old.is_some() { at.child("Spec") } else { at };
            warnings.extend(crate::claim_spec::warnings(&at, &claim.spec));
        }
        warnings
    }

    fn pods(object: &StatefulSet) -> Option<(Path, &PodSpec)> {
        Some((crate::workload::pods_path(), &object.spec.template.spec))
    }

    fn scale(object: &StatefulSet) -> Option<Scale> {
        let (spec, status) = (&object.spec, &object.status);
        Some(crate::workload::scale(spec.replicas, status.replicas, spec.selector.as_ref()))
    }

    fn set_replicas(object: &mut StatefulSet, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }
}

const MAX_UNAVAILABLE: Gated<StatefulSet> = Gated {
    features: &[gates::STATEFUL_SET_MAX_UNAVAILABLE],
    used: |set| set.spec.update_strategy.rolling_update.as_ref().is_some_and(|own| own.max_unavailable.is_some()),
    drop: |set| {
        if let Some(rolling) = &mut set.spec.update_strategy.rolling_update {
            rolling.max_unavailable = None;
        }
    },
};
