//! The numbers of a custom kind that its scale subresource shows.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::json;
use api_machinery::value::Value;
use kinds::rules::Scale;
use schema::JsonPath;

/// Where a definition says that one of them is.
#[derive(Debug, Clone)]
pub(super) struct ScalePath {
    /// As the definition has it, for errors.
    pub(super) text: String,
    pub(super) path: JsonPath,
}

/// Where the numbers of the scale subresource are.
#[derive(Debug, Clone)]
pub(super) struct ScalePaths {
    pub(super) spec_replicas: ScalePath,
    pub(super) status_replicas: ScalePath,
    pub(super) selector: Option<ScalePath>,
}

impl ScalePath {
    /// Nothing where the definition names no path that is understood.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self { text: text.to_owned(), path: JsonPath::parse(text)? })
    }

    /// Nothing where the object has nothing there; 0 instead of what a scale cannot show.
    fn found(&self, object: &Value) -> Option<i32> {
        let number = self.path.first(object)?.as_i64();
        Some(number.and_then(|number| i32::try_from(number).ok()).unwrap_or_default())
    }

    fn check_number(&self, object: &Value, errors: &mut ErrorList) {
        let Some(value) = self.path.first(object) else { return };
        let detail = match value.as_i64() {
            None => self.misfit(value, "int64"),
            Some(number) if number < 0 => "should be a non-negative integer".to_owned(),
            Some(number) if number > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
            Some(_) => return,
        };
        errors.push(Path::new(self.text.clone()).invalid(BadValue::json(json::encode_value(value)), detail));
    }

    fn misfit(&self, value: &Value, wanted: &str) -> String {
        let (shown, actual) = match value {
            Value::String(text) => (text.clone(), "string"),
            Value::Bool(value) => (value.to_string(), "bool"),
            Value::Number(number) => (number.to_string(), if number.is_f64() { "float64" } else { "int64" }),
            Value::Array(_) => (json::encode_value(value), "[]interface {}"),
            Value::Object(_) => (json::encode_value(value), "map[string]interface {}"),
            Value::Null => ("<nil>".to_owned(), "<nil>"),
        };
        format!("{} accessor error: {shown} is of the type {actual}, expected {wanted}", self.text)
    }
}

impl ScalePaths {
    /// What the subresource shows of an object.
    pub(super) fn scale(&self, object: &Value) -> Scale {
        let selector = self.selector.as_ref().and_then(|place| place.path.first(object)).and_then(Value::as_str);
        Scale {
            spec_replicas: self.spec_replicas.found(object).ok_or_else(|| self.spec_replicas.text.clone()),
            status_replicas: self.status_replicas.found(object).unwrap_or_default(),
            selector: selector.unwrap_or_default().to_owned(),
        }
    }

    /// Errors where the object has something else than the subresource can show.
    pub(super) fn check(&self, object: &Value, errors: &mut ErrorList) {
        self.spec_replicas.check_number(object, errors);
        self.status_replicas.check_number(object, errors);
        let Some(place) = &self.selector else { return };
        if let Some(value) = place.path.first(object).filter(|value| !value.is_string()) {
            let bad = BadValue::json(json::encode_value(value));
            errors.push(Path::new(place.text.clone()).invalid(bad, place.misfit(value, "string")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_a_scale_can_show_are_accepted() {
        let paths = ScalePaths {
            spec_replicas: ScalePath::parse(".spec.size").unwrap(),
            status_replicas: ScalePath::parse(".status.size").unwrap(),
            selector: ScalePath::parse(".status.selector"),
        };
        for (object, expected) in [
            ("{}", ""),
            (r#"{"spec": {"size": 2147483647}, "status": {"size": 0, "selector": "a=b"}}"#, ""),
            (r#"{"spec": {"size": -1}}"#, ".spec.size: Invalid value: -1: should be a non-negative integer"),
            (
                r#"{"status": {"size": 2147483648}}"#,
                ".status.size: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ),
            (
                r#"{"status": {"selector": 5}}"#,
                ".status.selector: Invalid value: 5: .status.selector accessor error: 5 is of the type int64, expected string",
            ),
        ] {
            let mut errors = ErrorList::new();
            paths.check(&json::parse_value(object).unwrap(), &mut errors);
            let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            assert_eq!(text, expected, "{object}");
        }
    }
}
