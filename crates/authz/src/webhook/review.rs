//! The question and the answer: `SubjectAccessReview` in the version that the webhook speaks.

use api_machinery::json;
use api_machinery::meta::{FieldSelectorRequirement, LabelSelectorRequirement};
use api_machinery::value::Value;
use api_types::authentication_v1::UserInfo;
use api_types::authorization_v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use bytes::Bytes;

use crate::Attributes;

const KIND: &str = "SubjectAccessReview";

/// The version of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// authorization.k8s.io/v1.
    V1,
    /// authorization.k8s.io/v1beta1, which says `group` for `groups`.
    V1beta1,
}

impl ReviewVersion {
    /// The versions by name.
    pub const NAMES: [&str; 2] = ["v1", "v1beta1"];

    /// The version of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "authorization.k8s.io/v1",
            Self::V1beta1 => "authorization.k8s.io/v1beta1",
        }
    }
}

/// What is asked about a request.
pub(super) fn spec(attributes: &Attributes) -> SubjectAccessReviewSpec {
    let user = UserInfo::clone(&attributes.user);
    let (resource_attributes, non_resource_attributes) = if attributes.resource_request {
        (Some(of_resource(attributes)), None)
    } else {
        let (path, verb) = (attributes.path.clone(), attributes.verb.clone());
        (None, Some(NonResourceAttributes { path, verb }))
    };
    SubjectAccessReviewSpec {
        resource_attributes,
        non_resource_attributes,
        user: user.username,
        groups: user.groups,
        extra: user.extra,
        uid: user.uid,
    }
}

fn of_resource(attributes: &Attributes) -> ResourceAttributes {
    let own = attributes;
    let fields = own.field_selector.iter().cloned().map(|one| FieldSelectorRequirement {
        key: one.key,
        operator: one.operator,
        values: one.values,
    });
    let labels = own.label_selector.iter().cloned().map(|one| LabelSelectorRequirement {
        key: one.key,
        operator: one.operator,
        values: one.values,
    });
    ResourceAttributes {
        namespace: own.namespace.clone(),
        verb: own.verb.clone(),
        group: own.group.clone(),
        version: own.version.clone(),
        resource: own.resource.clone(),
        subresource: own.subresource.clone(),
        name: own.name.clone(),
        field_selector: (!own.field_selector.is_empty())
            .then(|| FieldSelectorAttributes { requirements: fields.collect(), ..Default::default() }),
        label_selector: (!own.label_selector.is_empty())
            .then(|| LabelSelectorAttributes { requirements: labels.collect(), ..Default::default() }),
    }
}

/// The question as it is sent.
pub(super) fn question(spec: SubjectAccessReviewSpec, version: ReviewVersion) -> Bytes {
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let text = json::encode_typed(KIND, version.api_version(), &review);
    match version {
        ReviewVersion::V1 => text.into(),
        ReviewVersion::V1beta1 => renamed(&text).into(),
    }
}

fn renamed(text: &str) -> String {
    let mut value = json::parse_value(text).unwrap_or_default();
    if let Value::Object(review) = &mut value
        && let Some(Value::Object(spec)) = review.get_mut("spec")
        && let Some(groups) = spec.remove("groups")
    {
        spec.insert("group".to_owned(), groups);
    }
    json::encode_value(&value)
}

/// What was answered.
///
/// # Errors
/// When it is no review of this version.
pub(super) fn answer(body: &[u8], version: ReviewVersion) -> Result<SubjectAccessReviewStatus, String> {
    let mut review = SubjectAccessReview::default();
    let decoded = json::decode(body, &mut review).map_err(|error| error.to_string())?;
    let own = (decoded.type_meta.api_version.as_str(), decoded.type_meta.kind.as_str());
    if own != (version.api_version(), KIND) {
        return Err(format!("expected {KIND} of {}, got {:?} of {:?}", version.api_version(), own.1, own.0));
    }
    Ok(review.status)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::SelectorRequirement;

    fn asked(attributes: &Attributes, version: ReviewVersion) -> serde_json::Value {
        serde_json::from_slice(&question(spec(attributes), version)).expect("JSON")
    }

    #[test]
    fn a_question_says_everything() {
        let user = UserInfo { username: "ann".into(), groups: vec!["g".into()], ..UserInfo::default() };
        let user = Arc::new(user);
        let requirement = |key: &str, operator: &str, values: &[&str]| SelectorRequirement {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(|&own| own.into()).collect(),
        };
        let attributes = Attributes {
            user: Arc::clone(&user),
            verb: "list".into(),
            resource_request: true,
            namespace: "n".into(),
            version: "v1".into(),
            resource: "pods".into(),
            field_selector: vec![requirement("spec.nodeName", "In", &["a"])],
            label_selector: vec![requirement("app", "Exists", &[])],
            ..Attributes::default()
        };
        let v1 = asked(&attributes, ReviewVersion::V1);
        assert_eq!((&v1["apiVersion"], &v1["kind"]), (&json!("authorization.k8s.io/v1"), &json!(KIND)));
        assert_eq!(v1["spec"]["user"], "ann");
        assert_eq!(v1["spec"]["groups"], json!(["g"]));
        assert_eq!(
            v1["spec"]["resourceAttributes"],
            json!({
                "namespace": "n", "verb": "list", "version": "v1", "resource": "pods",
                "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["a"]}]},
                "labelSelector": {"requirements": [{"key": "app", "operator": "Exists"}]},
            })
        );
        let beta = asked(&attributes, ReviewVersion::V1beta1);
        assert_eq!((&beta["spec"]["group"], &beta["spec"]["groups"]), (&json!(["g"]), &serde_json::Value::Null));
        let path = Attributes { user, verb: "get".into(), path: "/version".into(), ..Attributes::default() };
        let path = asked(&path, ReviewVersion::V1);
        assert_eq!(path["spec"]["nonResourceAttributes"], json!({"path": "/version", "verb": "get"}));
        assert!(path["spec"].get("resourceAttributes").is_none());
    }

    #[test]
    fn answers_of_another_kind_are_none() {
        let good =
            br#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}"#;
        assert!(answer(good, ReviewVersion::V1).expect("an answer").allowed);
        assert!(answer(good, ReviewVersion::V1beta1).is_err());
        for bad in [&b"garbage"[..], b"", b"{}", br#"{"apiVersion":"v1","kind":"Status"}"#] {
            assert!(answer(bad, ReviewVersion::V1).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
