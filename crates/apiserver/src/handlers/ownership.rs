//! Who owns which fields: the record in `metadata.managedFields`, kept by the rules of crate `schema`.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Object;
use api_machinery::reflect::{Reflect, View, is_zero};
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_machinery::value::Value;
use schema::TypeNode;
use schema::apply::{ApplyOptions, FieldManager, FieldSet};

use super::Target;

/// The ownership of the fields of one endpoint.
pub(super) struct Ownership<'a> {
    manager: FieldManager<'a>,
    now: Time,
}

impl<'a> Ownership<'a> {
    /// The ownership at `target`, whose objects are of type `node`.
    pub(super) fn new(target: &Target, node: TypeNode<'a>, now: Time) -> Self {
        let subresource = target.subresource.map(|subresource| subresource.name).unwrap_or_default();
        let info = target.info;
        let manager = FieldManager {
            node,
            gvk: GroupVersionKind { group: info.group.into(), version: info.version.into(), kind: info.kind.into() },
            subresource: subresource.to_owned(),
            reset: FieldSet::of_fields(&reset_fields(target, subresource)),
        };
        Self { manager, now }
    }

    /// The ownership of scales, whatever they are of.
    pub(super) fn of_scale(node: TypeNode<'a>, now: Time) -> Self {
        let manager = FieldManager {
            node,
            gvk: GroupVersionKind { group: "autoscaling".into(), version: "v1".into(), kind: "Scale".into() },
            subresource: "scale".to_owned(),
            reset: FieldSet::default(),
        };
        Self { manager, now }
    }

    /// Records an ordinary write, in place of the live object if there is one.
    pub(super) fn track(&self, live: Option<&dyn Object>, new: &mut dyn Object, manager: &str) {
        // The record is large and only in the way when objects are compared.
        let given = std::mem::take(&mut new.meta_mut().managed_fields);
        new.meta_mut().managed_fields = if let Some(live) = live {
            let mut bare = live.clone_object();
            let record = std::mem::take(&mut bare.meta_mut().managed_fields);
            self.manager.update((&bare.to_value(), &record), (&new.to_value(), &given), manager, self.now)
        } else {
            let new = new.as_reflect();
            self.manager.create(View::Struct(new), &empty_members(new), &given, manager, self.now)
        };
    }

    /// The object that an apply makes of the live one.
    ///
    /// # Errors
    /// 400, 409, 500.
    pub(super) fn apply(
        &self,
        live: Option<&dyn Object>,
        applied: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApiError> {
        let live = live.map(|live| live.to_value());
        let options = ApplyOptions { manager, force, now: self.now };
        self.manager.apply(live.as_ref(), applied, options).map_err(ApiError::from)
    }
}

/// Members such as an empty `spec`: every object has them without anybody's doing, so nobody owns them.
fn empty_members(object: &dyn Reflect) -> FieldSet {
    let rows = object.struct_type().fields.iter().enumerate();
    let empty = rows.filter(|(index, row)| !row.name.is_empty() && is_zero(object.field(*index)));
    FieldSet::of_fields(&empty.map(|(_, row)| row.name).collect::<Vec<_>>())
}

/// What the endpoint overwrites whatever the client sends: nobody owns it there.
fn reset_fields(target: &Target, subresource: &str) -> Vec<&'static str> {
    let info = target.info;
    let has_status = info.subresources.iter().any(|own| own.name == "status");
    let is_custom = target.is_custom();
    match (info.group, info.resource, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", "") => vec!["spec", "status"],
        ("certificates.k8s.io", "certificatesigningrequests", "status") => vec!["spec", "status.conditions"],
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => vec!["spec", "status.certificate"],
        ("", "namespaces", "finalize") => vec!["status"],
        ("", "pods", "status") => vec!["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("apps", "deployments", "status") => vec!["spec", "metadata.labels"],
        ("storage.k8s.io", "volumeattachments", "status") => vec!["spec", "metadata"],
        (_, _, "status") if is_custom => vec!["metadata", "spec"],
        (_, _, "status") => vec!["spec"],
        (_, _, "") if has_status => vec!["status"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Walking a typed object finds the same places as comparing its free-form copy with nothing.
    #[test]
    fn golden_objects_bring_the_same_places_typed_and_free_form() {
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/api-roundtrip");
        let mut compared = 0;
        for rules in kinds::all() {
            let info = rules.info();
            let group = if info.group.is_empty() { "core" } else { info.group };
            let Ok(text) = std::fs::read(golden.join(format!("{group}.{}.{}.json", info.version, info.kind))) else {
                println!("skipped: no golden object of {group}/{} {}", info.version, info.kind);
                continue;
            };
            let mut object = rules.new_object();
            api_machinery::json::decode(&text, object.as_reflect_mut()).expect("golden objects can be read");
            object.meta_mut().managed_fields.clear();
            let manager = FieldManager {
                node: TypeNode::of_struct(rules.table()),
                gvk: object.gvk(),
                subresource: String::new(),
                reset: FieldSet::default(),
            };
            let of = |view: View<'_>| manager.create(view, &FieldSet::default(), &[], "tests", Time::default());
            let value = object.to_value();
            let typed = of(View::Struct(object.as_reflect()));
            assert_eq!(typed.len(), 1, "{}", info.kind);
            assert!(typed == of(View::Dynamic(&value)), "{}: {typed:?}", info.kind);
            compared += 1;
        }
        println!("{compared} kinds compared");
        assert!(compared > 0 || !golden.is_dir(), "golden objects are there, and none was found by its name");
    }
}
