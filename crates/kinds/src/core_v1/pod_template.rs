//! PodTemplate of core/v1: its names, and its rules.

use api_types::core_v1::PodTemplate;

use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::validation::validate_template;
use crate::pod_spec::{disabled, warnings};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::{self, Cell};
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::reflect;
use api_types::core_v1::PodSpec;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<PodTemplate>("podtemplates", "LIXB2x4IFpk=")),
    unconditional_update: true,
    ..ResourceInfo::of::<PodTemplate>()
};

/// The rules of the kind.
pub(crate) struct PodTemplateRules;

impl TypedRules for PodTemplateRules {
    type Object = PodTemplate;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PodTemplate>] = &[
        Cell::NAME,
        Cell::text("Containers", |object, _| table::names(&object.template.spec.containers)),
        Cell::text("Images", |object, _| table::images(&object.template.spec.containers)),
        Cell::text("Pod Labels", |object, _| table::labels(&object.template.metadata.labels)),
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut PodTemplate) {
        crate::pod_spec::defaults::set_defaults(&mut object.template.spec);
    }

    fn prepare_create(cx: &RuleContext, object: &mut PodTemplate) {
        object.metadata.generation = 1;
        disabled::drop_fields(&mut object.template.spec, None, &cx.gates);
    }

    fn validate(cx: &RuleContext, object: &PodTemplate) -> ErrorList {
        validate_template(&Path::new("template"), &object.template, None, &cx.gates)
    }

    fn prepare_update(cx: &RuleContext, _: Endpoint, object: &mut PodTemplate, old: &PodTemplate) {
        disabled::drop_fields(&mut object.template.spec, Some(&old.template.spec), &cx.gates);
        let changed = reflect::differs_in(object, old, "template");
        object.metadata.generation = old.metadata.generation + i64::from(changed);
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &PodTemplate, old: &PodTemplate) -> ErrorList {
        validate_template(&Path::new("template"), &object.template, Some(&old.template), &cx.gates)
    }

    fn warnings(object: &PodTemplate, old: Option<&PodTemplate>) -> Vec<String> {
        let same = old.is_some_and(|old| !reflect::differs_in(object, old, "template"));
        let template = &object.template;
        let texts = || warnings::of(&Path::new("template"), &template.metadata, &template.spec);
        if same { Vec::new() } else { texts() }
    }

    fn pods(object: &PodTemplate) -> Option<(Path, &PodSpec)> {
        Some((Path::new("template").child("spec"), &object.template.spec))
    }
}
