//! The objects of files: read strictly, completed and checked as if they were created through the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::json;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use api_machinery::yaml::{self, YamlError};
use api_types::admissionregistration_v1::GROUP;
use component_base::Gates;
use kinds::admissionregistration_v1::STATIC_SUFFIX;
use kinds::rules::{RuleContext, Rules};

use super::constraints::{self, Constraint};
use crate::negotiate::MediaType;
use crate::request::decode_object;

/// The version that files state.
const VERSION: &str = "v1";

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// It is not YAML.
    #[error("{file:?}: {source}")]
    Yaml {
        /// The file.
        file: String,
        /// Why.
        source: YamlError,
    },
    /// It states something else than the plugin takes.
    #[error("{file:?}: unsupported resource {api_version}, Kind={kind}: only {} are supported here", .known.join(", "))]
    Kind {
        /// The file.
        file: String,
        /// What it states.
        api_version: String,
        /// What it states.
        kind: String,
        /// What the plugin takes.
        known: Vec<&'static str>,
    },
    /// An object cannot be read.
    #[error("{file:?}: {error}")]
    Decode {
        /// The file.
        file: String,
        /// Why.
        error: ApiError,
    },
    /// It has fields that its kind does not have, or some twice.
    #[error("{file:?}: strict decoding error: {}", .problems.join(", "))]
    Strict {
        /// The file.
        file: String,
        /// Which.
        problems: Vec<String>,
    },
    /// An object has no name.
    #[error("resource in file {file:?} must have a name")]
    Nameless {
        /// The file.
        file: String,
    },
    /// An object is called as only those of the API may be.
    #[error("{name:?} in file {file:?} must have a name ending with \"{STATIC_SUFFIX}\"")]
    Suffix {
        /// The object.
        name: String,
        /// The file.
        file: String,
    },
    /// Two objects of a kind have the same name.
    #[error("duplicate name {name:?} found in file {file:?} (previously seen in {former:?})")]
    Duplicate {
        /// The name.
        name: String,
        /// The file of the second.
        file: String,
        /// The file of the first.
        former: String,
    },
    /// An object needs what files do not have.
    #[error("{about} (file {file:?}): {why}")]
    Constraint {
        /// The file.
        file: String,
        /// The object, or what of it.
        about: String,
        /// What it needs.
        why: Constraint,
    },
    /// An object is not sound.
    #[error("{name:?} in file {file:?} is invalid: {errors}")]
    Invalid {
        /// The object.
        name: String,
        /// The file.
        file: String,
        /// Why.
        errors: ErrorList,
    },
}

/// An object, and the file that states it.
pub(super) struct Stated {
    pub(super) file: String,
    pub(super) object: Box<dyn Object>,
}

/// The objects of files, by kind and name.
pub(super) fn of(
    files: &BTreeMap<String, String>,
    kinds: &'static [&'static str],
    gates: &Gates,
) -> Result<Vec<Arc<dyn Object>>, ManifestError> {
    let cx = RuleContext { gates: gates.clone(), ..RuleContext::default() };
    let mut all: BTreeMap<(String, String), Stated> = BTreeMap::new();
    for (file, text) in files {
        for document in yaml::documents(text) {
            let document =
                yaml::parse(document).map_err(|source| ManifestError::Yaml { file: file.clone(), source })?;
            if !document.duplicates.is_empty() {
                return Err(ManifestError::Strict { file: file.clone(), problems: document.duplicates });
            }
            for item in items(document.value) {
                let (rules, object) = decoded(file, &item, kinds)?;
                let place = (rules.info().kind.to_owned(), object.meta().name.clone());
                check_name(file, &place, &all)?;
                let object = checked(&cx, file, rules, object)?;
                all.insert(place, Stated { file: file.clone(), object });
            }
        }
    }
    constraints::check_bindings(&all)?;
    Ok(all.into_values().map(|own| Arc::from(own.object)).collect())
}

/// The objects of a document: those of a list, or the one that it is. Nothing where it says nothing.
fn items(document: Value) -> Vec<Value> {
    let is = |name: &str, text: &str| document.get(name).and_then(Value::as_str) == Some(text);
    if is("kind", "List") && is("apiVersion", "v1") {
        let listed = document.get("items").and_then(Value::as_array).cloned();
        return listed.unwrap_or_default();
    }
    if document.is_null() { Vec::new() } else { vec![document] }
}

/// The object of a value, with its defaults.
fn decoded(
    file: &str,
    item: &Value,
    kinds: &'static [&'static str],
) -> Result<(&'static dyn Rules, Box<dyn Object>), ManifestError> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let file = || file.to_owned();
    let is_it = |rules: &&'static dyn Rules| {
        let info = rules.info();
        (info.group, info.version, info.kind) == (GROUP, VERSION, text("kind")) && kinds.contains(&info.kind)
    };
    let known = kinds::all().find(is_it).filter(|rules| rules.info().api_version() == text("apiVersion"));
    let Some(rules) = known else {
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        return Err(ManifestError::Kind { file: file(), api_version, kind, known: kinds.to_vec() });
    };
    let body = json::encode_value(item);
    let decoded = decode_object(rules, None, MediaType::Json, body.as_bytes())
        .map_err(|error| ManifestError::Decode { file: file(), error })?;
    if decoded.problems.is_empty() {
        Ok((rules, decoded.object))
    } else {
        Err(ManifestError::Strict { file: file(), problems: decoded.problems })
    }
}

fn check_name(
    file: &str,
    place: &(String, String),
    all: &BTreeMap<(String, String), Stated>,
) -> Result<(), ManifestError> {
    let (name, file) = (place.1.clone(), file.to_owned());
    if name.is_empty() {
        return Err(ManifestError::Nameless { file });
    }
    if !name.ends_with(STATIC_SUFFIX) {
        return Err(ManifestError::Suffix { name, file });
    }
    match all.get(place) {
        Some(former) => Err(ManifestError::Duplicate { name, file, former: former.file.clone() }),
        None => Ok(()),
    }
}

/// The object as it counts, if it may.
fn checked(
    cx: &RuleContext,
    file: &str,
    rules: &dyn Rules,
    mut object: Box<dyn Object>,
) -> Result<Box<dyn Object>, ManifestError> {
    constraints::check(&*object).map_err(|(about, why)| ManifestError::Constraint {
        file: file.to_owned(),
        about,
        why,
    })?;
    rules.prepare_create(cx, &mut *object);
    let name = object.meta().name.clone();
    let mut errors = ErrorList::new();
    errors.push_invalid(&Path::new("metadata").child("name"), &name, rules.validate_new_name(cx, &name, false));
    errors.extend(rules.validate_create(cx, &*object));
    if errors.is_empty() { Ok(object) } else { Err(ManifestError::Invalid { name, file: file.to_owned(), errors }) }
}

#[cfg(test)]
mod tests {
    use super::super::SOURCES;
    use super::*;

    const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: \
                          NAME}\nspec:\n  MORE\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], \
                          operations: [CREATE], resources: [pods]}]}\n  validations: [{expression: EXPRESSION}]\n";
    const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: \
                           {name: NAME}\nspec:\n  policyName: POLICY\n  MORE\n  validationActions: [Deny]\n";
    const WEBHOOK: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: \
                           {name: w.static.k8s.io}\nwebhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: \
                           [v1], clientConfig: {CLIENT}}]\n";

    fn policy(name: &str, expression: &str, more: &str) -> String {
        POLICY.replace("NAME", name).replace("EXPRESSION", expression).replace("MORE", more)
    }

    fn binding(name: &str, policy: &str, more: &str) -> String {
        BINDING.replace("NAME", name).replace("POLICY", policy).replace("MORE", more)
    }

    /// What the files of a plugin come to: kinds and names, or the mistake.
    fn read(plugin: &str, files: &[(&str, String)]) -> Result<Vec<String>, String> {
        let source = SOURCES.iter().find(|source| source.plugin == plugin).unwrap();
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
        let objects = of(&files, source.kinds, &Gates::default()).map_err(|error| error.to_string())?;
        Ok(objects.iter().map(|own| format!("{} {}", own.kind(), own.meta().name)).collect())
    }

    #[test]
    fn files_state_objects_one_after_another_or_in_lists() {
        let (policy, binding) =
            (policy("p.static.k8s.io", "'true'", ""), binding("b.static.k8s.io", "p.static.k8s.io", ""));
        let both = ["ValidatingAdmissionPolicy p.static.k8s.io", "ValidatingAdmissionPolicyBinding b.static.k8s.io"];
        let both: Vec<String> = both.map(str::to_owned).into();
        let item = |text: &str| json::encode_value(&yaml::parse(text).unwrap().value);
        let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{},{}]}}"#, item(&binding), item(&policy));
        for files in [
            vec![("a.yaml", format!("---\n{policy}---\n{binding}---\n"))],
            vec![("a.yaml", binding.clone()), ("b.yaml", policy.clone())],
            vec![("a.json", list)],
        ] {
            assert_eq!(read("ValidatingAdmissionPolicy", &files).as_ref(), Ok(&both), "{files:?}");
        }
        assert_eq!(read("ValidatingAdmissionPolicy", &[("a.yaml", "# nothing\n".to_owned())]), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_count_is_refused_with_its_file() {
        let good = || policy("p.static.k8s.io", "'true'", "");
        let webhook = |client: &str| WEBHOOK.replace("CLIENT", client);
        let params = "paramKind: {apiVersion: v1, kind: ConfigMap}";
        for (plugin, text, expected) in [
            ("ValidatingAdmissionPolicy", "a: [\n".to_owned(), "\"f.yaml\": error converting YAML to JSON"),
            ("ValidatingAdmissionPolicy", webhook("url: 'https://h'"), "unsupported resource"),
            ("ValidatingAdmissionPolicy", good().replace("io/v1\n", "io/v1beta1\n"), "unsupported resource"),
            ("ValidatingAdmissionPolicy", good().replace("spec:", "spce: 1\nspec:"), "unknown field \"spce\""),
            ("ValidatingAdmissionPolicy", good() + "kind: X\n", "already set in map"),
            ("ValidatingAdmissionPolicy", policy("''", "'true'", ""), "resource in file \"f.yaml\" must have a name"),
            (
                "ValidatingAdmissionPolicy",
                policy("p", "'true'", ""),
                "\"p\" in file \"f.yaml\" must have a name ending with \".static.k8s.io\"",
            ),
            (
                "ValidatingAdmissionPolicy",
                format!("{0}---\n{0}", good()),
                "duplicate name \"p.static.k8s.io\" found in file \"f.yaml\" (previously seen in \"f.yaml\")",
            ),
            ("ValidatingAdmissionPolicy", policy("p.static.k8s.io", "'1 +'", ""), "is invalid: spec.validations[0]"),
            ("ValidatingAdmissionPolicy", policy("P.static.k8s.io", "'true'", ""), "is invalid: metadata.name"),
            (
                "ValidatingAdmissionPolicy",
                policy("p.static.k8s.io", "'true'", params),
                "ValidatingAdmissionPolicy \"p.static.k8s.io\" (file \"f.yaml\"): spec.paramKind is not supported for static manifests",
            ),
            (
                "ValidatingAdmissionPolicy",
                good() + "---\n" + &binding("b.static.k8s.io", "p.static.k8s.io", "paramRef: {name: a}"),
                "spec.paramRef is not supported for static manifests",
            ),
            (
                "ValidatingAdmissionPolicy",
                binding("b.static.k8s.io", "p", ""),
                "spec.policyName \"p\" must end with \".static.k8s.io\"",
            ),
            (
                "ValidatingAdmissionPolicy",
                binding("b.static.k8s.io", "p.static.k8s.io", ""),
                "spec.policyName \"p.static.k8s.io\" is not the name of a policy in the same directory",
            ),
            (
                "ValidatingAdmissionWebhook",
                webhook("service: {name: s, namespace: ns}"),
                "webhook \"a.b.c\" in \"w.static.k8s.io\" (file \"f.yaml\"): clientConfig.service is not supported for \
                 static manifests; use clientConfig.url instead",
            ),
            ("ValidatingAdmissionWebhook", webhook(""), "clientConfig.url is required for static manifests"),
            ("ValidatingAdmissionWebhook", webhook("url: 'http://h'"), "is invalid: webhooks[0].clientConfig.url"),
        ] {
            let problem = read(plugin, &[("f.yaml", text.clone())]).unwrap_err();
            assert!(problem.contains(expected) && problem.contains("f.yaml"), "{text}\n{problem}");
        }
        let twice = [("a.yaml", good()), ("b.yaml", good())];
        let problem = read("ValidatingAdmissionPolicy", &twice).unwrap_err();
        assert!(problem.ends_with("found in file \"b.yaml\" (previously seen in \"a.yaml\")"), "{problem}");
    }
}
