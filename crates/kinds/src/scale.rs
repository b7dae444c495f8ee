//! How scales are printed. A scale is a view of other kinds' objects, so its kind is none of the table of kinds.

use api_types::autoscaling_v1::Scale;

use crate::info::ResourceInfo;
use crate::rules::{Rules, Typed, TypedRules};
use crate::table::Cell;

/// The rules of scales, for who shows them.
pub static SCALE: &dyn Rules = &Typed::<ScaleRules>::new();

static INFO: ResourceInfo<'static> = ResourceInfo { namespaced: true, verbs: &[], ..ResourceInfo::of::<Scale>() };

struct ScaleRules;

impl TypedRules for ScaleRules {
    type Object = Scale;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Scale>] = &[
        Cell::text("Name", |scale, _| scale.metadata.name.clone().into()),
        Cell::number("Desired", |scale, _| scale.spec.replicas.into()),
        Cell::number("Available", |scale, _| scale.status.replicas.into()),
        Cell::AGE,
    ];

    /// The object whose scale it is was checked when it was created.
    fn validate_name(_: &str, _: bool) -> Vec<String> {
        Vec::new()
    }
}
