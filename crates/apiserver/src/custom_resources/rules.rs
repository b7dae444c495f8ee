//! The rules of a custom kind, as its definition states them.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names::{dns1123_subdomain, mask_trailing_dash};
use api_machinery::object::{Object, Unstructured};
use api_machinery::reflect::StructType;
use api_machinery::time::Time;
use api_machinery::value::Value;
use kinds::info::{Column, ResourceInfo};
use kinds::lifecycle::Lifecycle;
use kinds::rules::{Endpoint, Grace, MetadataCheck, RuleContext, Rules, Scale};
use schema::structural::{check_list_types, drop_nulls, fill_defaults, validate, validate_update};
use schema::{JsonPath, Structural};

use super::columns::{self, Cell};
use super::embedded;
use super::facts::CustomInfo;
use super::scale::ScalePaths;

/// The rules.
pub(super) struct CustomRules {
    pub(super) info: Arc<CustomInfo>,
    pub(super) schema: Arc<Structural>,
    pub(super) cells: Vec<Cell>,
    pub(super) scale: Option<ScalePaths>,
    pub(super) has_status: bool,
    /// By the name in selectors.
    pub(super) selectable: Vec<(String, JsonPath)>,
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

impl CustomRules {
    fn check(&self, object: &dyn Object, old: Option<&dyn Object>) -> ErrorList {
        let (root, value) = (Path::default(), object.to_value());
        let mut errors = match old {
            Some(old) => validate_update(&root, &value, &old.to_value(), &self.schema),
            None => validate(&root, &value, &self.schema),
        };
        if let Some(scale) = &self.scale {
            scale.check(&value, &mut errors);
        }
        embedded::check(&root, &value, &self.schema, &mut errors);
        let had_duplicates = old.is_some_and(|old| !check_list_types(&root, &old.to_value(), &self.schema).is_empty());
        if !had_duplicates {
            for error in check_list_types(&root, &value, &self.schema).iter() {
                errors.push(error.clone());
            }
        }
        errors
    }
}

impl Rules for CustomRules {
    fn info(&self) -> &ResourceInfo<'_> {
        self.info.get()
    }

    fn lifecycle(&self) -> &'static Lifecycle {
        &Lifecycle::CUSTOM
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static str] {
        match subresource {
            "status" => &["metadata", "spec"],
            "" if self.has_status => &["status"],
            _ => &[],
        }
    }

    /// The versions of a definition without a webhook differ in nothing but their names.
    fn bring_up_to_date(&self, object: &mut dyn Object, stored: &str) -> bool {
        let info = self.info();
        let is_own = stored.split_once('/').is_some_and(|(group, _)| group == info.group);
        if is_own {
            custom_mut(object).type_meta.api_version = format!("{}/{}", info.group, info.version);
        }
        is_own
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
        with_content(custom_mut(object), |content| {
            drop_nulls(content, &self.schema);
            fill_defaults(content, &self.schema);
        });
    }

    fn prepare_create(&self, _: &RuleContext, object: &mut dyn Object) {
        let object = custom_mut(object);
        if self.has_status {
            object.content.remove("status");
        }
        object.metadata.generation = 1;
    }

    fn validate_create(&self, _: &RuleContext, object: &dyn Object) -> ErrorList {
        self.check(object, None)
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
            object.metadata.generation += 1;
        }
    }

    fn validate_update(&self, _: &RuleContext, _: Endpoint, object: &dyn Object, old: &dyn Object) -> ErrorList {
        self.check(object, Some(old))
    }

    fn metadata_checks(&self, _: Endpoint) -> &'static [MetadataCheck] {
        &[MetadataCheck::Update]
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        if prefix { dns1123_subdomain(&mask_trailing_dash(name)) } else { dns1123_subdomain(name) }
    }

    fn warnings(&self, _: &dyn Object, _: Option<&dyn Object>) -> Vec<String> {
        Vec::new()
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
