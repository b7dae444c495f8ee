//! The rules of definitions: defaults, status, and the checks of what is declared.

use api_machinery::field_path::ErrorList;
use api_machinery::object::Object;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::apiextensions_v1::{CustomResourceConversion, CustomResourceDefinition};
use kinds::info::ResourceInfo;
use kinds::rules::{Endpoint, Grace, RuleContext, Rules, Scale};

use super::conditions::FINALIZER;
use super::definition_check;

/// The rules; whatever is not special to definitions is left to the plain ones.
pub(super) struct DefinitionRules {
    pub(super) plain: &'static dyn Rules,
}

const OTHER_KIND: &str = "invariant: the engine hands each kind its own objects";

fn typed(object: &dyn Object) -> &CustomResourceDefinition {
    object.downcast_ref().expect(OTHER_KIND)
}

fn typed_mut(object: &mut dyn Object) -> &mut CustomResourceDefinition {
    object.downcast_mut().expect(OTHER_KIND)
}

fn note_stored_version(definition: &mut CustomResourceDefinition) {
    let stored = definition.spec.versions.iter().find(|version| version.storage).map(|version| version.name.clone());
    let known = &mut definition.status.stored_versions;
    known.extend(stored.filter(|stored| !known.contains(stored)));
}

impl Rules for DefinitionRules {
    fn info(&self) -> &'static ResourceInfo {
        self.plain.info()
    }

    fn new_object(&self) -> Box<dyn Object> {
        self.plain.new_object()
    }

    fn set_defaults(&self, object: &mut dyn Object) {
        self.plain.set_defaults(object);
        let spec = &mut typed_mut(object).spec;
        let names = &mut spec.names;
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let conversion = spec.conversion.get_or_insert_with(CustomResourceConversion::default);
        if conversion.strategy.is_empty() {
            conversion.strategy = "None".to_owned();
        }
    }

    fn prepare_create(&self, cx: &RuleContext, object: &mut dyn Object) {
        self.plain.prepare_create(cx, object);
        let definition = typed_mut(object);
        definition.status = api_types::apiextensions_v1::CustomResourceDefinitionStatus::default();
        definition.metadata.generation = 1;
        note_stored_version(definition);
        hold(definition);
    }

    fn validate_create(&self, cx: &RuleContext, object: &dyn Object) -> ErrorList {
        let mut errors = self.plain.validate_create(cx, object);
        definition_check::check(typed(object), &mut errors);
        errors
    }

    fn prepare_update(&self, cx: &RuleContext, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object) {
        self.plain.prepare_update(cx, endpoint, object, old);
        let (definition, old) = (typed_mut(object), typed(old));
        definition.metadata.generation = old.metadata.generation;
        if endpoint == Endpoint::Status {
            definition.spec = old.spec.clone();
            return;
        }
        definition.status = old.status.clone();
        note_stored_version(definition);
        if definition.spec != old.spec {
            definition.metadata.generation += 1;
        }
        // Only the end of a definition may take the finalizer away.
        if old.metadata.deletion_timestamp.is_none() {
            hold(definition);
        }
    }

    fn validate_update(
        &self,
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &dyn Object,
        old: &dyn Object,
    ) -> ErrorList {
        let mut errors = self.plain.validate_update(cx, endpoint, object, old);
        let (definition, old) = (typed(object), typed(old));
        definition_check::check_stored_versions(definition, &mut errors);
        if endpoint != Endpoint::Status && definition.spec != old.spec {
            definition_check::check(definition, &mut errors);
            definition_check::check_immutable(definition, old, &mut errors);
        }
        errors
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        self.plain.validate_name(name, prefix)
    }

    fn warnings(&self, object: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        self.plain.warnings(object, old)
    }

    fn grace(&self, object: &dyn Object, asked_seconds: Option<i64>) -> Grace {
        self.plain.grace(object, asked_seconds)
    }

    fn field(&self, object: &dyn Object, path: &str) -> Option<String> {
        self.plain.field(object, path)
    }

    fn cells(&self, object: &dyn Object, now: Time) -> Vec<Value> {
        self.plain.cells(object, now)
    }

    fn row_conditions(&self, object: &dyn Object) -> Vec<Value> {
        self.plain.row_conditions(object)
    }

    fn scale(&self, object: &dyn Object) -> Option<Scale> {
        self.plain.scale(object)
    }

    fn set_replicas(&self, object: &mut dyn Object, replicas: i32) {
        self.plain.set_replicas(object, replicas);
    }
}

/// A definition must not go before its objects.
fn hold(definition: &mut CustomResourceDefinition) {
    let finalizers = &mut definition.metadata.finalizers;
    if !finalizers.iter().any(|own| own == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
}
