//! Workload of scheduling.k8s.io/v1alpha2: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_types::scheduling_v1alpha2::{PodGroupTemplate, Workload};
use feature_gates::MinorVersion;

use super::group_validation::{Group, unique};
use crate::gated::Gated;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;
use crate::{field_rules as rules, gates};

const TEMPLATES_MAX: usize = 8;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<Workload>("workloads", "vSX7gJe5Mx8=")),
    unconditional_update: true,
    introduced: MinorVersion::one(36),
    gates: &[gates::GENERIC_WORKLOAD],
    ..ResourceInfo::of::<Workload>()
};

/// The rules of the kind.
pub(crate) struct WorkloadRules;

fn any(workload: &Workload, used: fn(&PodGroupTemplate) -> bool) -> bool {
    workload.spec.pod_group_templates.iter().any(used)
}

fn each(workload: &mut Workload, change: fn(&mut PodGroupTemplate)) {
    workload.spec.pod_group_templates.iter_mut().for_each(change);
}

impl TypedRules for WorkloadRules {
    type Object = Workload;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Workload>] = &[Cell::NAME, Cell::AGE];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const GATED: &'static [Gated<Workload>] = &[
        Gated {
            features: &[gates::TOPOLOGY_AWARE_GROUPS],
            used: |workload| any(workload, |template| template.scheduling_constraints.is_some()),
            drop: |workload| each(workload, |template| template.scheduling_constraints = None),
        },
        Gated {
            features: &[gates::GROUP_CLAIMS],
            used: |workload| any(workload, |template| !template.resource_claims.is_empty()),
            drop: |workload| each(workload, |template| template.resource_claims.clear()),
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |workload| any(workload, |template| template.disruption_mode.is_some()),
            drop: |workload| each(workload, |template| template.disruption_mode = None),
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |workload| any(workload, |template| !template.priority_class_name.is_empty()),
            drop: |workload| each(workload, |template| template.priority_class_name.clear()),
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |workload| any(workload, |template| template.priority.is_some()),
            drop: |workload| each(workload, |template| template.priority = None),
        },
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &Workload) -> ErrorList {
        let (mut errors, path, spec) = (ErrorList::new(), Path::new("spec"), &object.spec);
        if let Some(controller) = &spec.controller_ref {
            let at = path.child("controllerRef");
            let group = at.child("apiGroup");
            rules::named_if_set(&group, &controller.api_group, names::long_name, &mut errors);
            rules::named(&at.child("kind"), &controller.kind, names::path_segment_name, &mut errors);
            rules::named(&at.child("name"), &controller.name, names::path_segment_name, &mut errors);
        }
        let (at, templates) = (path.child("podGroupTemplates"), &spec.pod_group_templates);
        if templates.is_empty() {
            errors.push(at.required(""));
        } else if templates.len() > TEMPLATES_MAX {
            errors.push(at.too_many(templates.len(), TEMPLATES_MAX));
        } else {
            unique(&at, templates.iter().map(|template| template.name.as_str()), &mut errors);
            for (index, template) in templates.iter().enumerate() {
                let at = at.index(index);
                rules::named(&at.child("name"), &template.name, names::dns1123_label, &mut errors);
                Group::from(template).validate(&at, &cx.gates, false, &mut errors);
            }
        }
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &Workload, old: &Workload) -> ErrorList {
        let (mut errors, path) = (ErrorList::new(), Path::new("spec"));
        if !equal(&object.spec.controller_ref, &old.spec.controller_ref) {
            errors.push(path.child("controllerRef").invalid(BadValue::null(), rules::IMMUTABLE));
        }
        if !equal(&object.spec.pod_group_templates, &old.spec.pod_group_templates) {
            errors.push(path.child("podGroupTemplates").invalid(BadValue::null(), rules::IMMUTABLE));
        }
        errors
    }
}
