//! CustomResourceDefinition of apiextensions.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::ErrorList;
use api_machinery::value::{Value, struct_to_map};
use api_types::apiextensions_v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};

use super::{definition_schema, definition_validation as validation, first_form};
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{Lifecycle, Written};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::versions::Former;

const HTTPS: i32 = 443;

/// The finalizer that holds a definition until its objects are gone. It is there from the moment of deletion.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    storage: Some(StorageInfo {
        version: "v1beta1",
        ..StorageInfo::of::<CustomResourceDefinition>("apiextensions.k8s.io/customresourcedefinitions", "jfWCUB31mvA=")
    }),
    subresources: &[SubresourceInfo::status("CustomResourceDefinition")],
    ..ResourceInfo::of::<CustomResourceDefinition>()
};

/// The rules of the kind.
pub(crate) struct CustomResourceDefinitionRules;

impl TypedRules for CustomResourceDefinitionRules {
    type Object = CustomResourceDefinition;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    /// A definition must not go before its objects.
    const LIFECYCLE: Lifecycle = Lifecycle {
        finalizer: Some(super::FINALIZER),
        qualified_finalizers: false,
        written: Written::JsonIn(first_form::of_definition),
        ..Lifecycle::DEFAULT
    };
    const FORMER: &'static [Former] = &[first_form::FORMER];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const GATED: &'static [Gated<CustomResourceDefinition>] = &[Gated {
        features: &[gates::DEFINITION_GENERATIONS],
        used: |own| {
            own.status.observed_generation != 0 || own.status.conditions.iter().any(|own| own.observed_generation != 0)
        },
        drop: |own| {
            own.status.observed_generation = 0;
            own.status.conditions.iter_mut().for_each(|own| own.observed_generation = 0);
        },
    }];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut CustomResourceDefinition) {
        let names = &mut object.spec.names;
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let conversion = object.spec.conversion.get_or_insert_with(CustomResourceConversion::default);
        if conversion.strategy.is_empty() {
            conversion.strategy = "None".to_owned();
        }
        let config = conversion.webhook.as_mut().and_then(|webhook| webhook.client_config.as_mut());
        if let Some(service) = config.and_then(|config| config.service.as_mut()) {
            service.port.get_or_insert(HTTPS);
        }
        if object.status.stored_versions.is_empty() {
            note_stored_version(object);
        }
    }

    fn prepare_create(_: &RuleContext, object: &mut CustomResourceDefinition) {
        note_stored_version(object);
    }

    fn prepare_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &mut CustomResourceDefinition,
        _: &CustomResourceDefinition,
    ) {
        if endpoint != Endpoint::Status {
            note_stored_version(object);
        }
    }

    fn validate(_: &RuleContext, object: &CustomResourceDefinition) -> ErrorList {
        validation::validate(object)
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &CustomResourceDefinition,
        old: &CustomResourceDefinition,
    ) -> ErrorList {
        match endpoint {
            Endpoint::Status => validation::validate_status(object),
            Endpoint::Main | Endpoint::Other(_) => validation::validate_update(object, old),
        }
    }

    fn warnings(object: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> Vec<String> {
        definition_schema::warnings(object, old)
    }
}

/// The schema of a version as JSON; an empty one where it has none.
#[must_use]
pub fn schema_of(version: &CustomResourceDefinitionVersion) -> Value {
    schema_value(version.schema.as_ref().and_then(|schema| schema.open_apiv3_schema.as_deref()))
}

/// A schema as a value; where there is none, that of any object.
#[must_use]
pub fn schema_value(schema: Option<&JSONSchemaProps>) -> Value {
    schema.map_or_else(|| serde_json::json!({"type": "object"}), |schema| Value::Object(struct_to_map(schema)))
}

/// Objects may be stored in the storage version from now on.
fn note_stored_version(definition: &mut CustomResourceDefinition) {
    let stored = definition.spec.versions.iter().find(|version| version.storage).map(|version| version.name.clone());
    let known = &mut definition.status.stored_versions;
    known.extend(stored.filter(|stored| !known.contains(stored)));
}
