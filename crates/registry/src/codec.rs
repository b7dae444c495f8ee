//! Upstream's bytes in the store: protobuf in its envelope for built-in kinds, JSON with a newline for custom ones.
//! Either is read, whatever is written.

use api_machinery::object::Object;
use api_machinery::{json, protobuf};
use bytes::Bytes;
use watch_cache::{Codec, CorruptObject};

use crate::context::RulesRef;

/// What objects are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageMedia {
    /// Enveloped protobuf.
    Protobuf,
    /// JSON and a newline.
    Json,
}

/// The codec of one resource's stored version.
pub(crate) struct ObjectCodec {
    /// The rules of the stored version, for its empty object and its defaults.
    pub(crate) rules: RulesRef,
    pub(crate) media: StorageMedia,
}

impl ObjectCodec {
    /// The bytes to store: without resource version and self link.
    pub(crate) fn encode(&self, object: &mut dyn Object) -> Bytes {
        let meta = object.meta_mut();
        meta.resource_version.clear();
        meta.self_link.clear();
        match self.media {
            StorageMedia::Protobuf => object.to_protobuf().into(),
            StorageMedia::Json => {
                let mut text = object.to_json();
                text.push('\n');
                text.into()
            }
        }
    }

    fn read(&self, value: &[u8]) -> Result<Box<dyn Object>, String> {
        let mut object = self.rules.new_object();
        let kind = object.kind().to_owned();
        if protobuf::is_enveloped(value) {
            let envelope = protobuf::open(value).map_err(|error| error.to_string())?;
            expect_kind(&kind, &envelope.kind)?;
            protobuf::decode(envelope.raw, object.as_reflect_mut()).map_err(|error| error.to_string())?;
            self.bring_up_to_date(&mut *object, &envelope.api_version)?;
        } else {
            let decoded = json::decode(value, object.as_reflect_mut()).map_err(|error| error.to_string())?;
            expect_kind(&kind, &decoded.type_meta.kind)?;
            // Members of an older version may have had other names, of which nothing is left here.
            if !decoded.problems.is_empty() && decoded.type_meta.api_version != object.api_version() {
                let (problems, stored) = (decoded.problems.join(", "), &decoded.type_meta.api_version);
                return Err(format!("{kind} is stored as {stored}, which has fields of its own: {problems}"));
            }
            self.bring_up_to_date(&mut *object, &decoded.type_meta.api_version)?;
        }
        self.rules.set_defaults(&mut *object);
        Ok(object)
    }

    /// Objects are stored as another version than the current one in an etcd that was taken over, and where the stored
    /// version of a definition moved on.
    fn bring_up_to_date(&self, object: &mut dyn Object, stored: &str) -> Result<(), String> {
        let current = object.api_version();
        if stored == current {
            return Ok(());
        }
        if stored.is_empty() {
            return Err("Object 'apiVersion' is missing".to_owned());
        }
        if self.rules.bring_up_to_date(object, stored) {
            return Ok(());
        }
        Err(format!("{} is stored as {stored}, which this server cannot read as {current}", object.kind()))
    }
}

fn expect_kind(expected: &str, found: &str) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("stored object is a {found:?}, not a {expected:?}")) }
}

impl Codec for ObjectCodec {
    fn decode(&self, key: &str, value: &[u8]) -> Result<Box<dyn Object>, CorruptObject> {
        self.read(value).map_err(|message| CorruptObject { key: key.to_owned(), message })
    }
}

#[cfg(test)]
mod tests {
    use api_types::discovery_v1::{Endpoint, EndpointSlice};
    use api_types::policy_v1::PodDisruptionBudget;

    use super::*;

    fn read(group: &str, resource: &str, object: &mut dyn Object, stored: &str) -> Result<(), String> {
        let rules = RulesRef::Static(kinds::find(group, "v1", resource).expect("a kind"));
        ObjectCodec { rules, media: StorageMedia::Protobuf }.bring_up_to_date(object, stored)
    }

    #[test]
    fn former_versions_are_read_where_they_have_the_same_form() {
        for (group, resource, stored, text) in [
            ("networking.k8s.io", "ingressclasses", "networking.k8s.io/v1beta1", ""),
            ("networking.k8s.io", "networkpolicies", "extensions/v1beta1", ""),
            ("apps", "deployments", "apps/v1beta2", ""),
            ("rbac.authorization.k8s.io", "rolebindings", "rbac.authorization.k8s.io/v1beta1", ""),
            ("apps", "deployments", "", "Object 'apiVersion' is missing"),
            (
                "rbac.authorization.k8s.io",
                "rolebindings",
                "rbac.authorization.k8s.io/v1alpha1",
                "RoleBinding is stored as rbac.authorization.k8s.io/v1alpha1, which this server cannot read as \
                 rbac.authorization.k8s.io/v1",
            ),
            (
                "networking.k8s.io",
                "ingresses",
                "extensions/v1beta1",
                "Ingress is stored as extensions/v1beta1, which this server cannot read as networking.k8s.io/v1",
            ),
        ] {
            let mut object = kinds::find(group, "v1", resource).expect("a kind").new_object();
            let outcome = read(group, resource, &mut *object, stored);
            assert_eq!(outcome.err().unwrap_or_default(), text, "{resource} as {stored:?}");
        }
    }

    #[test]
    fn what_changed_its_meaning_is_mended() {
        let mut budget = PodDisruptionBudget::default();
        budget.spec.selector = Some(Default::default());
        assert_eq!(read("policy", "poddisruptionbudgets", &mut budget, "policy/v1"), Ok(()));
        assert!(budget.spec.selector.is_some());
        assert_eq!(read("policy", "poddisruptionbudgets", &mut budget, "policy/v1beta1"), Ok(()));
        assert!(budget.spec.selector.is_none());
        let mut slice = EndpointSlice::default();
        let mut endpoint = Endpoint::default();
        endpoint.deprecated_topology.insert("topology.kubernetes.io/zone".into(), "z".into());
        slice.endpoints.push(endpoint);
        assert_eq!(read("discovery.k8s.io", "endpointslices", &mut slice, "discovery.k8s.io/v1beta1"), Ok(()));
        assert_eq!(slice.endpoints[0].zone.as_deref(), Some("z"));
    }
}
