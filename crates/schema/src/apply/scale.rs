//! Ownership across the scale subresource: who owns the replicas of the object owns those of its Scale, and back.

use api_machinery::time::Time;
use serde_json::Value;

use super::managers::{Identity, Managers, ManagersError, Operation, Record};
use super::path::{Element, FieldPath};
use super::{FieldSet, field_manager};

const SCALE_VERSION: &str = "autoscaling/v1";
const SUBRESOURCE: &str = "scale";

/// Where an object keeps its replicas, such as `spec.replicas` in `apps/v1`.
#[derive(Clone, Debug)]
pub struct ReplicasPath {
    path: FieldPath,
    api_version: String,
}

impl ReplicasPath {
    /// The place by its dotted path (a leading dot is fine), in this version of the API.
    pub fn new(dotted: &str, api_version: &str) -> Self {
        let steps = dotted.trim_start_matches('.').split('.');
        Self { path: steps.map(Element::field).collect(), api_version: api_version.to_owned() }
    }

    fn set(&self) -> FieldSet {
        let mut set = FieldSet::default();
        set.insert(&self.path);
        set
    }

    /// The record that the Scale of an object shows, for `metadata.managedFields` of the Scale.
    ///
    /// # Errors
    /// When the object's record cannot be read.
    pub fn to_scale(&self, parent: &Value) -> Result<Option<Value>, ManagersError> {
        let mut shown = Managers::default();
        for (identity, record) in Managers::decode(field_manager::managed_fields(parent))?.entries {
            if record.set.contains(&self.path) {
                let set = FieldSet::of_fields(&["spec.replicas"]);
                let identity = in_version(&identity, SCALE_VERSION);
                shown.entries.insert(identity, Record { api_version: SCALE_VERSION.into(), set, ..record });
            }
        }
        Ok(shown.encode())
    }

    /// The object's record after its Scale was written: lost replicas leave their entries, gained ones get a new one.
    ///
    /// # Errors
    /// When one of the records cannot be read.
    pub fn to_parent(&self, parent: &Value, scale: &Value) -> Result<Option<Value>, ManagersError> {
        let scale = Managers::decode(field_manager::managed_fields(scale))?;
        let mut managers = Managers::decode(field_manager::managed_fields(parent))?;
        let replicas = FieldSet::of_fields(&["spec.replicas"]);
        let mut gained: Vec<(Identity, Record)> = scale
            .entries
            .into_iter()
            .filter(|(_, record)| !record.set.intersection(&replicas).is_empty())
            .map(|(identity, record)| (in_version(&identity, &self.api_version), record))
            .collect();
        for (identity, record) in &mut managers.entries {
            if !record.set.contains(&self.path) {
                continue;
            }
            let kept = gained.iter().position(|(owner, _)| same_owner(owner, identity));
            match kept {
                Some(index) => drop(gained.swap_remove(index)),
                None => record.set = std::mem::take(&mut record.set).difference(&self.set()),
            }
        }
        for (identity, _) in gained {
            let identity = Identity { subresource: SUBRESOURCE.into(), ..identity };
            let entry = managers.entries.entry(identity).or_default();
            let set = std::mem::take(&mut entry.set).union(self.set());
            // Upstream loses the time of the write on this way.
            *entry = Record { api_version: self.api_version.clone(), set, time: Time::default() };
        }
        managers.prune();
        Ok(managers.encode())
    }
}

fn in_version(identity: &Identity, api_version: &str) -> Identity {
    let api_version = if identity.operation == Operation::Update { api_version.to_owned() } else { String::new() };
    Identity { api_version, ..identity.clone() }
}

/// The version of ordinary writers differs between an object and its Scale.
fn same_owner(one: &Identity, other: &Identity) -> bool {
    (&one.manager, one.operation, &one.subresource) == (&other.manager, other.operation, &other.subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, subresource: &str, api_version: &str, fields: &Value) -> Value {
        let mut entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        });
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    fn object(entries: &[Value]) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn replicas_change_hands_over_scale() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let other = json!({"f:spec": {"f:paused": {}}});
        let both = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
        let path = ReplicasPath::new(".spec.replicas", "apps/v1");
        let parent = object(&[entry("kubectl", "", "apps/v1", &both)]);
        let shown = path.to_scale(&parent).unwrap().unwrap();
        assert_eq!(shown, json!([entry("kubectl", "", "autoscaling/v1", &replicas)]));
        let kept = path.to_parent(&parent, &object(&[entry("kubectl", "", "autoscaling/v1", &replicas)])).unwrap();
        assert_eq!(kept, Some(json!([entry("kubectl", "", "apps/v1", &both)])));
        let taken = path.to_parent(&parent, &object(&[entry("hpa", "scale", "autoscaling/v1", &replicas)])).unwrap();
        let expected = json!([entry("hpa", "scale", "apps/v1", &replicas), entry("kubectl", "", "apps/v1", &other)]);
        assert_eq!(taken, Some(expected));
    }
}
