//! A version of a kind that has another form than the one that is stored, and no rules of its own: whatever is asked of
//! it is asked of the stored form, as upstream asks its internal one. Errors therefore name the fields of the stored form.

use std::marker::PhantomData;

use api_machinery::field_path::ErrorList;
use api_machinery::object::{Kind, Object};
use api_machinery::reflect::StructType;
use api_machinery::time::Time;
use api_machinery::value::Value;
use feature_gates::{Feature, Gates};

use crate::info::{Column, ResourceInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, Grace, MetadataCheck, RuleContext, Rules, Scale, Typed, TypedRules, typed, typed_mut};
use crate::versions::VersionConversion;

/// A served version of another form: its names, its defaults and the way to the stored form and back.
pub trait OtherForm: Send + Sync + 'static {
    /// The kind's struct in the version.
    type Served: Object + Kind;
    /// The rules of the version that is stored.
    type Stored: TypedRules;
    /// Names and facts.
    const INFO: &'static ResourceInfo<'static>;

    /// Defaults that depend on other fields; those that the field tables state are set before.
    fn set_defaults(_object: &mut Self::Served) {}
    /// The object as it is stored, with what only the conversion can default.
    fn to_stored(served: &Self::Served) -> StoredBy<Self>;
    /// A stored object as the version shows it.
    fn to_served(stored: &StoredBy<Self>) -> Self::Served;
}

/// The struct of the stored form of a version.
pub type StoredBy<V> = <<V as OtherForm>::Stored as TypedRules>::Object;

/// The rules of a version of another form.
pub struct Converted<V>(PhantomData<V>);

impl<V: OtherForm> Converted<V> {
    /// The rules.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    const STORED: Typed<V::Stored> = Typed::new();

    fn stored(object: &dyn Object) -> StoredBy<V> {
        V::to_stored(typed(object))
    }
}

impl<V: OtherForm> Default for Converted<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: OtherForm> Rules for Converted<V> {
    fn info(&self) -> &ResourceInfo<'_> {
        V::INFO
    }
    fn lifecycle(&self) -> &'static Lifecycle {
        &V::Stored::LIFECYCLE
    }
    fn reset_fields(&self, gates: &Gates, subresource: &str) -> &'static [&'static str] {
        V::Stored::gated_reset_fields(gates, subresource)
    }
    fn conversion(&self) -> Option<VersionConversion> {
        Some(VersionConversion::By {
            to_served: |stored| Some(Box::new(V::to_served(stored.downcast_ref()?))),
            to_stored: |served| Some(Box::new(V::to_stored(served.downcast_ref()?))),
        })
    }
    fn unknown_field(&self, field: &str) -> String {
        V::Stored::unknown_field(field)
    }
    fn new_object(&self) -> Box<dyn Object> {
        Box::new(V::Served::default())
    }
    fn table(&self) -> &'static StructType {
        V::Served::TYPE.table
    }
    fn set_defaults(&self, object: &mut dyn Object) {
        api_machinery::defaults::fill(object.as_reflect_mut());
        V::set_defaults(typed_mut(object));
    }
    fn prepare_create(&self, cx: &RuleContext, object: &mut dyn Object) {
        let mut stored = Self::stored(object);
        Self::STORED.prepare_create(cx, &mut stored);
        *typed_mut(object) = V::to_served(&stored);
    }
    fn validate_create(&self, cx: &RuleContext, object: &dyn Object) -> ErrorList {
        Self::STORED.validate_create(cx, &Self::stored(object))
    }
    fn prepare_update(&self, cx: &RuleContext, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object) {
        let mut stored = Self::stored(object);
        Self::STORED.prepare_update(cx, endpoint, &mut stored, &Self::stored(old));
        *typed_mut(object) = V::to_served(&stored);
    }
    fn validate_as_new(
        &self,
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &dyn Object,
        old: &dyn Object,
    ) -> Option<ErrorList> {
        Self::STORED.validate_as_new(cx, endpoint, &Self::stored(object), &Self::stored(old))
    }
    fn validate_update(
        &self,
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &dyn Object,
        old: &dyn Object,
    ) -> ErrorList {
        Self::STORED.validate_update(cx, endpoint, &Self::stored(object), &Self::stored(old))
    }
    fn metadata_checks(&self, endpoint: Endpoint) -> &'static [MetadataCheck] {
        Self::STORED.metadata_checks(endpoint)
    }
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        V::Stored::validate_name(name, prefix)
    }
    fn validate_new_name(&self, cx: &RuleContext, name: &str, prefix: bool) -> Vec<String> {
        V::Stored::validate_new_name(cx, name, prefix)
    }
    fn warnings(&self, object: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        V::Stored::warnings(&Self::stored(object), old.map(Self::stored).as_ref())
    }
    fn update_warnings(&self, endpoint: Endpoint, object: &dyn Object, old: &dyn Object) -> Vec<String> {
        Self::STORED.update_warnings(endpoint, &Self::stored(object), &Self::stored(old))
    }
    fn reads_namespace(&self, object: &dyn Object) -> bool {
        V::Stored::reads_namespace(&Self::stored(object))
    }
    fn gates(&self) -> Vec<Feature> {
        Self::STORED.gates()
    }
    fn keeps(&self, name: &str) -> Option<&'static str> {
        V::Stored::keeps(name)
    }
    fn grace(&self, object: &dyn Object, asked_seconds: Option<i64>) -> Grace {
        V::Stored::grace(&Self::stored(object), asked_seconds)
    }
    fn field(&self, object: &dyn Object, path: &str) -> Option<String> {
        V::Stored::field(&Self::stored(object), path)
    }
    fn columns(&self) -> Vec<Column<'_>> {
        V::Stored::COLUMNS.iter().map(|cell| cell.column).collect()
    }
    fn cells(&self, object: &dyn Object, now: Time) -> Vec<Value> {
        Self::STORED.cells(&Self::stored(object), now)
    }
    fn table_rank(&self, object: &dyn Object) -> Option<i64> {
        V::Stored::table_rank(&Self::stored(object))
    }
    fn row_conditions(&self, object: &dyn Object) -> Vec<Value> {
        V::Stored::row_conditions(&Self::stored(object))
    }
    fn scale(&self, object: &dyn Object) -> Option<Scale> {
        V::Stored::scale(&Self::stored(object))
    }
    fn set_replicas(&self, object: &mut dyn Object, replicas: i32) {
        let mut stored = Self::stored(object);
        V::Stored::set_replicas(&mut stored, replicas);
        *typed_mut(object) = V::to_served(&stored);
    }
}
