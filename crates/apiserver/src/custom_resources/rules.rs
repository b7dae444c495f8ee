//! The rules of a custom kind, as its definition states them.

use std::sync::{Arc, OnceLock};

use api_machinery::field_path::{BadValue, ErrorKind, ErrorList, Path};
use api_machinery::names::{dns1123_subdomain, mask_trailing_dash, qualified_name};
use api_machinery::object::{Object, Unstructured};
use api_machinery::quote::go_quote;
use api_machinery::reflect::StructType;
use api_machinery::time::Time;
use api_machinery::value::Value;
use component_base::Gates;
use kinds::apiextensions_v1::embedded;
use kinds::info::{Column, ResourceInfo};
use kinds::lifecycle::Lifecycle;
use kinds::rules::{Endpoint, Grace, MetadataCheck, RuleContext, Rules, Scale};
use kinds::strategy::next_generation;
use schema::apply::CustomVersions as _;
use schema::structural::{check_list_types, drop_nulls, fill_defaults, validate, validate_update};
use schema::{JsonPath, Structural};
use schema_rules::{RUNTIME_BUDGET, RuleTree, Subject};

use super::columns::{self, Cell};
use super::facts::CustomInfo;
use super::scale::ScalePaths;
use crate::custom_kinds::{VersionSchema, VersionSchemas, prune};

/// The rules.
pub(super) struct CustomRules {
    pub(super) info: Arc<CustomInfo>,
    pub(super) schema: Arc<VersionSchema>,
    /// Those of all versions.
    pub(super) versions: Arc<VersionSchemas>,
    /// Whether objects of other versions have to be converted; else these differ in nothing but their names.
    pub(super) converts: bool,
    pub(super) preserve_unknown_fields: bool,
    pub(super) cells: Vec<Cell>,
    pub(super) scale: Option<ScalePaths>,
    pub(super) has_status: bool,
    /// By the name in selectors.
    pub(super) selectable: Vec<(String, JsonPath)>,
    /// The schema's rules in the expression language, compiled for the first object that is written.
    pub(super) expressions: OnceLock<RuleTree>,
}

const OTHER_KIND: &str = "invariant: the engine hands each kind its own objects";

fn custom(object: &dyn Object) -> &Unstructured {
    object.downcast_ref().expect(OTHER_KIND)
}

fn custom_mut(object: &mut dyn Object) -> &mut Unstructured {
    object.downcast_mut().expect(OTHER_KIND)
}

/// Works on the content as one value.
fn with_content(object: &mut Unstructured, work: impl FnOnce(&mut Value)) {
    let mut content = Value::Object(std::mem::take(&mut object.content).into_iter().collect());
    work(&mut content);
    if let Value::Object(content) = content {
        object.content = content.into_iter().collect();
    }
}

/// After these, a value may be of another shape than expressions expect.
const HIDES_RULES: [ErrorKind; 5] =
    [ErrorKind::NotSupported, ErrorKind::Required, ErrorKind::TooLong, ErrorKind::TooMany, ErrorKind::TypeInvalid];

/// Custom objects may have finalizers of any name, which other kinds may not.
fn finalizer_warnings(finalizer: &str) -> Vec<String> {
    let shown = go_quote(finalizer);
    let mut problems = qualified_name(finalizer);
    if !finalizer.contains('/') && !matches!(finalizer, "orphan" | "foregroundDeletion") {
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        problems.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    problems.into_iter().map(|problem| format!("metadata.finalizers: {shown}: {problem}")).collect()
}

impl CustomRules {
    /// `group/version`
    pub(super) fn api_version(&self) -> String {
        let info = self.info.get();
        format!("{}/{}", info.group, info.version)
    }

    /// The schema of the version that an object is of: what is stored may be of another one than this.
    fn schema_of(&self, object: &Unstructured) -> &Structural {
        self.versions.schema(&object.type_meta.api_version).unwrap_or(&self.schema)
    }

    fn check(&self, cx: &RuleContext, object: &dyn Object, old: Option<&dyn Object>) -> ErrorList {
        let (root, value) = (Path::default(), object.to_value());
        let old = old.map(<dyn Object>::to_value);
        let mut errors = match &old {
            Some(old) => validate_update(&root, &value, old, &self.schema),
            None => validate(&root, &value, &self.schema),
        };
        if let Some(scale) = &self.scale {
            scale.check(&value, &mut errors);
        }
        embedded::check(&root, &value, &self.schema, &mut errors);
        let had_duplicates = old.as_ref().is_some_and(|old| !check_list_types(&root, old, &self.schema).is_empty());
        if !had_duplicates {
            errors.extend(check_list_types(&root, &value, &self.schema));
        }
        self.check_expressions(cx, &value, old.as_ref(), &mut errors);
        errors
    }

    /// Rules are only asked about objects of which they can understand everything.
    fn check_expressions(&self, cx: &RuleContext, value: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let rules = self.expressions.get_or_init(|| RuleTree::compile(&self.schema));
        if rules.is_empty() {
            return;
        }
        let root = Path::nil();
        if errors.iter().any(|error| HIDES_RULES.contains(&error.kind)) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            errors.push(root.invalid(BadValue::null(), detail));
            return;
        }
        let mut budget = RUNTIME_BUDGET;
        let found = rules.validate(&root, Subject { value, old, ratchets: old.is_some() }, &mut budget);
        errors.extend(found.errors);
        cx.remarks.add(found.warnings);
    }
}

impl Rules for CustomRules {
    fn info(&self) -> &ResourceInfo<'_> {
        self.info.get()
    }

    fn lifecycle(&self) -> &'static Lifecycle {
        &Lifecycle::CUSTOM
    }

    fn reset_fields(&self, _: &Gates, subresource: &str) -> &'static [&'static str] {
        match subresource {
            "status" => &["metadata", "spec"],
            "" if self.has_status => &["status"],
            _ => &[],
        }
    }

    /// The versions of a definition without a webhook differ in nothing but their names. With one, an object stays what
    /// it is until somebody asks for it.
    fn bring_up_to_date(&self, object: &mut dyn Object, stored: &str) -> bool {
        let is_own = stored.split_once('/').is_some_and(|(group, _)| group == self.info().group);
        if is_own {
            let keeps = self.converts && self.versions.has(stored);
            custom_mut(object).type_meta.api_version = if keeps { stored.to_owned() } else { self.api_version() };
        }
        is_own
    }

    fn complete_stored(&self, object: &mut dyn Object) {
        let custom = custom_mut(object);
        if !self.preserve_unknown_fields {
            prune(custom, self.schema_of(custom));
        }
        custom.metadata.generation = custom.metadata.generation.max(1);
        self.set_defaults(object);
    }

    fn unknown_field(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn new_object(&self) -> Box<dyn Object> {
        let info = self.info();
        Box::new(Unstructured::new(&format!("{}/{}", info.group, info.version), info.kind))
    }

    fn table(&self) -> &'static StructType {
        Unstructured::TABLE
    }

    fn set_defaults(&self, object: &mut dyn Object) {
        let custom = custom_mut(object);
        let schema = self.schema_of(custom);
        with_content(custom, |content| {
            drop_nulls(content, schema);
            fill_defaults(content, schema);
        });
    }

    fn prepare_create(&self, _: &RuleContext, object: &mut dyn Object) {
        let object = custom_mut(object);
        if self.has_status {
            object.content.remove("status");
        }
        object.metadata.generation = 1;
    }

    fn validate_create(&self, cx: &RuleContext, object: &dyn Object) -> ErrorList {
        self.check(cx, object, None)
    }

    fn prepare_update(&self, _: &RuleContext, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object) {
        let (object, old) = (custom_mut(object), custom(old));
        if endpoint == Endpoint::Status {
            let status = object.content.remove("status");
            let (version, managed) =
                (object.metadata.resource_version.clone(), std::mem::take(&mut object.metadata.managed_fields));
            object.content.clone_from(&old.content);
            object.content.remove("status");
            object.content.extend(status.map(|status| ("status".to_owned(), status)));
            object.metadata = old.metadata.clone();
            object.metadata.resource_version = version;
            object.metadata.managed_fields = managed;
            return;
        }
        if self.has_status {
            object.content.remove("status");
            object.content.extend(old.content.get("status").map(|status| ("status".to_owned(), status.clone())));
        }
        object.metadata.generation = old.metadata.generation.max(1);
        if object.content != old.content {
            next_generation(&mut object.metadata);
        }
    }

    fn validate_update(&self, cx: &RuleContext, _: Endpoint, object: &dyn Object, old: &dyn Object) -> ErrorList {
        self.check(cx, object, Some(old))
    }

    fn metadata_checks(&self, _: Endpoint) -> &'static [MetadataCheck] {
        &[MetadataCheck::Update]
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        if prefix { dns1123_subdomain(&mask_trailing_dash(name)) } else { dns1123_subdomain(name) }
    }

    fn warnings(&self, object: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let known = old.map_or(&[][..], |old| &old.meta().finalizers);
        let new = object.meta().finalizers.iter().filter(|own| !known.contains(own));
        new.flat_map(|finalizer| finalizer_warnings(finalizer)).collect()
    }

    fn grace(&self, _: &dyn Object, _: Option<i64>) -> Grace {
        Grace::None
    }

    fn field(&self, object: &dyn Object, path: &str) -> Option<String> {
        let (_, path) = self.selectable.iter().find(|(name, _)| name == path)?;
        let value = object.to_value();
        Some(match path.first(&value) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        })
    }

    fn columns(&self) -> Vec<Column<'_>> {
        columns::headings(&self.cells)
    }
    fn cells(&self, object: &dyn Object, now: Time) -> Vec<Value> {
        columns::row(&self.cells, object.meta(), &object.to_value(), now)
    }

    fn row_conditions(&self, _: &dyn Object) -> Vec<Value> {
        Vec::new()
    }

    fn scale(&self, object: &dyn Object) -> Option<Scale> {
        Some(self.scale.as_ref()?.scale(&object.to_value()))
    }

    fn set_replicas(&self, object: &mut dyn Object, replicas: i32) {
        let Some(members) = self.scale.as_ref().and_then(|paths| paths.spec_replicas.path.members()) else { return };
        with_content(custom_mut(object), |content| {
            let mut place = content;
            for name in members {
                if !place.is_object() {
                    *place = Value::Object(serde_json::Map::new());
                }
                let Some(map) = place.as_object_mut() else { return };
                place = map.entry(name).or_insert(Value::Null);
            }
            *place = replicas.into();
        });
    }
}
