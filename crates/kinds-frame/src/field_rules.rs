//! Small rules over one field that the validation of many kinds is made of. Each appends what it finds to a list, so
//! that the rules of a struct read as one line for each field, in upstream's order.

use api_machinery::field_path::{BadValue, ErrorList, Path};

/// What a value less than zero is told.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What a value that is not above zero is told.
pub const POSITIVE: &str = "must be greater than zero";
/// What a changed field is told that may not change.
pub const IMMUTABLE: &str = "field is immutable";
/// What file mode bits out of range are told.
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// A named value rule of `api_machinery::names`.
pub type NameRule = fn(&str) -> Vec<String>;

/// Reports an empty text; tells whether there is one.
pub fn required(path: &Path, value: &str, errors: &mut ErrorList) -> bool {
    if value.is_empty() {
        errors.push(path.required(""));
    }
    !value.is_empty()
}

/// Required, and by the rule.
pub fn named(path: &Path, value: &str, rule: NameRule, errors: &mut ErrorList) {
    if required(path, value, errors) {
        errors.push_invalid(path, value, rule(value));
    }
}

/// By the rule where it is not empty.
pub fn named_if_set(path: &Path, value: &str, rule: NameRule, errors: &mut ErrorList) {
    if !value.is_empty() {
        errors.push_invalid(path, value, rule(value));
    }
}

/// One of a few values, printed in byte order.
pub fn one_of(path: &Path, value: &str, supported: &[&str], errors: &mut ErrorList) {
    if !supported.contains(&value) {
        errors.push(path.not_supported(BadValue::named(value), supported));
    }
}

/// One of a few values where there is one.
pub fn one_of_if_set(path: &Path, value: Option<&String>, supported: &[&str], errors: &mut ErrorList) {
    if let Some(value) = value {
        one_of(path, value, supported, errors);
    }
}

/// Required, and one of a few values, printed in byte order.
pub fn choice(path: &Path, value: &str, supported: &[&str], errors: &mut ErrorList) {
    if required(path, value, errors) {
        one_of(path, value, supported, errors);
    }
}

/// Required, and one of a few values, printed as given.
pub fn choice_in_order(path: &Path, value: &str, supported: &[&str], errors: &mut ErrorList) {
    if required(path, value, errors) && !supported.contains(&value) {
        errors.push(path.not_supported_in_order(BadValue::named(value), supported));
    }
}

/// Zero or more.
pub fn not_negative(path: &Path, value: i64, errors: &mut ErrorList) {
    if value < 0 {
        errors.push(path.invalid(value, NOT_NEGATIVE));
    }
}

/// Bits of a file's mode.
pub fn mode(path: &Path, mode: Option<i32>, errors: &mut ErrorList) {
    if let Some(mode) = mode
        && !(0..=0o777).contains(&mode)
    {
        errors.push(path.invalid(mode, MODE));
    }
}

/// A user's or group's id where there is one.
pub fn id(path: &Path, id: Option<i64>, errors: &mut ErrorList) {
    if let Some(id) = id {
        errors.extend(api_machinery::names::user_or_group_id(id).into_iter().map(|detail| path.invalid(id, detail)));
    }
}

/// A port's number.
pub fn port(path: &Path, number: i32, errors: &mut ErrorList) {
    errors.extend(api_machinery::names::port_number(number).into_iter().map(|detail| path.invalid(number, detail)));
}

/// No step to the parent directory anywhere.
pub fn no_backsteps(path: &Path, value: &str, errors: &mut ErrorList) {
    if value.split('/').any(|part| part == "..") {
        errors.push(path.invalid(value, "must not contain '..'"));
    }
}

/// A path below some directory: not absolute, and never leaving it.
pub fn relative_path(path: &Path, value: &str, errors: &mut ErrorList) {
    if value.starts_with('/') {
        errors.push(path.invalid(value, "must be a relative path"));
    }
    no_backsteps(path, value, errors);
}

/// As [`relative_path`], and not a name that the atomic writer of volumes keeps for itself.
pub fn relative_unreserved_path(path: &Path, value: &str, errors: &mut ErrorList) {
    relative_path(path, value, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(path.invalid(value, "must not start with '..'"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_directory() {
        let texts = |value: &str| {
            let mut errors = ErrorList::new();
            relative_unreserved_path(&Path::new("path"), value, &mut errors);
            errors.iter().map(|error| error.detail.clone()).collect::<Vec<_>>().join("; ")
        };
        for (value, expected) in [
            ("a/b", ""),
            ("a/..b", ""),
            ("/a", "must be a relative path"),
            ("a/../b", "must not contain '..'"),
            ("..data", "must not start with '..'"),
            ("../a", "must not contain '..'"),
            ("..", "must not contain '..'; must not start with '..'"),
        ] {
            assert_eq!(texts(value), expected, "{value}");
        }
    }

    #[test]
    fn choices_are_required_and_listed() {
        let mut errors = ErrorList::new();
        choice(&Path::new("type"), "", &["B", "A"], &mut errors);
        choice(&Path::new("type"), "C", &["B", "A"], &mut errors);
        choice_in_order(&Path::new("type"), "C", &["B", "A"], &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "type: Required value",
                r#"type: Unsupported value: "C": supported values: "A", "B""#,
                r#"type: Unsupported value: "C": supported values: "B", "A""#,
            ]
        );
    }
}
