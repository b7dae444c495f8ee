//! ResourceClaimTemplate of resource.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::reflect::equal;
use api_types::resource_v1::ResourceClaimTemplate;
use feature_gates::MinorVersion;

use super::resource_claim::set_counts;
use super::selector::Reading;
use super::{admin_access, claim_fields, claim_validation};
use crate::gated::Gated;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::validation::validate_template_metadata;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::Cell;
use crate::{field_rules as rules, internal_json};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ResourceClaimTemplate>("resourceclaimtemplates", "TuzjC49aUfM=")),
    unconditional_update: true,
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<ResourceClaimTemplate>()
};

/// The rules of the kind.
pub(crate) struct ResourceClaimTemplateRules;

impl TypedRules for ResourceClaimTemplateRules {
    type Object = ResourceClaimTemplate;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ResourceClaimTemplate>] = &[Cell::NAME, Cell::AGE];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const GATED: &'static [Gated<ResourceClaimTemplate>] = claim_fields::OF_TEMPLATE;

    fn set_defaults(object: &mut ResourceClaimTemplate) {
        set_counts(&mut object.spec.spec);
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &ResourceClaimTemplate) -> ErrorList {
        let mut errors = ErrorList::new();
        admin_access::validate(cx, &object.spec.spec, &mut errors);
        validate_spec(cx, object, &mut errors);
        errors
    }

    fn reads_namespace(object: &ResourceClaimTemplate) -> bool {
        admin_access::is_asked(&object.spec.spec)
    }

    fn validate_update(
        cx: &RuleContext,
        _: Endpoint,
        object: &ResourceClaimTemplate,
        old: &ResourceClaimTemplate,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(cx, object, &mut errors);
        if !equal(&object.spec, &old.spec) {
            errors.push(Path::new("spec").invalid(internal_json::bad_value(&object.spec), rules::IMMUTABLE));
        }
        errors
    }
}

fn validate_spec(cx: &RuleContext, object: &ResourceClaimTemplate, errors: &mut ErrorList) {
    let path = Path::new("spec");
    validate_template_metadata(&path.child("metadata"), &object.spec.metadata, errors);
    let reading = Reading { stored: false, gates: &cx.gates };
    claim_validation::validate(&path.child("spec"), &object.spec.spec, reading, errors);
}
