//! A question as `ConversionReview`, and its answer.

use api_machinery::value::Value;
use serde_json::json;

/// Which form of the review a webhook understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// Why an answer is of no use.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum AnswerError {
    #[error("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {0}")]
    OtherKind(String),
    #[error("no response provided")]
    NoResponse,
    #[error("expected response.uid={wanted:?}, got {given:?}")]
    OtherQuestion { wanted: String, given: String },
    #[error("{0}")]
    Refused(String),
    #[error("response.result.status was '{0}', not 'Success'")]
    NotSuccess(String),
    #[error("{0}")]
    NoJson(String),
}

impl ReviewVersion {
    /// The first of these that is understood here.
    pub(super) fn of(versions: &[String]) -> Option<Self> {
        versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.k8s.io/v1",
            Self::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }

    pub(super) fn question(self, uid: &str, wanted: &str, objects: Vec<Value>) -> Value {
        json!({
            "kind": "ConversionReview",
            "apiVersion": self.api_version(),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        })
    }

    /// The converted objects of an answer.
    pub(super) fn answer(self, body: &[u8], uid: &str) -> Result<Vec<Value>, AnswerError> {
        let mut review: Value = serde_json::from_slice(body).map_err(|error| AnswerError::NoJson(error.to_string()))?;
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if self == Self::V1 {
            let (version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
            if (version.as_str(), kind.as_str()) != (self.api_version(), "ConversionReview") {
                return Err(AnswerError::OtherKind(format!("{version}, Kind={kind}")));
            }
        }
        let Some(response @ Value::Object(_)) = review.get_mut("response") else { return Err(AnswerError::NoResponse) };
        let given = text(response, "uid");
        if self == Self::V1 && given != uid {
            return Err(AnswerError::OtherQuestion { wanted: uid.to_owned(), given });
        }
        let result = response.get("result").unwrap_or(&Value::Null);
        match (text(result, "status"), text(result, "message")) {
            (status, _) if status == "Success" => {}
            (_, message) if !message.is_empty() => return Err(AnswerError::Refused(message)),
            (status, _) => return Err(AnswerError::NotSuccess(status)),
        }
        match response.get_mut("convertedObjects").map(Value::take) {
            Some(Value::Array(objects)) => Ok(objects),
            _ => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_to_the_question() {
        let v1 = |response: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        let success = json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"a": 1}]});
        for (version, answer, expected) in [
            (ReviewVersion::V1, v1(success.clone()), Ok(1)),
            (ReviewVersion::V1Beta1, json!({"response": success.clone()}), Ok(1)),
            (
                ReviewVersion::V1,
                json!({"response": success}),
                Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind="),
            ),
            (ReviewVersion::V1, v1(Value::Null), Err("no response provided")),
            (ReviewVersion::V1, v1(json!({"uid": "x"})), Err("expected response.uid=\"u\", got \"x\"")),
            (ReviewVersion::V1, v1(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}})), Err("no")),
            (ReviewVersion::V1, v1(json!({"uid": "u"})), Err("response.result.status was '', not 'Success'")),
            (
                ReviewVersion::V1,
                v1(json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": null})),
                Ok(0),
            ),
        ] {
            let found = version.answer(answer.to_string().as_bytes(), "u");
            let found = found.map(|objects| objects.len()).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{answer}");
        }
        assert!(ReviewVersion::V1.answer(b"<html>", "u").is_err());
    }

    #[test]
    fn the_first_version_that_is_known_is_used() {
        let of = |versions: &[&str]| ReviewVersion::of(&versions.iter().map(|&own| own.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["v2", "v1beta1", "v1"]), Some(ReviewVersion::V1Beta1));
        assert_eq!(of(&["v2"]), None);
    }
}
