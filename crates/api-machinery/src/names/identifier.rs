//! Identifiers, keys, ports and other small values.

use super::{details, is_framed, max_characters_detail, over, pattern_detail, range_detail};

const ENV_VAR_PATTERN: &str = "[-._a-zA-Z][-._a-zA-Z0-9]*";
const CONFIG_KEY_PATTERN: &str = "[-._a-zA-Z0-9]+";
const SYSCTL_PATTERN: &str = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const CONFIG_KEY_MAX_BYTES: usize = 253;
const SYSCTL_MAX_BYTES: usize = 253;
const PORT_NAME_MAX_BYTES: usize = 15;

/// An identifier of the C language.
pub fn c_identifier(value: &str) -> Vec<String> {
    let good = is_word(value, |byte| byte == b'_');
    let malformed = || {
        let text = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                    alphanumeric characters or '_'";
        pattern_detail(text, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])
    };
    details(None, (!good).then(malformed))
}

/// Letters, digits and `extra`, not starting with a digit.
fn is_word(value: &str, extra: impl Fn(u8) -> bool) -> bool {
    !value.is_empty()
        && !value.starts_with(|first: char| first.is_ascii_digit())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || extra(byte))
}

/// An environment variable's name by the rule in force: printable ASCII without `=`.
pub fn env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    let good = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=');
    let text = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    details(None, (!good).then(|| text.to_owned()))
}

/// An environment variable's name by the older, strict rule.
pub fn env_var_name_strict(value: &str) -> Vec<String> {
    let good = is_word(value, is_key_mark);
    let malformed = || {
        let text = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
                    and must not start with a digit";
        pattern_detail(text, ENV_VAR_PATTERN, &["my.env-name", "MY_ENV.NAME", "MyEnvName1"])
    };
    details((!good).then(malformed), parent_directory(value))
}

fn is_key_mark(byte: u8) -> bool {
    matches!(byte, b'-' | b'.' | b'_')
}

/// A key of a ConfigMap or Secret: it becomes a file name.
pub fn config_key(value: &str) -> Vec<String> {
    let good = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_key_mark(byte));
    let malformed = || {
        let text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        pattern_detail(text, CONFIG_KEY_PATTERN, &["key.name", "KEY_NAME", "key-name"])
    };
    let mut found = details(over(value, CONFIG_KEY_MAX_BYTES), (!good).then(malformed));
    found.extend(parent_directory(value));
    found
}

/// Names that would leave or hide in a directory.
fn parent_directory(value: &str) -> Option<String> {
    match value {
        "." => Some("must not be '.'".into()),
        ".." => Some("must not be '..'".into()),
        _ if value.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// The name of an HTTP header.
pub fn http_header_name(value: &str) -> Vec<String> {
    let good = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let malformed = || {
        let text = "a valid HTTP header must consist of alphanumeric characters or '-'";
        pattern_detail(text, "[-A-Za-z0-9]+", &["X-Header-Name"])
    };
    details(None, (!good).then(malformed))
}

/// Digits and a percent sign.
pub fn percent(value: &str) -> Vec<String> {
    let good = value
        .strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let malformed = || {
        let text = "a valid percent string must be a numeric string followed by an ending '%'";
        pattern_detail(text, "[0-9]+%", &["1%", "93%"])
    };
    details(None, (!good).then(malformed))
}

/// A port number: 1 to 65535.
pub fn port_number(value: i32) -> Vec<String> {
    details(None, (!(1..=65535).contains(&value)).then(|| range_detail(1, 65535)))
}

/// A user or group id: 0 to 2147483647.
pub fn user_or_group_id(value: i64) -> Vec<String> {
    details(None, (!(0..=i64::from(i32::MAX)).contains(&value)).then(|| range_detail(0, i32::MAX)))
}

/// An IANA service name.
pub fn port_name(value: &str) -> Vec<String> {
    let too_long = (value.len() > PORT_NAME_MAX_BYTES).then(|| max_characters_detail(PORT_NAME_MAX_BYTES));
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let checks = [
        (
            value.is_empty() || !value.bytes().all(allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!value.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (value.contains("--"), "must not contain consecutive hyphens"),
        (value.starts_with('-') || value.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    let failed = checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text.to_owned());
    too_long.into_iter().chain(failed).collect()
}

/// A name that can stand in a URL path.
pub fn path_segment_name(value: &str) -> Vec<String> {
    match value {
        "." => vec!["may not be '.'".into()],
        ".." => vec!["may not be '..'".into()],
        _ => path_segment_name_prefix(value),
    }
}

/// The beginning of a name that can stand in a URL path.
pub fn path_segment_name_prefix(value: &str) -> Vec<String> {
    let forbidden = ['/', '%'].into_iter().filter(|&c| value.contains(c));
    forbidden.map(|c| format!("may not contain '{c}'")).collect()
}

/// A UUID in lower case with hyphens.
pub fn uuid(value: &str) -> Vec<String> {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| match is_hyphen(at) {
        true => byte == b'-',
        false => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
    };
    let good = value.len() == 36 && value.bytes().enumerate().all(fits);
    details(None, (!good).then(|| "must be a lowercase UUID in 8-4-4-4-12 format".to_owned()))
}

/// An integer in canonical decimal form.
pub fn decimal_integer(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["must be non-empty".into()];
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    let good = value == "0"
        || (digits.starts_with(|first: char| matches!(first, '1'..='9'))
            && digits.bytes().all(|byte| byte.is_ascii_digit()));
    details(None, (!good).then(|| "must be a valid decimal integer in canonical form".to_owned()))
}

/// The name of a kernel parameter, with dots or slashes.
pub fn sysctl_name(value: &str) -> Vec<String> {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| is_framed(part, alphanumeric, |byte| matches!(byte, b'-' | b'_'));
    let good = value.len() <= SYSCTL_MAX_BYTES && value.split(['.', '/']).all(is_part);
    let detail = || format!("must have at most {SYSCTL_MAX_BYTES} characters and match regex ^{SYSCTL_PATTERN}$");
    details(None, (!good).then(detail))
}

/// The reason of a condition; its length has a limit of its own (1024 bytes, `TooLong`).
pub fn condition_reason(value: &str) -> Vec<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    let good = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
        && (value.len() == 1 || value.bytes().all(allowed));
    let malformed = || {
        let text = "a condition reason must start with alphabetic character, optionally followed by a string of \
                    alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
        let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
        pattern_detail(text, "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", &examples)
    };
    details(None, (!good).then(malformed))
}
