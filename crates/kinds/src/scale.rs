//! How scales are printed. A scale is a view of other kinds' objects, so its kind is none of the table of kinds.

use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::autoscaling_v1::Scale;

use crate::info::{Column, ResourceInfo};
use crate::rules::{Rules, Typed, TypedRules};
use crate::table;

/// The rules of scales, for who shows them.
pub static SCALE: &dyn Rules = &Typed::<ScaleRules>::new();

static INFO: ResourceInfo<'static> = ResourceInfo {
    namespaced: true,
    verbs: &[],
    columns: &[Column::text("Name"), Column::number("Desired"), Column::number("Available"), Column::AGE],
    ..ResourceInfo::of::<Scale>()
};

struct ScaleRules;

impl TypedRules for ScaleRules {
    type Object = Scale;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    /// The object whose scale it is was checked when it was created.
    fn validate_name(_: &str, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn cells(scale: &Scale, now: Time) -> Vec<Value> {
        let meta = &scale.metadata;
        vec![meta.name.clone().into(), scale.spec.replicas.into(), scale.status.replicas.into(), table::age(meta, now)]
    }
}
