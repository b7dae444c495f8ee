//! The question and the answer: `AdmissionReview` in the version that the webhook knows.

use std::collections::BTreeMap;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::json;
use api_machinery::leaf::RawJson;
use api_machinery::meta::{self, Status};
use api_machinery::object::Object;
use api_types::admission_v1::{self, AdmissionRequest, AdmissionResponse};
use api_types::admission_v1beta1;
use api_types::authentication_v1::UserInfo;
use bytes::Bytes;

use crate::{Attributes, Pass};

const KIND: &str = "AdmissionReview";
const JSON_PATCH: &str = "JSONPatch";

/// The version of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    /// As v1, but nobody repeats the uid or has to say of what form a patch is.
    V1beta1,
}

impl ReviewVersion {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            admission_v1::VERSION => Some(Self::V1),
            admission_v1beta1::VERSION => Some(Self::V1beta1),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::V1 => admission_v1::VERSION,
            Self::V1beta1 => admission_v1beta1::VERSION,
        }
    }

    fn api_version(self) -> String {
        format!("{}/{}", admission_v1::GROUP, self.name())
    }
}

/// What a webhook is shown of a request.
#[derive(Clone, Copy)]
pub(crate) struct VersionedAttributes<'a> {
    /// The resource as it was matched: group, version and plural name.
    pub(crate) resource: [&'a str; 3],
    /// The kind that the objects are of.
    pub(crate) kind: &'a GroupVersionKind,
    pub(crate) object: Option<&'a dyn Object>,
    pub(crate) old: Option<&'a dyn Object>,
}

/// What a webhook says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReviewResponse {
    pub(crate) allowed: bool,
    pub(crate) status: Status,
    /// Operations to apply; empty for none.
    pub(crate) patch: Vec<u8>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

fn kind(own: &GroupVersionKind) -> meta::GroupVersionKind {
    meta::GroupVersionKind {
        group: own.group.to_string(),
        version: own.version.to_string(),
        kind: own.kind.to_string(),
    }
}

fn resource(place: [&str; 3]) -> meta::GroupVersionResource {
    let [group, version, resource] = place.map(str::to_owned);
    meta::GroupVersionResource { group, version, resource }
}

/// The question as it is sent.
pub(super) fn question(
    version: ReviewVersion,
    uid: &str,
    attributes: &Attributes,
    shown: &VersionedAttributes<'_>,
) -> Bytes {
    let raw = |object: Option<&dyn Object>| object.map(|own| RawJson::from_text(own.to_json())).unwrap_or_default();
    let request = AdmissionRequest {
        uid: uid.to_owned(),
        kind: kind(shown.kind),
        resource: resource(shown.resource),
        sub_resource: attributes.subresource.clone(),
        request_kind: Some(kind(&attributes.kind)),
        request_resource: Some(resource(attributes.place())),
        request_sub_resource: attributes.subresource.clone(),
        name: attributes.name.clone(),
        namespace: attributes.namespace.clone(),
        operation: attributes.operation.as_str().to_owned(),
        user_info: UserInfo::clone(&attributes.user),
        object: raw(shown.object),
        old_object: raw(shown.old),
        dry_run: Some(attributes.dry_run),
        options: attributes.options.to_json(),
    };
    let review = admission_v1::AdmissionReview { request: Some(request), response: None };
    json::encode_typed(KIND, &version.api_version(), &review).into()
}

/// What was answered.
///
/// # Errors
/// What is wrong with the answer; the texts are upstream's.
pub(super) fn read_response(
    body: &[u8],
    version: ReviewVersion,
    uid: &str,
    pass: Pass,
) -> Result<ReviewResponse, String> {
    let mut review = admission_v1::AdmissionReview::default();
    let decoded = json::decode(body, &mut review).map_err(|error| format!("failed to call webhook: {error}"))?;
    let invalid = |why: &str| format!("received invalid webhook response: {why}");
    let response = review.response.ok_or_else(|| invalid("webhook response was absent"))?;
    if version == ReviewVersion::V1 {
        if response.uid != uid {
            return Err(invalid(&format!("expected response.uid={uid:?}, got {:?}", response.uid)));
        }
        let got = &decoded.type_meta;
        if (got.kind.as_str(), got.api_version.as_str()) != (KIND, &version.api_version()) {
            let own = format!("{}, Kind={KIND}", version.api_version());
            let got = format!("{}, Kind={}", got.api_version, got.kind);
            return Err(invalid(&format!("expected webhook response of {own}, got {got}")));
        }
        check_patch(&response, pass).map_err(invalid)?;
    }
    let patch = if pass == Pass::Mutating { response.patch.0 } else { Vec::new() };
    if let Some(other) = response.patch_type.filter(|own| !patch.is_empty() && own != JSON_PATCH) {
        return Err(format!("unsupported patch type {other:?}"));
    }
    Ok(ReviewResponse {
        allowed: response.allowed,
        status: response.result.unwrap_or_default(),
        patch,
        audit_annotations: response.audit_annotations,
        warnings: response.warnings,
    })
}

/// Who changes objects says how; who does not may not.
fn check_patch(response: &AdmissionResponse, pass: Pass) -> Result<(), &'static str> {
    let has_patch = !response.patch.0.is_empty();
    let problem = match (pass, has_patch, response.patch_type.as_deref()) {
        (Pass::Validating, true, _) => "validating webhook may not return response.patch",
        (Pass::Validating, false, Some(_)) => "validating webhook may not return response.patchType",
        (Pass::Mutating, true, None) => "webhook returned response.patch but not response.patchType",
        (Pass::Mutating, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (Pass::Mutating, true, Some("")) => "webhook returned invalid response.patchType of \"\"",
        _ => return Ok(()),
    };
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use crate::plugins::testing::create;

    #[test]
    fn a_question_says_everything() {
        let attributes = Attributes {
            operation: Operation::Connect,
            kind: GroupVersionKind::new("", "v1", "PodExecOptions"),
            subresource: "exec".into(),
            namespace: "n".into(),
            dry_run: true,
            ..create("", "pods")
        };
        let shown = VersionedAttributes {
            resource: ["g", "v2", "pods"],
            kind: &GroupVersionKind::new("g", "v2", "P"),
            object: None,
            old: None,
        };
        for (version, api_version) in
            [(ReviewVersion::V1, "admission.k8s.io/v1"), (ReviewVersion::V1beta1, "admission.k8s.io/v1beta1")]
        {
            let asked = question(version, "u", &attributes, &shown);
            let asked: serde_json::Value = serde_json::from_slice(&asked).expect("JSON");
            let expected = serde_json::json!({
                "apiVersion": api_version, "kind": "AdmissionReview",
                "request": {
                    "uid": "u",
                    "kind": {"group": "g", "version": "v2", "kind": "P"},
                    "resource": {"group": "g", "version": "v2", "resource": "pods"},
                    "subResource": "exec",
                    "requestKind": {"group": "", "version": "v1", "kind": "PodExecOptions"},
                    "requestResource": {"group": "", "version": "v1", "resource": "pods"},
                    "requestSubResource": "exec",
                    "name": "x", "namespace": "n", "operation": "CONNECT", "userInfo": {},
                    "object": null, "oldObject": null, "dryRun": true, "options": null,
                },
            });
            assert_eq!(asked, expected);
        }
    }

    fn answered(response: &str, version: ReviewVersion, pass: Pass) -> Result<ReviewResponse, String> {
        let body =
            format!(r#"{{"apiVersion":"admission.k8s.io/{}","kind":"AdmissionReview"{response}}}"#, version.name());
        read_response(body.as_bytes(), version, "u", pass)
    }

    #[test]
    fn answers_have_to_fit_the_question() {
        use Pass::{Mutating, Validating};
        let ok = |response: &str, pass| answered(response, ReviewVersion::V1, pass).map(|own| own.allowed);
        let wrong = |why: &str| Err(format!("received invalid webhook response: {why}"));
        for (response, pass, expected) in [
            (r#","response":{"uid":"u","allowed":true}"#, Validating, Ok(true)),
            (r#","response":{"uid":"u","allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#, Mutating, Ok(true)),
            ("", Mutating, wrong("webhook response was absent")),
            (r#","response":{"uid":"x"}"#, Mutating, wrong(r#"expected response.uid="u", got "x""#)),
            (
                r#","response":{"uid":"u","patch":"W10="}"#,
                Mutating,
                wrong("webhook returned response.patch but not response.patchType"),
            ),
            (
                r#","response":{"uid":"u","patchType":"JSONPatch"}"#,
                Mutating,
                wrong("webhook returned response.patchType but not response.patch"),
            ),
            (
                r#","response":{"uid":"u","patch":"W10=","patchType":""}"#,
                Mutating,
                wrong("webhook returned invalid response.patchType of \"\""),
            ),
            (
                r#","response":{"uid":"u","patch":"W10=","patchType":"Merge"}"#,
                Mutating,
                Err("unsupported patch type \"Merge\"".to_owned()),
            ),
            (
                r#","response":{"uid":"u","patch":"W10="}"#,
                Validating,
                wrong("validating webhook may not return response.patch"),
            ),
            (
                r#","response":{"uid":"u","patchType":"JSONPatch"}"#,
                Validating,
                wrong("validating webhook may not return response.patchType"),
            ),
        ] {
            assert_eq!(ok(response, pass), expected, "{response}");
        }
        let other = br#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"uid":"u"}}"#;
        let text = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, \
                    Kind=AdmissionReview";
        assert_eq!(read_response(other, ReviewVersion::V1, "u", Mutating).map(|own| own.allowed), wrong(text));
        assert!(
            read_response(b"garbage", ReviewVersion::V1, "u", Mutating)
                .is_err_and(|own| own.starts_with("failed to call"))
        );
    }

    #[test]
    fn the_older_version_asks_for_less() {
        let patched = r#","response":{"allowed":true,"patch":"W10="}"#;
        let mutating = answered(patched, ReviewVersion::V1beta1, Pass::Mutating).expect("an answer");
        let validating = answered(patched, ReviewVersion::V1beta1, Pass::Validating).expect("an answer");
        assert_eq!((mutating.patch.as_slice(), validating.patch.as_slice()), (&b"[]"[..], &b""[..]));
        assert!(answered("", ReviewVersion::V1beta1, Pass::Mutating).is_err());
    }
}
