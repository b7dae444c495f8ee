//! `Configuration` of eventratelimit.admission.k8s.io.

use api_machinery::api;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::value::Value;
use api_types::apiserver_config_v1::decode;

const API_VERSION: &str = "eventratelimit.admission.k8s.io/v1alpha1";
/// Buckets kept for a limit that does not say how many, as upstream.
const DEFAULT_CACHE_SIZE: usize = 4096;

const SERVER: &str = "Server";
pub(super) const NAMESPACE: &str = "Namespace";
pub(super) const USER: &str = "User";
pub(super) const SOURCE_AND_OBJECT: &str = "SourceAndObject";
const TYPES: [&str; 4] = [SERVER, NAMESPACE, USER, SOURCE_AND_OBJECT];

/// The limits.
#[api]
pub(super) struct Configuration {
    /// Each holds.
    #[field(0, always)]
    pub(super) limits: Vec<Limit>,
}

/// One limit.
#[api]
pub(super) struct Limit {
    /// Which events share a bucket.
    #[field(0, always)]
    pub(super) type_: String,
    /// Events in a second, in the long run.
    #[field(0, always)]
    pub(super) qps: i32,
    /// Events at once.
    #[field(0, always)]
    pub(super) burst: i32,
    /// How many buckets are kept; 0 for as many as upstream keeps.
    #[field(0)]
    pub(super) cache_size: i32,
}

impl Limit {
    /// How many buckets are kept.
    pub(super) fn kept(&self) -> usize {
        match usize::try_from(self.cache_size) {
            _ if self.type_ == SERVER => 1,
            Ok(0) | Err(_) => DEFAULT_CACHE_SIZE,
            Ok(size) => size,
        }
    }
}

impl Configuration {
    /// Reads it; where there is none, there are no limits, which is wrong.
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let mut configuration = Self::default();
        if let Some(value) = value {
            decode(value.clone(), "Configuration", &[API_VERSION], &mut configuration)?;
        }
        configuration.validate().into_result().map_err(|errors| errors.to_string())?;
        Ok(configuration)
    }

    fn validate(&self) -> ErrorList {
        let (limits, mut errors) = (Path::new("limits"), ErrorList::new());
        if self.limits.is_empty() {
            errors.push(limits.invalid(BadValue::null(), "must not be empty"));
        }
        for (index, limit) in self.limits.iter().enumerate() {
            let at = limits.index(index);
            if !TYPES.contains(&limit.type_.as_str()) {
                errors.push(at.child("type").not_supported(BadValue::named(&limit.type_), &TYPES));
            }
            if limit.burst <= 0 {
                errors.push(at.child("burst").invalid(limit.burst, "must be positive"));
            }
            if limit.qps <= 0 {
                errors.push(at.child("qps").invalid(limit.qps, "must be positive"));
            }
            if limit.type_ != SERVER && limit.cache_size < 0 {
                errors.push(at.child("cacheSize").invalid(limit.cache_size, "must not be negative"));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configurations_are_read_strictly() {
        let with = |limits: Value| json!({"apiVersion": API_VERSION, "kind": "Configuration", "limits": limits});
        let good = with(json!([
            {"type": "Server", "qps": 50, "burst": 100, "cacheSize": 7},
            {"type": "User", "qps": 1, "burst": 2},
            {"type": "Namespace", "qps": 1, "burst": 2, "cacheSize": 7},
        ]));
        let kept: Vec<usize> = Configuration::read(Some(&good)).unwrap().limits.iter().map(Limit::kept).collect();
        assert_eq!(kept, [1, DEFAULT_CACHE_SIZE, 7]);
        let empty = "limits: Invalid value: null: must not be empty";
        assert_eq!(Configuration::read(None), Err(empty.to_owned()));
        for (bad, expected) in [
            (json!({"apiVersion": "v1", "kind": "Configuration"}), "no kind \"Configuration\" is registered"),
            (with(json!([])), empty),
            (with(json!([{"type": "User", "qps": 1, "burst": 1, "size": 1}])), "unknown field \"limits[0].size\""),
            (
                with(json!([{"type": "Pod", "qps": 1, "burst": 1}])),
                "limits[0].type: Unsupported value: \"Pod\": supported values: \"Namespace\", \"Server\", \
                 \"SourceAndObject\", \"User\"",
            ),
            (
                with(json!([{"type": "User", "cacheSize": -1}])),
                "[limits[0].burst: Invalid value: 0: must be positive, limits[0].qps: Invalid value: 0: must be \
                 positive, limits[0].cacheSize: Invalid value: -1: must not be negative]",
            ),
        ] {
            let problem = Configuration::read(Some(&bad)).unwrap_err();
            assert!(problem.contains(expected), "{bad}: {problem}");
        }
    }
}
