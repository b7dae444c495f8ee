//! `ResourceQuotaConfiguration`: what may only be consumed where a quota covers it.

use api_machinery::api;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::value::Value;
use api_types::apiserver_config_v1::{API_VERSION, decode};
use api_types::core_v1::ScopedResourceSelectorRequirement;

const KIND: &str = "ResourceQuotaConfiguration";
/// There is an old spelling.
const OLD_KIND: &str = "Configuration";
const OLD_VERSIONS: [&str; 2] = ["resourcequota.admission.k8s.io/v1beta1", "resourcequota.admission.k8s.io/v1alpha1"];

/// The configuration of `ResourceQuota`.
#[api]
pub(super) struct Configuration {
    /// What is refused without a quota.
    #[field(0)]
    pub(super) limited_resources: Vec<LimitedResource>,
}

/// A resource that may not be had without a quota.
#[api]
pub(super) struct LimitedResource {
    /// Its group.
    #[field(0)]
    pub(super) api_group: String,
    /// Its plural name.
    #[field(0, always)]
    pub(super) resource: String,
    /// Names that a quota must cover when an object consumes some: those that contain one of these.
    #[field(0)]
    pub(super) match_contains: Vec<String>,
    /// Scopes that a quota must cover when an object falls into them.
    #[field(0)]
    pub(super) match_scopes: Vec<ScopedResourceSelectorRequirement>,
}

impl LimitedResource {
    /// Whether it is about this resource.
    pub(super) fn is_of(&self, group: &str, resource: &str) -> bool {
        self.api_group == group && self.resource == resource
    }
}

impl Configuration {
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let mut configuration = Self::default();
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(configuration) };
        let (kind, versions): (_, &[&str]) = match value.get("kind").and_then(Value::as_str) {
            Some(OLD_KIND) => (OLD_KIND, &OLD_VERSIONS),
            _ => (KIND, &[API_VERSION]),
        };
        decode(value.clone(), kind, versions, &mut configuration)?;
        let (at, mut errors) = (Path::new("limitedResources"), ErrorList::new());
        for (index, limited) in configuration.limited_resources.iter().enumerate() {
            if limited.resource.is_empty() {
                errors.push(at.index(index).child("resource").required(""));
            }
        }
        errors.into_result().map_err(|errors| errors.to_string())?;
        Ok(configuration)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configurations_are_read_strictly() {
        let limited = json!([{"resource": "pods", "matchContains": ["cpu"], "matchScopes": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]},
        ]}]);
        let of = |version: &str, kind: &str, limited: &Value| {
            Configuration::read(Some(&json!({"apiVersion": version, "kind": kind, "limitedResources": limited})))
        };
        let expected = of(API_VERSION, KIND, &limited).unwrap();
        assert!(expected.limited_resources[0].is_of("", "pods"));
        for version in OLD_VERSIONS {
            assert_eq!(of(version, OLD_KIND, &limited).as_ref(), Ok(&expected));
        }
        assert_eq!(Configuration::read(None), Ok(Configuration::default()));
        for (version, kind, limited, text) in [
            (API_VERSION, OLD_KIND, &limited, "no kind \"Configuration\" is registered for version"),
            (OLD_VERSIONS[0], KIND, &limited, "no kind \"ResourceQuotaConfiguration\" is registered"),
            (API_VERSION, KIND, &json!([{}]), "limitedResources[0].resource: Required value"),
            (API_VERSION, KIND, &json!([{"resources": "a"}]), "unknown field \"limitedResources[0].resources\""),
        ] {
            let problem = of(version, kind, limited).unwrap_err();
            assert!(problem.contains(text), "{limited}: {problem}");
        }
    }
}
