//! What the server's operator says of Pod Security: the policy of namespaces that say nothing, and who is exempt.
//! Concept: <https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-admission-controller/>

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names::{dns1123_label, dns1123_subdomain};
use api_machinery::value::Value;

use super::policy::{MODES, Policy};

const KIND: &str = "PodSecurityConfiguration";
const GROUP: &str = "pod-security.admission.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// `PodSecurityConfiguration`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodSecurityConfig {
    pub(super) defaults: Policy,
    exemptions: Exemptions,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Exemptions {
    usernames: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    runtime_classes: BTreeSet<String>,
}

impl PodSecurityConfig {
    /// Reads a configuration; unknown members are refused.
    ///
    /// # Errors
    /// Everything that is wrong with it, in one text.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let top = members(value, "", &["apiVersion", "kind", "defaults", "exemptions"])?;
        let text = |name: &str| top.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let known = VERSIONS.iter().any(|version| text("apiVersion") == format!("{GROUP}/{version}"));
        if !known || text("kind") != KIND {
            return Err(format!("no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion")));
        }
        let mut errors = ErrorList::new();
        let defaults = match top.get("defaults") {
            Some(defaults) => read_defaults(defaults, &mut errors)?,
            None => Policy::default(),
        };
        let exemptions = match top.get("exemptions") {
            Some(exemptions) => Exemptions::read(exemptions, &mut errors)?,
            None => Exemptions::default(),
        };
        if errors.is_empty() { Ok(Self { defaults, exemptions }) } else { Err(errors.to_string()) }
    }

    /// Whether what happens in a namespace is nobody's business.
    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        self.exemptions.namespaces.contains(name)
    }

    /// Whether what a user does is.
    pub(super) fn exempts_user(&self, name: &str) -> bool {
        self.exemptions.usernames.contains(name)
    }

    /// Whether pods of a runtime class are.
    pub(super) fn exempts_class(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.exemptions.runtime_classes.contains(name))
    }
}

type Members<'a> = BTreeMap<&'a str, &'a Value>;

/// The members of a map that may have these and no others.
fn members<'a>(value: &'a Value, at: &str, known: &[&str]) -> Result<Members<'a>, String> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok(Members::new()),
        _ => return Err(format!("{}: must be a map", if at.is_empty() { "configuration" } else { at })),
    };
    if let Some(name) = map.keys().find(|name| !known.contains(&name.as_str())) {
        let dot = if at.is_empty() { "" } else { "." };
        return Err(format!("strict decoding error: unknown field \"{at}{dot}{name}\""));
    }
    Ok(map.iter().map(|(name, value)| (name.as_str(), value)).collect())
}

fn read_defaults(value: &Value, errors: &mut ErrorList) -> Result<Policy, String> {
    let versions = MODES.map(|mode| format!("{mode}-version"));
    let known: Vec<&str> = MODES.into_iter().chain(versions.iter().map(String::as_str)).collect();
    let mut texts = BTreeMap::new();
    for (name, value) in members(value, "defaults", &known)? {
        let text = value.as_str().ok_or_else(|| format!("defaults.{name}: must be a text"))?;
        // An empty text is one that was left out.
        if !text.is_empty() {
            texts.insert(name.to_owned(), text.to_owned());
        }
    }
    let at = |name: &str| Path::new("defaults").child(name.to_owned());
    Ok(Policy::read(&texts, "", &Policy::default(), at, errors))
}

impl Exemptions {
    fn read(value: &Value, errors: &mut ErrorList) -> Result<Self, String> {
        let found = members(value, "exemptions", &["usernames", "namespaces", "runtimeClasses"])?;
        let mut list = |name: &'static str, check: fn(&str) -> Vec<String>| {
            found.get(name).map_or_else(|| Ok(BTreeSet::new()), |value| names(value, name, check, errors))
        };
        let no_name = |name: &str| if name.is_empty() { vec!["username must not be empty".to_owned()] } else { vec![] };
        Ok(Self {
            usernames: list("usernames", no_name)?,
            namespaces: list("namespaces", dns1123_label)?,
            runtime_classes: list("runtimeClasses", dns1123_subdomain)?,
        })
    }
}

fn names(
    value: &Value,
    name: &'static str,
    check: fn(&str) -> Vec<String>,
    errors: &mut ErrorList,
) -> Result<BTreeSet<String>, String> {
    let none = Vec::new();
    let items = match value {
        Value::Array(items) => items,
        Value::Null => &none,
        _ => return Err(format!("exemptions.{name}: must be a list")),
    };
    let mut found = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let text = item.as_str().ok_or_else(|| format!("exemptions.{name}[{index}]: must be a text"))?;
        let at = Path::new("exemptions").child(name).index(index);
        errors.push_invalid(&at, text, check(text));
        if !found.insert(text.to_owned()) {
            errors.push(at.duplicate(text));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(rest: Value) -> Value {
        let mut value = json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": KIND});
        if let (Value::Object(value), Value::Object(rest)) = (&mut value, rest) {
            value.extend(rest);
        }
        value
    }

    #[test]
    fn configurations_are_read_strictly() {
        let good = with(json!({
            "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted", "audit": ""},
            "exemptions": {"usernames": ["root"], "namespaces": ["kube-system"], "runtimeClasses": ["kata"]},
        }));
        let read = PodSecurityConfig::read(&good).unwrap();
        assert_eq!(read.defaults.enforce.to_string(), "baseline:v1.30");
        assert_eq!(read.defaults.warn.to_string(), "restricted:latest");
        assert!(read.exempts_user("root") && read.exempts_namespace("kube-system") && read.exempts_class(Some("kata")));
        assert!(!read.exempts_user("") && !read.exempts_namespace("default") && !read.exempts_class(None));
        assert_eq!(PodSecurityConfig::read(&with(json!({}))), Ok(PodSecurityConfig::default()));
        for (bad, expected) in [
            (json!({"apiVersion": "v1", "kind": KIND}), "no kind \"PodSecurityConfiguration\" is registered"),
            (with(json!({"default": {}})), "strict decoding error: unknown field \"default\""),
            (with(json!({"defaults": {"enforced": "x"}})), "unknown field \"defaults.enforced\""),
            (
                with(json!({"defaults": {"enforce": "strict"}})),
                "defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            ),
            (
                with(json!({"defaults": {"warn-version": "1.2"}})),
                "defaults.warn-version: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"",
            ),
            (
                with(json!({"exemptions": {"usernames": [""]}})),
                "exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
            ),
            (
                with(json!({"exemptions": {"namespaces": ["a", "a"]}})),
                "exemptions.namespaces[1]: Duplicate value: \"a\"",
            ),
            (with(json!({"exemptions": {"namespaces": ["A.b"]}})), "exemptions.namespaces[0]: Invalid value: \"A.b\""),
            (with(json!({"exemptions": {"runtimeClasses": ["A"]}})), "exemptions.runtimeClasses[0]: Invalid value"),
            (with(json!({"exemptions": []})), "exemptions: must be a map"),
        ] {
            let problem = PodSecurityConfig::read(&bad).unwrap_err();
            assert!(problem.contains(expected), "{bad}: {problem}");
        }
    }
}
