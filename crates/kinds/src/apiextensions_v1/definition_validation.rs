//! What a definition may declare, in upstream's order.
//!
//! Upstream looks at an internal form, in which what all versions declare alike stands once, at the top of the spec: the
//! paths of errors are those of that form.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::apiextensions_v1::constants::resource_scope;
use api_types::apiextensions_v1::{
    CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
};
use schema::Structural;

use super::approval::{APPROVED, Approval};
use super::definition_schema::{self, Former, Look};
use super::{definition_conversion, definition_names as names, definition_parts as parts};
use crate::field_rules::{self as rules, IMMUTABLE};
use crate::internal_json;

const NO_SCHEMA: &str = "may only be set when validations.schema is included";
const NO_SCHEMA_OF_VERSION: &str = "may only be set when `version.schema.openAPIV3Schema` is not included";

/// What all versions declare alike.
struct Alike {
    schema: bool,
    subresources: bool,
    columns: bool,
    fields: bool,
}

impl Alike {
    fn of(versions: &[CustomResourceDefinitionVersion]) -> Self {
        type Version = CustomResourceDefinitionVersion;
        let all = |same: fn(&Version, &Version) -> bool| {
            versions.first().is_none_or(|first| versions.iter().all(|other| same(first, other)))
        };
        Self {
            schema: all(|one, other| one.schema == other.schema),
            subresources: all(|one, other| one.subresources == other.subresources),
            columns: all(|one, other| one.additional_printer_columns == other.additional_printer_columns),
            fields: all(|one, other| one.selectable_fields == other.selectable_fields),
        }
    }

    /// Versions without what stands at the top, as errors print them.
    fn rest(&self, versions: &[CustomResourceDefinitionVersion]) -> Vec<CustomResourceDefinitionVersion> {
        let mut versions = versions.to_vec();
        for version in &mut versions {
            version.schema.take_if(|_| self.schema);
            version.subresources.take_if(|_| self.subresources);
            if self.columns {
                version.additional_printer_columns.clear();
            }
            if self.fields {
                version.selectable_fields.clear();
            }
        }
        versions
    }
}

fn has_status(version: &CustomResourceDefinitionVersion) -> bool {
    version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some())
}

fn has_schema(version: &CustomResourceDefinitionVersion) -> bool {
    version.schema.as_ref().is_some_and(|schema| schema.open_apiv3_schema.is_some())
}

/// Checks a definition that is to be created.
pub(super) fn validate(definition: &CustomResourceDefinition) -> ErrorList {
    let mut errors = ErrorList::new();
    let wanted = format!("{}.{}", definition.spec.names.plural, definition.spec.group);
    let meta = &definition.metadata;
    for (field, value) in [("generateName", &meta.generate_name), ("name", &meta.name)] {
        if !value.is_empty() && *value != wanted {
            let path = Path::new("metadata").child(field);
            errors.push(path.invalid(value, "must be spec.names.plural+\".\"+spec.group"));
        }
    }
    check_spec(&definition.spec, None, &mut errors);
    check_rest(definition, None, &mut errors);
    errors
}

/// Checks a definition that is to replace `old`.
pub(super) fn validate_update(definition: &CustomResourceDefinition, old: &CustomResourceDefinition) -> ErrorList {
    let mut errors = ErrorList::new();
    check_spec(&definition.spec, Some(old), &mut errors);
    check_immutable(definition, old, &mut errors);
    check_rest(definition, Some(old), &mut errors);
    errors
}

/// Checks the status that is to replace the stored one.
pub(super) fn validate_status(definition: &CustomResourceDefinition) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = Path::new("status").child("acceptedNames");
    names::check(&definition.status.accepted_names, &at, &mut errors);
    errors
}

fn check_spec(
    spec: &CustomResourceDefinitionSpec,
    definition: Option<&CustomResourceDefinition>,
    errors: &mut ErrorList,
) {
    let old = definition.map(|definition| &definition.spec);
    let at = Path::new("spec");
    names::check_group(&spec.group, &at.child("group"), errors);
    rules::choice(&at.child("scope"), &spec.scope, resource_scope::ALL, errors);
    check_schemas_present(spec, old, &at.child("versions"), errors);
    if spec.preserve_unknown_fields && spec.versions.iter().any(definition_schema::has_defaults) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(at.child("preserveUnknownFields").invalid(true, detail));
    }
    let alike = Alike::of(&spec.versions);
    let before = Before::of(old);
    check_versions(&spec.versions, &alike, &before, &at.child("versions"), errors);
    names::check_present(&spec.names, &at.child("names"), errors);
    names::check(&spec.names, &at.child("names"), errors);
    if let Some(first) = spec.versions.first() {
        let look = Look {
            has_status: spec.versions.iter().any(has_status),
            former: &before.former,
            is_unchanged: spec.versions.iter().all(|version| before.has_schema_of(version)),
        };
        let chosen = Chosen { parts: &alike, holder: "validation", no_schema: NO_SCHEMA, look, before: &before };
        check_parts(first, &chosen, &at, errors);
    }
    definition_conversion::check(spec, definition, &at.child("conversion"), errors);
}

/// Every version has a schema; of definitions that had none before, only those that are served.
fn check_schemas_present(
    spec: &CustomResourceDefinitionSpec,
    old: Option<&CustomResourceDefinitionSpec>,
    at: &Path,
    errors: &mut ErrorList,
) {
    let always = old.is_none_or(|old| old.versions.iter().all(has_schema));
    let missing = spec.versions.iter().enumerate().filter(|(_, version)| !has_schema(version));
    for (index, version) in missing {
        let at = at.index(index).child("schema").child("openAPIV3Schema");
        if always {
            errors.push(at.required(""));
        } else if version.served && !spec.preserve_unknown_fields {
            errors.push(at.required("because otherwise all fields are pruned"));
        }
    }
}

/// The definition that is to be replaced, where there is one.
struct Before<'b> {
    versions: &'b [CustomResourceDefinitionVersion],
    former: Former,
}

impl<'b> Before<'b> {
    fn of(old: Option<&'b CustomResourceDefinitionSpec>) -> Self {
        let versions = old.map_or(&[][..], |old| &old.versions);
        Self { versions, former: Former::of(versions) }
    }

    fn version(&self, name: &str) -> Option<&'b CustomResourceDefinitionVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    fn has_schema_of(&self, version: &CustomResourceDefinitionVersion) -> bool {
        self.version(&version.name).is_some_and(|former| former.schema == version.schema)
    }
}

fn check_versions(
    versions: &[CustomResourceDefinitionVersion],
    alike: &Alike,
    before: &Before<'_>,
    at: &Path,
    errors: &mut ErrorList,
) {
    let own = Alike {
        schema: !alike.schema,
        subresources: !alike.subresources,
        columns: !alike.columns,
        fields: !alike.fields,
    };
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        let problems = api_machinery::names::dns1035_label(&version.name);
        if !problems.is_empty() {
            errors.push(at.child("name").invalid(&version.name, problems.join(",")));
        }
        parts::check_deprecation(version, &at, errors);
        let (has_status, is_unchanged) = (has_status(version), before.has_schema_of(version));
        let look = Look { has_status, former: &before.former, is_unchanged };
        check_parts(
            version,
            &Chosen { parts: &own, holder: "schema", no_schema: NO_SCHEMA_OF_VERSION, look, before },
            &at,
            errors,
        );
    }
    let shown = || {
        let texts: Vec<String> = alike.rest(versions).iter().map(|one| internal_json::compact(one)).collect();
        if texts.is_empty() { BadValue::null() } else { BadValue::json(format!("[{}]", texts.join(","))) }
    };
    let names: BTreeSet<&str> = versions.iter().map(|version| version.name.as_str()).collect();
    if names.len() != versions.len() {
        errors.push(at.invalid(shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        errors.push(at.invalid(shown(), "must have exactly one version marked as storage version"));
    }
    // The internal form has the first version at the top as well, where it may be empty.
    if let Some(first) = versions.first().filter(|first| !first.name.is_empty()) {
        let problems = api_machinery::names::dns1035_label(&first.name);
        if !problems.is_empty() {
            errors.push(Path::new("spec").child("version").invalid(&first.name, problems.join(",")));
        }
    }
}

/// Which parts of a version are looked at, and how.
struct Chosen<'c> {
    parts: &'c Alike,
    /// The member that holds the schema.
    holder: &'static str,
    /// What is told of fields without a schema.
    no_schema: &'static str,
    look: Look<'c>,
    before: &'c Before<'c>,
}

fn check_parts(version: &CustomResourceDefinitionVersion, chosen: &Chosen<'_>, at: &Path, errors: &mut ErrorList) {
    let parts = chosen.parts;
    if parts.schema {
        definition_schema::check(version.schema.as_ref(), &chosen.look, &at.child(chosen.holder), errors);
    }
    if parts.subresources {
        parts::check_subresources(version.subresources.as_ref(), &at.child("subresources"), errors);
    }
    if parts.columns {
        parts::check_columns(&version.additional_printer_columns, &at.child("additionalPrinterColumns"), errors);
    }
    if parts.fields && !version.selectable_fields.is_empty() {
        // Upstream looks for the schema where the fields stand: fields that all versions have alike need a schema that all
        // have alike, and others one that is not.
        if !parts.schema || !has_schema(version) {
            errors.push(at.child("selectableFields").invalid("", chosen.no_schema));
            return;
        }
        let schema = Structural::root(&super::schema_of(version));
        let former = chosen.before.version(&version.name).map_or(&[][..], |former| &former.selectable_fields);
        let at = at.child("selectableFields");
        parts::check_selectable(&version.selectable_fields, former, &schema, &at, errors);
    }
}

/// What may not change.
fn check_immutable(definition: &CustomResourceDefinition, old: &CustomResourceDefinition, errors: &mut ErrorList) {
    let (spec, former, at) = (&definition.spec, &old.spec, Path::new("spec"));
    if old.status.conditions.iter().any(|own| own.type_ == "Established" && own.status == "True") {
        if spec.scope != former.scope {
            errors.push(at.child("scope").invalid(BadValue::named(&spec.scope), IMMUTABLE));
        }
        if spec.names.kind != former.names.kind {
            errors.push(at.child("names").child("kind").invalid(&spec.names.kind, IMMUTABLE));
        }
    }
    if spec.group != former.group {
        errors.push(at.child("group").invalid(&spec.group, IMMUTABLE));
    }
    if spec.names.plural != former.names.plural {
        errors.push(at.child("names").child("plural").invalid(&spec.names.plural, IMMUTABLE));
    }
}

/// What comes after the spec: the status, the approval of protected groups, and a switch that is no more.
fn check_rest(definition: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>, errors: &mut ErrorList) {
    errors.extend(validate_status(definition));
    check_stored_versions(definition, errors);
    let approval = Approval::of(definition);
    let as_before =
        old.is_some_and(|old| std::mem::discriminant(&Approval::of(old)) == std::mem::discriminant(&approval));
    if !as_before {
        let path = Path::new("metadata").child("annotations").key(APPROVED);
        match approval {
            Approval::Missing => errors.push(path.required(approval.message())),
            Approval::Invalid(value) => errors.push(path.invalid(value, approval.message())),
            Approval::NotNeeded | Approval::Approved(_) | Approval::Unapproved(_) => {}
        }
    }
    if definition.spec.preserve_unknown_fields && !old.is_some_and(|old| old.spec.preserve_unknown_fields) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(Path::new("spec").child("preserveUnknownFields").invalid(true, detail));
    }
}

/// No version of which objects may still be stored is dropped.
fn check_stored_versions(definition: &CustomResourceDefinition, errors: &mut ErrorList) {
    let path = Path::new("status").child("storedVersions");
    let (stored, versions) = (&definition.status.stored_versions, &definition.spec.versions);
    if stored.is_empty() {
        errors.push(path.invalid(BadValue::null(), "must have at least one stored version"));
        return;
    }
    // Of two versions with one name only the first is known.
    for (index, version) in versions.iter().enumerate().filter(|(_, version)| version.storage) {
        let is_second = versions.iter().take(index).any(|earlier| earlier.name == version.name);
        if is_second || !stored.contains(&version.name) {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(path.invalid(BadValue::list(stored), detail));
        }
    }
    let is_there = |name: &String| versions.iter().any(|version| version.name == *name);
    for (index, name) in stored.iter().enumerate().filter(|(_, name)| !is_there(name)) {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.push(path.index(index).invalid(name, detail));
    }
}

#[cfg(test)]
#[path = "definition_test.rs"]
mod tests;
