//! Who owns which fields: the record in `metadata.managedFields`, kept by the rules of crate `schema`.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Object;
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

    /// Records an ordinary write. `live` is an object without uid where there is none.
    pub(super) fn track(&self, live: &dyn Object, new: &mut dyn Object, manager: &str) {
        // The record is large and only in the way when objects are compared.
        let given = std::mem::take(&mut new.meta_mut().managed_fields);
        let mut value = new.to_value();
        new.meta_mut().managed_fields = if live.meta().uid.is_empty() {
            leave_out_what_every_object_has(&mut value, &live.to_value());
            self.manager.create(value, &given, manager, self.now)
        } else {
            let mut bare = live.clone_object();
            let record = std::mem::take(&mut bare.meta_mut().managed_fields);
            self.manager.update((&bare.to_value(), &record), (value, &given), manager, self.now)
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

/// Members such as an empty `spec` are there without anybody's doing, so nobody owns them.
fn leave_out_what_every_object_has(value: &mut Value, empty: &Value) {
    if let (Some(members), Some(empty)) = (value.as_object_mut(), empty.as_object()) {
        members.retain(|name, value| matches!(name.as_str(), "apiVersion" | "kind") || empty.get(name) != Some(value));
    }
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
