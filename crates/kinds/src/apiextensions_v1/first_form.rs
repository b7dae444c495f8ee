//! A definition in the form of apiextensions.k8s.io/v1beta1, in which upstream stores it to this day: what all versions
//! have in common is said once, so that a definition that fits etcd's limit there may be too large in the served form
//! (kubernetes/kubernetes#82292).

use std::sync::Arc;

use api_machinery::object::Object;
use api_types::apiextensions_v1::constants::{conversion_strategy_type, resource_scope};
use api_types::apiextensions_v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion, CustomResourceValidation, WebhookConversion,
};
use api_types::apiextensions_v1beta1 as first;

use crate::versions::Former;

/// The form among those that a store may hold.
pub(super) const FORMER: Former =
    Former::own::<first::CustomResourceDefinition>("apiextensions.k8s.io/v1beta1", to_current);

/// A definition as it is stored; nothing comes of objects of other kinds.
pub(super) fn of_definition(object: &dyn Object) -> Option<Box<dyn Object>> {
    let definition: &CustomResourceDefinition = object.downcast_ref()?;
    Some(Box::new(first::CustomResourceDefinition {
        metadata: definition.metadata.clone(),
        spec: of_spec(&definition.spec),
        status: definition.status.clone(),
    }))
}

fn of_spec(spec: &CustomResourceDefinitionSpec) -> first::CustomResourceDefinitionSpec {
    let first_version = spec.versions.first();
    let mut stored = first::CustomResourceDefinitionSpec {
        group: spec.group.clone(),
        version: first_version.map(|version| version.name.clone()).unwrap_or_default(),
        names: spec.names.clone(),
        scope: spec.scope.clone(),
        versions: spec.versions.iter().map(of_version).collect(),
        conversion: spec.conversion.clone().map(of_conversion),
        preserve_unknown_fields: Some(spec.preserve_unknown_fields),
        ..first::CustomResourceDefinitionSpec::default()
    };
    let Some(shared) = first_version else { return stored };
    if spec.versions.iter().all(|version| is_same_schema(version.schema.as_ref(), shared.schema.as_ref())) {
        stored.validation = hoisted(&mut stored.versions, |version| &mut version.schema);
    }
    if spec.versions.iter().all(|version| version.subresources == shared.subresources) {
        stored.subresources = hoisted(&mut stored.versions, |version| &mut version.subresources);
    }
    if spec.versions.iter().all(|version| version.additional_printer_columns == shared.additional_printer_columns) {
        stored.additional_printer_columns =
            hoisted(&mut stored.versions, |version| &mut version.additional_printer_columns);
    }
    if spec.versions.iter().all(|version| version.selectable_fields == shared.selectable_fields) {
        stored.selectable_fields = hoisted(&mut stored.versions, |version| &mut version.selectable_fields);
    }
    stored
}

/// Takes a part out of every version; gives that of the first.
fn hoisted<T: Default>(
    versions: &mut [first::CustomResourceDefinitionVersion],
    part: impl Fn(&mut first::CustomResourceDefinitionVersion) -> &mut T,
) -> T {
    let taken: Vec<T> = versions.iter_mut().map(|version| std::mem::take(part(version))).collect();
    taken.into_iter().next().unwrap_or_default()
}

/// Versions share most of what they have in common, so that little is compared.
fn is_same_schema<'a>(one: Option<&'a CustomResourceValidation>, other: Option<&'a CustomResourceValidation>) -> bool {
    let schema = |of: Option<&'a CustomResourceValidation>| of.and_then(|own| own.open_apiv3_schema.as_ref());
    match (schema(one), schema(other)) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        _ => one == other,
    }
}

fn of_version(version: &CustomResourceDefinitionVersion) -> first::CustomResourceDefinitionVersion {
    first::CustomResourceDefinitionVersion {
        name: version.name.clone(),
        served: version.served,
        storage: version.storage,
        deprecated: version.deprecated,
        deprecation_warning: version.deprecation_warning.clone(),
        schema: version.schema.clone(),
        subresources: version.subresources.clone(),
        additional_printer_columns: version.additional_printer_columns.iter().cloned().map(of_column).collect(),
        selectable_fields: version.selectable_fields.clone(),
    }
}

fn of_column(column: CustomResourceColumnDefinition) -> first::CustomResourceColumnDefinition {
    let CustomResourceColumnDefinition { name, type_, format, description, priority, json_path } = column;
    first::CustomResourceColumnDefinition { name, type_, format, description, priority, json_path }
}

fn of_conversion(conversion: CustomResourceConversion) -> first::CustomResourceConversion {
    let webhook = conversion.webhook.unwrap_or_default();
    first::CustomResourceConversion {
        strategy: conversion.strategy,
        webhook_client_config: webhook.client_config,
        conversion_review_versions: webhook.conversion_review_versions,
    }
}

fn to_current(object: &dyn Object) -> Option<Box<dyn Object>> {
    let stored: first::CustomResourceDefinition = object.downcast_ref().cloned()?;
    Some(Box::new(CustomResourceDefinition {
        metadata: stored.metadata,
        spec: current_spec(stored.spec),
        status: stored.status,
    }))
}

/// The defaults are those of the first form, where they are others than today's.
fn current_spec(mut stored: first::CustomResourceDefinitionSpec) -> CustomResourceDefinitionSpec {
    if stored.versions.is_empty() && !stored.version.is_empty() {
        let only = first::CustomResourceDefinitionVersion {
            name: std::mem::take(&mut stored.version),
            served: true,
            storage: true,
            ..first::CustomResourceDefinitionVersion::default()
        };
        stored.versions.push(only);
    }
    for version in &mut stored.versions {
        spread(stored.validation.as_ref(), &mut version.schema);
        spread(stored.subresources.as_ref(), &mut version.subresources);
        if !stored.additional_printer_columns.is_empty() {
            version.additional_printer_columns.clone_from(&stored.additional_printer_columns);
        }
        if !stored.selectable_fields.is_empty() {
            version.selectable_fields.clone_from(&stored.selectable_fields);
        }
    }
    CustomResourceDefinitionSpec {
        group: stored.group,
        names: stored.names,
        scope: if stored.scope.is_empty() { resource_scope::NAMESPACED.to_owned() } else { stored.scope },
        versions: stored.versions.into_iter().map(current_version).collect(),
        conversion: stored.conversion.map(current_conversion),
        preserve_unknown_fields: stored.preserve_unknown_fields.unwrap_or(true),
    }
}

fn spread<T: Clone>(shared: Option<&T>, own: &mut Option<T>) {
    if let Some(shared) = shared {
        *own = Some(shared.clone());
    }
}

fn current_version(stored: first::CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    CustomResourceDefinitionVersion {
        name: stored.name,
        served: stored.served,
        storage: stored.storage,
        deprecated: stored.deprecated,
        deprecation_warning: stored.deprecation_warning,
        schema: stored.schema,
        subresources: stored.subresources,
        additional_printer_columns: stored.additional_printer_columns.into_iter().map(current_column).collect(),
        selectable_fields: stored.selectable_fields,
    }
}

fn current_column(stored: first::CustomResourceColumnDefinition) -> CustomResourceColumnDefinition {
    let first::CustomResourceColumnDefinition { name, type_, format, description, priority, json_path } = stored;
    CustomResourceColumnDefinition { name, type_, format, description, priority, json_path }
}

fn current_conversion(stored: first::CustomResourceConversion) -> CustomResourceConversion {
    let mut versions = stored.conversion_review_versions;
    if stored.strategy == conversion_strategy_type::WEBHOOK && versions.is_empty() {
        versions.push(first::VERSION.to_owned());
    }
    let is_called = stored.webhook_client_config.is_some() || !versions.is_empty();
    let webhook =
        WebhookConversion { client_config: stored.webhook_client_config, conversion_review_versions: versions };
    CustomResourceConversion { strategy: stored.strategy, webhook: is_called.then_some(webhook) }
}
