//! The rules of access reviews.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::json;
use api_machinery::meta::ObjectMeta;
use api_machinery::names;
use api_machinery::status::ApiError;
use api_types::authorization_v1::{NonResourceAttributes, ResourceAttributes};

/// The group of the reviews that are checked here.
pub(super) const AUTHORIZATION: &str = "authorization.k8s.io";

const BOTH: &str = "cannot be specified in combination with resourceAttributes";
const NEITHER: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
const NEEDS_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const NO_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// The answer to a review that breaks rules; upstream leaves out of which kind it is.
pub(super) fn refuse(errors: &ErrorList) -> Result<(), ApiError> {
    let kind = GroupKind { group: AUTHORIZATION.into(), kind: "".into() };
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&kind, "", errors)) }
}

/// Who the review is about; nobody where it is about the caller.
pub(super) type Subject<'a> = Option<(&'a str, &'a [String])>;

fn subject((user, groups): (&str, &[String]), errors: &mut ErrorList) {
    if user.is_empty() && groups.is_empty() {
        let path = Path::new("spec").child("user");
        errors.push(path.invalid(user, "at least one of user or group must be specified"));
    }
}

/// A path as upstream prints it, by the names of its own fields.
pub(super) fn shown(path: &NonResourceAttributes) -> BadValue {
    let text = |value: &str| json::encode_value(&value.into());
    BadValue::json(format!("{{\"Path\":{},\"Verb\":{}}}", text(&path.path), text(&path.verb)))
}

/// What and whom the review is about.
pub(super) fn attributes(
    whom: Subject<'_>,
    resource: Option<&ResourceAttributes>,
    path: Option<&NonResourceAttributes>,
    errors: &mut ErrorList,
) {
    let spec = Path::new("spec");
    match (resource, path) {
        (Some(_), Some(path)) => {
            errors.push(spec.child("nonResourceAttributes").invalid(shown(path), BOTH));
        }
        (None, None) => errors.push(spec.child("resourceAttributes").invalid(BadValue::null(), NEITHER)),
        _ => {}
    }
    if let Some(whom) = whom {
        subject(whom, errors);
    }
    let Some(resource) = resource else { return };
    let at = spec.child("resourceAttributes");
    if let Some(selector) = &resource.field_selector {
        let requirements = selector.requirements.iter().map(|own| (&own.key, &own.operator, &own.values));
        let own = SelectorRules { path: at.child("fieldSelector"), name: "fieldSelector", of_labels: false };
        own.check(&selector.raw_selector, requirements, errors);
    }
    if let Some(selector) = &resource.label_selector {
        let requirements = selector.requirements.iter().map(|own| (&own.key, &own.operator, &own.values));
        let own = SelectorRules { path: at.child("labelSelector"), name: "labelSelector", of_labels: true };
        own.check(&selector.raw_selector, requirements, errors);
    }
}

/// The rules of a field or label selector.
struct SelectorRules {
    path: Path,
    name: &'static str,
    of_labels: bool,
}

impl SelectorRules {
    fn check<'a>(
        &self,
        raw: &str,
        requirements: impl ExactSizeIterator<Item = (&'a String, &'a String, &'a Vec<String>)>,
        errors: &mut ErrorList,
    ) {
        if !raw.is_empty() && requirements.len() > 0 {
            let path = self.path.child("rawSelector");
            errors.push(path.invalid(raw, "may not specified at the same time as requirements"));
        }
        if raw.is_empty() && requirements.len() == 0 {
            let name = self.name;
            errors.push(self.path.child("requirements").required(format!(
                "when spec.resourceAttributes.{name} is specified, requirements or rawSelector is required"
            )));
        }
        for (index, (key, operator, values)) in requirements.enumerate() {
            let path = self.path.child("requirements").index(index);
            self.check_key(&path, key, errors);
            match (operator.as_str(), values.is_empty()) {
                ("In" | "NotIn", true) => errors.push(path.child("values").required(NEEDS_VALUES)),
                ("Exists" | "DoesNotExist", false) => errors.push(path.child("values").forbidden(NO_VALUES)),
                _ => {}
            }
            if self.of_labels {
                for (index, value) in values.iter().enumerate() {
                    errors.push_invalid(&path.child("values").index(index), value, names::label_value(value));
                }
            }
        }
    }

    fn check_key(&self, path: &Path, key: &str, errors: &mut ErrorList) {
        if self.of_labels {
            errors.push_invalid(&path.child("key"), key, names::qualified_name(key));
        } else if key.is_empty() {
            errors.push(path.child("key").required("must be specified"));
        }
    }
}

/// Reviews have no metadata; `LocalSubjectAccessReview` has a namespace.
pub(super) fn metadata(meta: &ObjectMeta, local: bool, errors: &mut ErrorList) {
    let mut rest = ObjectMeta { managed_fields: Vec::new(), ..meta.clone() };
    if local {
        rest.namespace.clear();
    }
    if rest != ObjectMeta::default() {
        let detail = if local { "must be empty except for namespace" } else { "must be empty" };
        errors.push(Path::new("metadata").invalid(BadValue::json(json::encode(meta)), detail));
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::FieldSelectorRequirement;
    use api_types::authorization_v1::FieldSelectorAttributes;

    use super::*;

    fn problems(resource: Option<ResourceAttributes>, path: Option<NonResourceAttributes>) -> String {
        let mut errors = ErrorList::default();
        attributes(None, resource.as_ref(), path.as_ref(), &mut errors);
        errors.to_string()
    }

    fn selecting(raw: &str, requirements: Vec<FieldSelectorRequirement>) -> Option<ResourceAttributes> {
        let field_selector = Some(FieldSelectorAttributes { raw_selector: raw.into(), requirements });
        Some(ResourceAttributes { field_selector, ..ResourceAttributes::default() })
    }

    #[test]
    fn refusals_name_no_kind() {
        let error = refuse(&Path::new("spec").required("").into()).unwrap_err();
        assert_eq!(error.message, ".authorization.k8s.io \"\" is invalid: spec: Required value");
    }

    #[test]
    fn rules_have_upstreams_texts() {
        let path = Some(NonResourceAttributes::default());
        let resource = Some(ResourceAttributes::default());
        let expected = r#"Invalid value: {"Path":"/a","Verb":"get"}: cannot be specified in combination"#;
        let both = NonResourceAttributes { path: "/a".into(), verb: "get".into() };
        assert!(problems(resource.clone(), Some(both)).contains(expected));
        assert!(problems(None, None).contains(&format!("Invalid value: null: {NEITHER}")));
        assert_eq!(problems(resource, None), "[]");
        assert_eq!(problems(None, path), "[]");
        assert!(problems(selecting("", vec![]), None).contains("requirements or rawSelector is required"));
        let requirement = FieldSelectorRequirement { key: "a".into(), operator: "In".into(), values: vec![] };
        assert!(problems(selecting("", vec![requirement.clone()]), None).contains(NEEDS_VALUES));
        assert!(problems(selecting("a=b", vec![requirement]), None).contains("may not specified at the same time"));
        let path = NonResourceAttributes { path: "/\"".into(), verb: "get".into() };
        let both = problems(Some(ResourceAttributes::default()), Some(path));
        assert!(both.contains(r#"Invalid value: {"Path":"/\"","Verb":"get"}: cannot"#), "{both}");
    }

    #[test]
    fn refusals_are_of_no_kind_and_name_the_subject_first() {
        let mut errors = ErrorList::default();
        attributes(Some(("", &[])), selecting("", vec![]).as_ref(), None, &mut errors);
        let refusal = refuse(&errors).unwrap_err();
        let start = ".authorization.k8s.io \"\" is invalid: [spec.user: Invalid value: \"\": ";
        assert!(refusal.message.starts_with(start), "{refusal}");
        assert_eq!(refusal.details.unwrap().kind, "");
    }
}
