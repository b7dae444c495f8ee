//! Conversion between versions of a definition with the strategy `None`: only the version's name differs.

use std::sync::Arc;

use api_machinery::object::{Object, Unstructured};
use api_machinery::status::ApiError;
use registry::Convert;

use crate::custom_kinds::CustomKind;

/// Between these two values of `apiVersion`.
pub(super) struct VersionRename {
    pub(super) served: String,
    pub(super) stored: String,
    /// What the stored version knows: nothing else is kept.
    pub(super) kept: Option<Arc<CustomKind>>,
}

fn renamed(object: &dyn Object, api_version: &str, kept: Option<&CustomKind>) -> Box<dyn Object> {
    let mut object = object.clone_object();
    if let Some(custom) = object.downcast_mut::<Unstructured>() {
        custom.type_meta.api_version = api_version.to_owned();
        if let Some(kept) = kept {
            kept.prune(custom);
        }
    }
    object
}

impl Convert for VersionRename {
    fn to_served(&self, stored: &Arc<dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        Ok(renamed(&**stored, &self.served, None))
    }

    fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        Ok(renamed(served, &self.stored, self.kept.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use schema::Structural;
    use serde_json::json;

    use super::*;
    use crate::custom_kinds::VersionSchema;

    #[test]
    fn what_the_stored_version_does_not_know_is_not_kept() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
        }});
        let stored = CustomKind {
            schema: Arc::new(VersionSchema::of(Structural::root(&schema))),
            list_kind: "ThingList".into(),
            replicas_path: String::new(),
            deprecation: None,
            preserve_unknown_fields: false,
            versions: Arc::default(),
        };
        let rename = VersionRename { served: "g/v2".into(), stored: "g/v1".into(), kept: Some(Arc::new(stored)) };
        let mut object = Unstructured::new("g/v2", "Thing");
        object.content.insert("spec".into(), json!({"a": "1", "b": "2"}));
        let kept = rename.to_stored(&object).unwrap();
        assert_eq!(kept.to_value()["apiVersion"], "g/v1");
        assert_eq!(rename.to_served(&kept.into()).unwrap().to_value()["spec"], json!({"a": "1"}));
    }
}
