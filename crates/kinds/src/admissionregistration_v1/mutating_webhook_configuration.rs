//! MutatingWebhookConfiguration of admissionregistration.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::ErrorList;
use api_types::admissionregistration_v1::{MutatingWebhookConfiguration, Webhook};

use super::webhooks;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::{Cell, count};
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    categories: &["api-extensions"],
    storage: Some(StorageInfo::of::<MutatingWebhookConfiguration>("mutatingwebhookconfigurations", "Sqi0GUgDaX0=")),
    ..ResourceInfo::of::<MutatingWebhookConfiguration>()
};

/// The rules of the kind.
pub(crate) struct MutatingWebhookConfigurationRules;

impl TypedRules for MutatingWebhookConfigurationRules {
    type Object = MutatingWebhookConfiguration;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<MutatingWebhookConfiguration>] =
        &[Cell::NAME, Cell::number("Webhooks", |object, _| count(&object.webhooks).into()), Cell::AGE];
    const FORMER: &'static [Former] = &[Former::same("admissionregistration.k8s.io/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(_: &RuleContext, object: &mut MutatingWebhookConfiguration) {
        object.metadata.generation = 1;
    }

    fn prepare_update(
        _: &RuleContext,
        _: Endpoint,
        object: &mut MutatingWebhookConfiguration,
        old: &MutatingWebhookConfiguration,
    ) {
        object.metadata.generation = old.metadata.generation + i64::from(object.webhooks != old.webhooks);
    }

    fn validate(cx: &RuleContext, object: &MutatingWebhookConfiguration) -> ErrorList {
        let mut errors = super::name_errors(cx, &object.metadata.name);
        errors.extend(webhooks::validate(&views(object), None));
        errors
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &MutatingWebhookConfiguration,
        old: &MutatingWebhookConfiguration,
    ) -> ErrorList {
        webhooks::validate(&views(object), Some(&views(old)))
    }

    fn warnings(object: &MutatingWebhookConfiguration, _: Option<&MutatingWebhookConfiguration>) -> Vec<String> {
        super::name_warnings(&object.metadata.name)
    }
}

fn views(object: &MutatingWebhookConfiguration) -> Vec<Webhook<'_>> {
    object.webhooks.iter().map(Webhook::from).collect()
}
