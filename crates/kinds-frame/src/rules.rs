//! The rules of a kind: what the write and read paths ask of it. The engine (`registry`) works on `dyn Rules`; a kind
//! implements [`TypedRules`], and [`Typed`] is the bridge. All of it is pure: the time and the caller are arguments.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::object::{Kind, Object};
use api_machinery::reflect::StructType;
use api_machinery::renamed::Renamed;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::PodSpec;
use feature_gates::{Feature, Gates};
use parking_lot::Mutex;

use crate::gated::{self, Gated};
use crate::info::{Column, ResourceInfo};
use crate::lifecycle::Lifecycle;
use crate::privileges;
use crate::strategy::{self, Strategy};
use crate::table::Cell;
use crate::versions::{Former, FormerForm, SameForm, VersionConversion};

/// What a rule may know of the request it runs in.
#[derive(Debug, Clone, Default)]
pub struct RuleContext {
    /// The time of the request.
    pub now: Time,
    /// The gates of the process.
    pub gates: Gates,
    /// The caller's name.
    pub user: String,
    /// The caller's uid; usually empty.
    pub user_uid: String,
    /// The caller's groups.
    pub groups: Vec<String>,
    /// The caller's extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Whether the server lets no container be privileged.
    pub forbids_privileged: bool,
    /// What checks have to say beside errors.
    pub remarks: Remarks,
    /// The labels of the object's namespace, or why they could not be read; only for objects of which
    /// [`Rules::reads_namespace`] says so.
    pub namespace_labels: Option<Result<BTreeMap<String, String>, String>>,
}

/// Texts for the client that come up while an object is checked, and are no errors.
#[derive(Debug, Clone, Default)]
pub struct Remarks(Arc<Mutex<Vec<String>>>);

impl Remarks {
    /// Adds some.
    pub fn add(&self, texts: Vec<String>) {
        self.0.lock().extend(texts);
    }

    /// Takes all that came up so far.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What a delete does at once and what it leaves for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// The kind is deleted at once when no finalizer holds it.
    None,
    /// The object stays, marked, for this many seconds.
    Seconds(i64),
}

/// The part of an object that a write endpoint may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The resource itself.
    Main,
    /// `status`.
    Status,
    /// `scale`, `resize`, `ephemeralcontainers`, `approval`, `finalize` and the like, by name.
    Other(&'static str),
}

/// A look that a kind takes at metadata by itself when an object is updated, after the one that every kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataCheck {
    /// As on creation, the rule for names included.
    Create,
    /// What a change may not do.
    Update,
}

/// The rules of a kind, for the engine.
pub trait Rules: Send + Sync + 'static {
    /// Names and facts.
    fn info(&self) -> &ResourceInfo<'_>;
    /// How objects are kept, and how they go.
    fn lifecycle(&self) -> &'static Lifecycle;
    /// What an endpoint overwrites whatever the client sends: nobody owns it there. By the subresource's name, empty for
    /// the object itself.
    fn reset_fields(&self, gates: &Gates, subresource: &str) -> &'static [&'static str];
    /// How objects are stored, where they are stored in another version.
    fn conversion(&self) -> Option<VersionConversion> {
        None
    }
    /// The versions in which a store may hold objects, beside those that are served.
    fn former(&self) -> &'static [Former] {
        &[]
    }
    /// Makes an object that was read from the store as the current version, but says that it is `stored`, one of the
    /// current version. Says whether it can be.
    fn bring_up_to_date(&self, object: &mut dyn Object, stored: &str) -> bool {
        let former = self.former().iter().find(|former| former.api_version == stored);
        let Some(FormerForm::Same(mend)) = former.map(|former| former.form) else { return false };
        mend(object);
        true
    }
    /// What is said of a field that objects cannot be selected by.
    fn unknown_field(&self, field: &str) -> String;
    /// An empty object.
    fn new_object(&self) -> Box<dyn Object>;
    /// The table of its objects.
    fn table(&self) -> &'static StructType;
    /// Why an object that was read is none of the kind after all: some of what annotations say are fields to upstream.
    fn misread(&self, _object: &dyn Object) -> Option<String> {
        None
    }
    /// Sets defaults, as the version declares them.
    fn set_defaults(&self, object: &mut dyn Object);
    /// Makes of a stored object what is shown of it: it gets the defaults that the kind has now.
    fn complete_stored(&self, object: &mut dyn Object) {
        self.set_defaults(object);
    }
    /// Prepares an object that is to be created: resets what clients may not set.
    fn prepare_create(&self, cx: &RuleContext, object: &mut dyn Object);
    /// Checks an object that is to be created, metadata left out.
    fn validate_create(&self, cx: &RuleContext, object: &dyn Object) -> ErrorList;
    /// Prepares an object that is to replace `old`: restores what the endpoint may not change, counts the generation.
    fn prepare_update(&self, cx: &RuleContext, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object);
    /// Checks an object that is to replace `old` as if it were new, metadata left out: what the kind does between its two
    /// looks at metadata, where it has two. Nothing for kinds that check all at once.
    fn validate_as_new(
        &self,
        _cx: &RuleContext,
        _endpoint: Endpoint,
        _object: &dyn Object,
        _old: &dyn Object,
    ) -> Option<ErrorList> {
        None
    }
    /// Checks the rest of an object that is to replace `old`, metadata left out.
    fn validate_update(&self, cx: &RuleContext, endpoint: Endpoint, object: &dyn Object, old: &dyn Object)
    -> ErrorList;
    /// How often the kind looks at metadata by itself on an update, and as what.
    fn metadata_checks(&self, endpoint: Endpoint) -> &'static [MetadataCheck];
    /// Checks a name, as messages; `prefix` for `generateName`.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String>;
    /// Checks the name of an object that is to be created, where gates decide about new names only.
    fn validate_new_name(&self, _cx: &RuleContext, name: &str, prefix: bool) -> Vec<String> {
        self.validate_name(name, prefix)
    }
    /// Texts for `Warning` headers.
    fn warnings(&self, object: &dyn Object, old: Option<&dyn Object>) -> Vec<String>;
    /// As `warnings`, for an update through an endpoint, as a status has warnings of its own or none.
    fn update_warnings(&self, _endpoint: Endpoint, object: &dyn Object, old: &dyn Object) -> Vec<String> {
        self.warnings(object, Some(old))
    }
    /// Whether the labels of its namespace decide whether the object is sound.
    fn reads_namespace(&self, _object: &dyn Object) -> bool {
        false
    }
    /// The gates that fields of the kind are behind.
    fn gates(&self) -> Vec<Feature> {
        Vec::new()
    }
    /// Why an object of that name may not be deleted, where it may not.
    fn keeps(&self, _name: &str) -> Option<&'static str> {
        None
    }
    /// How long a delete waits, given what the client asked for.
    fn grace(&self, object: &dyn Object, asked_seconds: Option<i64>) -> Grace;
    /// The value of a selectable field; nothing where the kind does not select by it.
    fn field(&self, object: &dyn Object, path: &str) -> Option<String>;
    /// The printed columns.
    fn columns(&self) -> Vec<Column<'_>>;
    /// The cells of the table row, in the order of the columns.
    fn cells(&self, object: &dyn Object, now: Time) -> Vec<Value>;
    /// The place of an object among the rows of a table, where they are not in the order of the list.
    fn table_rank(&self, _object: &dyn Object) -> Option<i64> {
        None
    }
    /// Conditions of the table row, as free-form values; only pods have any.
    fn row_conditions(&self, object: &dyn Object) -> Vec<Value>;
    /// The replicas of a kind with a scale: (spec, status, selector text).
    fn scale(&self, object: &dyn Object) -> Option<Scale>;
    /// Sets the wanted replicas of a kind with a scale.
    fn set_replicas(&self, object: &mut dyn Object, replicas: i32);
}

/// What the `scale` subresource shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Wanted replicas; of an object that does not say, the path where it would.
    pub spec_replicas: Result<i32, String>,
    /// Present replicas.
    pub status_replicas: i32,
    /// The selector in text form.
    pub selector: String,
}

/// The rules of a kind, typed. Every method has a default that suits a kind without that concern.
pub trait TypedRules: Send + Sync + 'static {
    /// The kind's struct.
    type Object: Object + Kind;
    /// Names and facts.
    const INFO: &'static ResourceInfo<'static>;
    /// What tables show, column by column.
    const COLUMNS: &'static [Cell<Self::Object>] = &[Cell::NAME, Cell::CREATED_AT];
    /// How objects are kept, and how they go.
    const LIFECYCLE: Lifecycle = Lifecycle::DEFAULT;
    /// How objects are stored, where they are stored in another version.
    const CONVERSION: Option<VersionConversion> = None;
    /// See [`Rules::former`].
    const FORMER: &'static [Former] = &[];
    /// The fields behind gates. They go before anything else is prepared.
    const GATED: &'static [Gated<Self::Object>] = &[];

    /// How `status` and the generation are handled; rules of the kind itself run after it.
    const STRATEGY: Strategy = Strategy::Plain;
    /// Whether a write of the status leaves labels, annotations and the like as they are stored, as few kinds do.
    const STATUS_KEEPS_METADATA: bool = false;

    /// See [`Rules::metadata_checks`], for the resource itself.
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create, MetadataCheck::Update];
    /// See [`Rules::metadata_checks`], for its subresources.
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    /// See [`Rules::misread`].
    fn misread(_object: &Self::Object) -> Option<String> {
        None
    }
    /// Defaults that depend on whether another field was left out, and so come before those of the field tables.
    fn set_defaults_first(_object: &mut Self::Object) {}
    /// Defaults that depend on other fields; those that the field tables state are set before.
    fn set_defaults(_object: &mut Self::Object) {}
    /// See [`Rules::prepare_create`].
    fn prepare_create(_cx: &RuleContext, _object: &mut Self::Object) {}
    /// See [`Rules::reset_fields`].
    fn gated_reset_fields(_gates: &Gates, subresource: &str) -> &'static [&'static str] {
        Self::reset_fields(subresource)
    }
    /// The same, where no gate decides.
    fn reset_fields(subresource: &str) -> &'static [&'static str] {
        match subresource {
            "status" if Self::STATUS_KEEPS_METADATA => &["metadata", "spec"],
            "status" => &["spec"],
            "" if Self::INFO.subresources.iter().any(|own| own.name == "status") => &["status"],
            _ => &[],
        }
    }
    /// See [`Rules::unknown_field`].
    fn unknown_field(field: &str) -> String {
        if Self::INFO.field_selectors.is_empty() {
            return format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
        }
        format!("field label not supported: {field}")
    }
    /// See [`Rules::validate_create`].
    fn validate(_cx: &RuleContext, _object: &Self::Object) -> ErrorList {
        ErrorList::default()
    }
    /// See [`Rules::prepare_update`].
    fn prepare_update(_cx: &RuleContext, _endpoint: Endpoint, _object: &mut Self::Object, _old: &Self::Object) {}
    /// See [`Rules::validate_as_new`]; only for the resource itself.
    fn validate_as_new(_cx: &RuleContext, _object: &Self::Object, _old: &Self::Object) -> Option<ErrorList> {
        None
    }
    /// See [`Rules::validate_update`].
    fn validate_update(cx: &RuleContext, _endpoint: Endpoint, object: &Self::Object, _old: &Self::Object) -> ErrorList {
        Self::validate(cx, object)
    }
    /// See [`Rules::validate_name`].
    fn validate_name(name: &str, prefix: bool) -> Vec<String>;
    /// See [`Rules::validate_new_name`].
    fn validate_new_name(_cx: &RuleContext, name: &str, prefix: bool) -> Vec<String> {
        Self::validate_name(name, prefix)
    }
    /// See [`Rules::warnings`].
    fn warnings(_object: &Self::Object, _old: Option<&Self::Object>) -> Vec<String> {
        Vec::new()
    }
    /// The warnings of a status that is accepted.
    fn status_warnings(_object: &Self::Object) -> Vec<String> {
        Vec::new()
    }
    /// See [`Rules::reads_namespace`].
    fn reads_namespace(_object: &Self::Object) -> bool {
        false
    }
    /// See [`Rules::keeps`].
    fn keeps(_name: &str) -> Option<&'static str> {
        None
    }
    /// The pods that the object describes, with the path of their spec: itself, or those it is a template of.
    fn pods(_object: &Self::Object) -> Option<(Path, &PodSpec)> {
        None
    }
    /// See [`Rules::grace`].
    fn grace(_object: &Self::Object, _asked_seconds: Option<i64>) -> Grace {
        Grace::None
    }
    /// See [`Rules::field`]; metadata fields are known to the engine.
    fn field(_object: &Self::Object, _path: &str) -> Option<String> {
        None
    }
    /// See [`Rules::table_rank`].
    fn table_rank(_object: &Self::Object) -> Option<i64> {
        None
    }
    /// See [`Rules::row_conditions`].
    fn row_conditions(_object: &Self::Object) -> Vec<Value> {
        Vec::new()
    }
    /// See [`Rules::scale`].
    fn scale(_object: &Self::Object) -> Option<Scale> {
        None
    }
    /// See [`Rules::set_replicas`].
    fn set_replicas(_object: &mut Self::Object, _replicas: i32) {}
}

/// Typed rules as the engine sees them.
pub struct Typed<R> {
    /// The version that they are served under, where it is not the kind's own.
    named: Option<&'static SameForm>,
    rules: PhantomData<R>,
}

impl<R: TypedRules> Typed<R> {
    /// The bridge.
    #[must_use]
    pub const fn new() -> Self {
        Self { named: None, rules: PhantomData }
    }

    /// The same rules for another version of the same form.
    #[must_use]
    pub const fn under(named: &'static SameForm) -> Self {
        Self { named: Some(named), rules: PhantomData }
    }
}

impl<R: TypedRules> Default for Typed<R> {
    fn default() -> Self {
        Self::new()
    }
}

const OTHER_KIND: &str = "invariant: the engine hands each kind its own objects";

pub(crate) fn typed<T: Object>(object: &dyn Object) -> &T {
    object.downcast_ref().expect(OTHER_KIND)
}

pub(crate) fn typed_mut<T: Object>(object: &mut dyn Object) -> &mut T {
    object.downcast_mut().expect(OTHER_KIND)
}

/// No pod may have privileges where the server allows none, whichever kind it comes from.
fn refuse_privileges<R: TypedRules>(cx: &RuleContext, object: &R::Object, errors: &mut ErrorList) {
    if cx.forbids_privileged
        && let Some((path, spec)) = R::pods(object)
    {
        privileges::refuse(&path, spec, errors);
    }
}

impl<R: TypedRules> Rules for Typed<R> {
    fn info(&self) -> &ResourceInfo<'_> {
        self.named.map_or(R::INFO, |named| &named.info)
    }
    fn lifecycle(&self) -> &'static Lifecycle {
        &R::LIFECYCLE
    }
    fn reset_fields(&self, gates: &Gates, subresource: &str) -> &'static [&'static str] {
        R::gated_reset_fields(gates, subresource)
    }
    fn conversion(&self) -> Option<VersionConversion> {
        self.named.map(|named| VersionConversion::SameForm(&named.named)).or(R::CONVERSION)
    }
    fn former(&self) -> &'static [Former] {
        R::FORMER
    }
    fn unknown_field(&self, field: &str) -> String {
        R::unknown_field(field)
    }
    fn new_object(&self) -> Box<dyn Object> {
        match self.named {
            Some(named) => Box::new(Renamed::new(&named.named, Arc::new(R::Object::default()))),
            None => Box::new(R::Object::default()),
        }
    }
    fn table(&self) -> &'static StructType {
        R::Object::TYPE.table
    }
    fn misread(&self, object: &dyn Object) -> Option<String> {
        R::misread(typed(object))
    }
    fn set_defaults(&self, object: &mut dyn Object) {
        R::set_defaults_first(typed_mut(object));
        api_machinery::defaults::fill(object.as_reflect_mut());
        R::set_defaults(typed_mut(object));
    }
    fn prepare_create(&self, cx: &RuleContext, object: &mut dyn Object) {
        gated::drop_disabled(R::GATED, &cx.gates, typed_mut(object), None);
        R::STRATEGY.prepare_create(object);
        R::prepare_create(cx, typed_mut(object));
    }
    fn validate_create(&self, cx: &RuleContext, object: &dyn Object) -> ErrorList {
        let mut errors = R::validate(cx, typed(object));
        refuse_privileges::<R>(cx, typed(object), &mut errors);
        errors
    }
    fn prepare_update(&self, cx: &RuleContext, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object) {
        gated::drop_disabled(R::GATED, &cx.gates, typed_mut(object), Some(typed(old)));
        R::STRATEGY.prepare_update(endpoint, object, old);
        if endpoint == Endpoint::Status && R::STATUS_KEEPS_METADATA {
            strategy::keep_metadata(object.meta_mut(), old.meta());
        }
        R::prepare_update(cx, endpoint, typed_mut(object), typed(old));
    }
    fn validate_as_new(
        &self,
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &dyn Object,
        old: &dyn Object,
    ) -> Option<ErrorList> {
        (endpoint == Endpoint::Main).then(|| R::validate_as_new(cx, typed(object), typed(old))).flatten()
    }
    fn validate_update(
        &self,
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &dyn Object,
        old: &dyn Object,
    ) -> ErrorList {
        let mut errors = R::validate_update(cx, endpoint, typed(object), typed(old));
        if endpoint != Endpoint::Status {
            refuse_privileges::<R>(cx, typed(object), &mut errors);
        }
        errors
    }
    fn metadata_checks(&self, endpoint: Endpoint) -> &'static [MetadataCheck] {
        match endpoint {
            Endpoint::Main => R::METADATA_CHECKS,
            Endpoint::Status | Endpoint::Other(_) => R::STATUS_METADATA_CHECKS,
        }
    }
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        R::validate_name(name, prefix)
    }
    fn validate_new_name(&self, cx: &RuleContext, name: &str, prefix: bool) -> Vec<String> {
        R::validate_new_name(cx, name, prefix)
    }
    fn warnings(&self, object: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        R::warnings(typed(object), old.map(typed))
    }
    fn update_warnings(&self, endpoint: Endpoint, object: &dyn Object, old: &dyn Object) -> Vec<String> {
        match endpoint {
            Endpoint::Status => R::status_warnings(typed(object)),
            Endpoint::Main | Endpoint::Other(_) => R::warnings(typed(object), Some(typed(old))),
        }
    }
    fn keeps(&self, name: &str) -> Option<&'static str> {
        R::keeps(name)
    }
    fn grace(&self, object: &dyn Object, asked_seconds: Option<i64>) -> Grace {
        R::grace(typed(object), asked_seconds)
    }
    fn reads_namespace(&self, object: &dyn Object) -> bool {
        R::reads_namespace(typed(object))
    }
    fn gates(&self) -> Vec<Feature> {
        R::GATED.iter().flat_map(|gated| gated.features).copied().collect()
    }
    fn field(&self, object: &dyn Object, path: &str) -> Option<String> {
        R::field(typed(object), path)
    }
    fn columns(&self) -> Vec<Column<'_>> {
        R::COLUMNS.iter().map(|cell| cell.column).collect()
    }
    fn cells(&self, object: &dyn Object, now: Time) -> Vec<Value> {
        R::COLUMNS.iter().map(|cell| (cell.show)(typed(object), now)).collect()
    }
    fn table_rank(&self, object: &dyn Object) -> Option<i64> {
        R::table_rank(typed(object))
    }
    fn row_conditions(&self, object: &dyn Object) -> Vec<Value> {
        R::row_conditions(typed(object))
    }
    fn scale(&self, object: &dyn Object) -> Option<Scale> {
        R::scale(typed(object))
    }
    fn set_replicas(&self, object: &mut dyn Object, replicas: i32) {
        R::set_replicas(typed_mut(object), replicas);
    }
}
