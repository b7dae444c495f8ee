//! What handlers must know of kinds that come and go at run time: their schemas.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::json;
use api_machinery::object::Unstructured;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use api_types::apiextensions_v1::{CustomResourceDefinitionVersion, JSONSchemaProps};
use kinds::apiextensions_v1::schema_value;
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use parking_lot::RwLock;
use schema::Structural;
use schema::apply::CustomVersions;
use sha2::{Digest as _, Sha256};

/// The schema of one version of a definition. It is unpacked when it is first needed: of most definitions that are
/// installed there are no objects, and a schema is a tenth or less of its size packed.
pub(crate) struct VersionSchema {
    declared: Declared,
    unpacked: OnceLock<Structural>,
}

/// A schema as its definition has it.
enum Declared {
    Nothing,
    /// In JSON.
    Packed(Box<[u8]>),
    /// What JSON would not give back, such as what came as a message and is too deep for a text.
    Whole(Arc<JSONSchemaProps>),
}

impl Declared {
    fn of(schema: &Arc<JSONSchemaProps>) -> Self {
        let text = json::encode(&**schema);
        if json::decode(text.as_bytes(), &mut JSONSchemaProps::default()).is_err() {
            return Self::Whole(Arc::clone(schema));
        }
        Self::Packed(compress_prepend_size(text.as_bytes()).into())
    }

    fn unpack(packed: &[u8]) -> JSONSchemaProps {
        let text = decompress_size_prepended(packed).expect("invariant: `of` has packed it");
        let mut schema = JSONSchemaProps::default();
        json::decode(&text, &mut schema).expect("invariant: `of` has read this very text");
        schema
    }
}

impl VersionSchema {
    /// That of a version.
    pub(crate) fn new(version: &CustomResourceDefinitionVersion) -> Self {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_apiv3_schema.as_ref());
        Self { declared: schema.map_or(Declared::Nothing, Declared::of), unpacked: OnceLock::new() }
    }

    /// A schema that is unpacked already.
    #[cfg(test)]
    pub(crate) fn of(schema: Structural) -> Self {
        Self { declared: Declared::Nothing, unpacked: OnceLock::from(schema) }
    }

    /// Equal for equal schemas.
    pub(crate) fn digest(&self) -> [u8; 32] {
        match &self.declared {
            Declared::Nothing => Sha256::digest([]),
            Declared::Packed(packed) => Sha256::digest(packed),
            Declared::Whole(schema) => Sha256::digest(json::encode(&**schema)),
        }
        .into()
    }

    /// As the definition has it.
    pub(crate) fn declared(&self) -> Value {
        match &self.declared {
            Declared::Nothing => schema_value(None),
            Declared::Packed(packed) => schema_value(Some(&Declared::unpack(packed))),
            Declared::Whole(schema) => schema_value(Some(schema)),
        }
    }
}

impl std::fmt::Debug for VersionSchema {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("VersionSchema").finish_non_exhaustive()
    }
}

impl Deref for VersionSchema {
    type Target = Structural;

    fn deref(&self) -> &Structural {
        self.unpacked.get_or_init(|| Structural::root(&self.declared()))
    }
}

/// `apiVersion` and schema of each version of a definition.
#[derive(Debug, Default)]
pub(crate) struct VersionSchemas(pub(crate) Vec<(String, Arc<VersionSchema>)>);

impl CustomVersions for VersionSchemas {
    fn has(&self, api_version: &str) -> bool {
        self.0.iter().any(|(name, _)| name == api_version)
    }

    fn schema(&self, api_version: &str) -> Option<&Structural> {
        self.0.iter().find(|(name, _)| name == api_version).map(|(_, schema)| &***schema)
    }
}

/// The schema of a custom kind in one version.
#[derive(Debug, Clone)]
pub(crate) struct CustomKind {
    /// The structural schema.
    pub schema: Arc<VersionSchema>,
    /// The kind of lists.
    pub list_kind: String,
    /// Where the scale subresource finds the wanted replicas; empty without one.
    pub replicas_path: String,
    /// What clients are told at every request; nothing unless the version is deprecated.
    pub deprecation: Option<String>,
    /// Whether unknown fields are kept everywhere.
    pub preserve_unknown_fields: bool,
    /// Every version of the definition.
    pub versions: Arc<VersionSchemas>,
}

impl CustomKind {
    /// Removes the fields that the schema does not know, and names them as strict decoding does.
    pub(crate) fn prune(&self, object: &mut Unstructured) -> Vec<String> {
        if self.preserve_unknown_fields {
            return Vec::new();
        }
        prune(object, &self.schema).into_iter().map(|path| format!("unknown field {path:?}")).collect()
    }
}

/// The refusal of a custom object that says it is of another kind than its path.
pub(crate) fn of_other_kind(group: &str, found: &str, own: &str, name: &str) -> ApiError {
    let mut errors = ErrorList::default();
    errors.push(Path::new("kind").invalid(found, format!("must be {own}")));
    ApiError::invalid(&GroupKind { group: group.to_owned().into(), kind: found.to_owned().into() }, name, &errors)
}

/// Removes the fields that a schema does not know, and gives their paths.
pub(crate) fn prune(object: &mut Unstructured, schema: &Structural) -> Vec<String> {
    let mut content = Value::Object(std::mem::take(&mut object.content).into_iter().collect());
    let unknown = schema::structural::prune(&mut content, schema);
    if let Value::Object(content) = content {
        object.content = content.into_iter().collect();
    }
    unknown
}

/// The kinds of a group, by version and resource.
type Versions = HashMap<(String, String), Arc<CustomKind>>;

/// The custom kinds that are served, by group: requests for built-in ones ask here as well, and find no such group.
#[derive(Debug, Default)]
pub(crate) struct CustomKinds {
    served: RwLock<HashMap<String, Versions>>,
    /// Group and resource of the definitions that are being deleted.
    terminating: RwLock<HashSet<(String, String)>>,
}

impl CustomKinds {
    /// Adds or replaces a kind.
    pub(crate) fn insert(&self, group: &str, version: &str, resource: &str, kind: Arc<CustomKind>) {
        let place = (version.to_owned(), resource.to_owned());
        self.served.write().entry(group.to_owned()).or_default().insert(place, kind);
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, group: &str, version: &str, resource: &str) {
        let mut served = self.served.write();
        let Some(versions) = served.get_mut(group) else { return };
        versions.remove(&(version.to_owned(), resource.to_owned()));
        if versions.is_empty() {
            served.remove(group);
        }
    }

    /// Notes whether the definition of a resource is being deleted.
    pub(crate) fn set_terminating(&self, group: &str, resource: &str, terminating: bool) {
        let place = (group.to_owned(), resource.to_owned());
        let mut all = self.terminating.write();
        if terminating {
            all.insert(place)
        } else {
            all.remove(&place)
        };
    }

    /// Whether the definition of a resource is being deleted.
    #[must_use]
    pub(crate) fn is_terminating(&self, group: &str, resource: &str) -> bool {
        let all = self.terminating.read();
        !all.is_empty() && all.contains(&(group.to_owned(), resource.to_owned()))
    }

    /// Finds a kind.
    #[must_use]
    pub(crate) fn get(&self, group: &str, version: &str, resource: &str) -> Option<Arc<CustomKind>> {
        self.served.read().get(group)?.get(&(version.to_owned(), resource.to_owned())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::protobuf::{self, Encoder};
    use api_types::apiextensions_v1::CustomResourceValidation;
    use kinds::apiextensions_v1::schema_of;

    use super::*;

    #[test]
    fn a_schema_is_declared_as_its_definition_has_it() {
        let text =
            r#"{"type":"object","maximum":1,"properties":{"a":{"default":{"b":[1.50,"\u2028"]},"minimum":0.1}}}"#;
        let version = |text: Option<&str>| {
            let mut schema = JSONSchemaProps::default();
            text.iter().for_each(|text| drop(json::decode(text.as_bytes(), &mut schema).unwrap()));
            let schema = CustomResourceValidation { open_apiv3_schema: text.map(|_| Arc::new(schema)) };
            CustomResourceDefinitionVersion { schema: Some(schema), ..CustomResourceDefinitionVersion::default() }
        };
        let [some, none] = [Some(text), None].map(version);
        for version in [&some, &none] {
            assert_eq!(VersionSchema::new(version).declared(), schema_of(version));
        }
        let brackets = ["[", "]"].map(|bracket| bracket.repeat(json::MAX_DEPTH)).concat();
        let (mut message, mut deep) = (Encoder::default(), JSONSchemaProps::default());
        // `default`, and within it the text.
        message.message(8, |message| message.bytes(1, brackets.as_bytes()));
        protobuf::decode(&message.into_vec(), &mut deep).unwrap();
        deep = JSONSchemaProps { not: Some(Arc::new(deep)), ..JSONSchemaProps::default() };
        assert!(json::decode(json::encode(&deep).as_bytes(), &mut JSONSchemaProps::default()).is_err());
        let deep = CustomResourceValidation { open_apiv3_schema: Some(Arc::new(deep)) };
        let deep = CustomResourceDefinitionVersion { schema: Some(deep), ..CustomResourceDefinitionVersion::default() };
        assert_eq!(VersionSchema::new(&deep).declared(), schema_of(&deep), "what no text gives back");
        let digest = |version: &CustomResourceDefinitionVersion| VersionSchema::new(version).digest();
        assert!(
            digest(&some) == digest(&some.clone()) && digest(&some) != digest(&none) && digest(&deep) != digest(&none)
        );
    }
}
