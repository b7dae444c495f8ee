//! Rules of single values that the kinds of the group share: names of drivers, pools and attributes, JSON for drivers.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::leaf::RawJson;
use api_machinery::names;
use api_machinery::quote::go_quote;
use api_machinery::value::Value;
use api_types::resource_v1::constants::device_taint_effect;

use crate::field_rules::{self as rules, NameRule};

const DRIVER_MAX_BYTES: usize = 63;
const POOL_MAX_BYTES: usize = 253;
const DOMAIN_MAX_BYTES: usize = 63;
const ID_MAX_BYTES: usize = 32;
/// Greatest length of JSON that is meant for a driver.
const BLOB_MAX_BYTES: usize = 10 * 1024;
/// Greatest length of the key of a map in a path: a domain, a slash and an identifier.
const KEY_MAX_BYTES: usize = DOMAIN_MAX_BYTES + 1 + ID_MAX_BYTES;
const NO_UUID: &str = "invalid UUID format";
const CUT: &str = "...";

/// The name of a driver.
pub(crate) fn driver(path: &Path, name: &str, errors: &mut ErrorList) {
    if rules::required(path, name, errors) {
        if name.len() > DRIVER_MAX_BYTES {
            errors.push(path.too_long(DRIVER_MAX_BYTES));
        }
        errors.push_invalid(path, name, names::dns1123_subdomain(&name.to_lowercase()));
    }
}

/// The name of a pool: subdomains with slashes between them.
pub(crate) fn pool(path: &Path, name: &str, errors: &mut ErrorList) {
    if rules::required(path, name, errors) {
        if name.len() > POOL_MAX_BYTES {
            errors.push(path.too_long(POOL_MAX_BYTES));
        }
        for segment in name.split('/') {
            errors.push_invalid(path, segment, names::dns1123_subdomain(segment));
        }
    }
}

/// The name of a device, a request or a set of counters; an empty one is told what names look like.
pub(crate) fn label(path: &Path, name: &str, errors: &mut ErrorList) {
    errors.push_invalid(path, name, names::dns1123_label(name));
}

/// The name of an attribute or capacity, with or without a domain.
pub(super) fn qualified_name(path: &Path, name: &str, errors: &mut ErrorList) {
    let Some((domain, id)) = name.split_once('/') else {
        return identifier(path, name, errors);
    };
    if domain.is_empty() {
        errors.push(path.invalid(domain, "the domain must not be empty"));
    } else {
        if domain.len() > DOMAIN_MAX_BYTES {
            errors.push(path.too_long(DOMAIN_MAX_BYTES));
        }
        errors.push_invalid(path, domain, names::dns1123_subdomain(&domain.to_lowercase()));
    }
    if id.is_empty() {
        errors.push(path.invalid(id, "the name must not be empty"));
    } else {
        identifier(path, id, errors);
    }
}

fn identifier(path: &Path, id: &str, errors: &mut ErrorList) {
    if id.len() > ID_MAX_BYTES {
        errors.push(path.too_long(ID_MAX_BYTES));
    }
    errors.push_invalid(path, id, names::c_identifier(id));
}

/// The name of an attribute with its domain.
pub(super) fn fully_qualified_name(path: &Path, name: &str, errors: &mut ErrorList) {
    qualified_name(path, name, errors);
    if !name.contains('/') {
        errors.push(path.invalid(name, "a fully qualified name must be a domain and a name separated by a slash"));
    }
}

/// An object that only a driver understands; `unchanged` where it is stored already, and may be too long.
pub(super) fn blob(path: &Path, blob: &RawJson, unchanged: bool, errors: &mut ErrorList) {
    if blob.is_empty() {
        errors.push(path.required(""));
    } else if !unchanged && blob.as_str().len() > BLOB_MAX_BYTES {
        errors.push(path.too_long(BLOB_MAX_BYTES));
    } else if !matches!(blob.value(), Value::Object(_)) {
        errors.push(path.invalid("<value omitted>", "must be a valid JSON object"));
    }
}

/// The identity of a share of a device.
pub(super) fn share(path: &Path, share: &str, errors: &mut ErrorList) {
    if let Some(problem) = uuid_problem(share) {
        errors.push(path.invalid(share, format!("error validating uid: {problem}")));
    } else if !names::uuid(share).is_empty() {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                      hexadecimal characters";
        errors.push(path.invalid(share, detail));
    }
}

/// What keeps a text from being an identity in any of the forms that there are: dashed, in braces, as a URN, or without
/// dashes.
fn uuid_problem(text: &str) -> Option<String> {
    const URN: &str = "urn:uuid:";
    let dashed = match text.len() {
        36 => text,
        32 => return (!text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| NO_UUID.to_owned()),
        38 => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(inner) => inner,
            None => return Some("invalid bracketed UUID format".to_owned()),
        },
        45 => match text.split_at_checked(URN.len()) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case(URN) => rest,
            Some((prefix, _)) => return Some(format!("invalid urn prefix: {}", go_quote(prefix))),
            None => return Some(NO_UUID.to_owned()),
        },
        length => return Some(format!("invalid UUID length: {length}")),
    };
    (!names::uuid(&dashed.to_ascii_lowercase()).is_empty()).then(|| NO_UUID.to_owned())
}

/// A taint's effect, which may be one that nobody knows any more where it is `unchanged`.
pub(crate) fn taint_effect(path: &Path, effect: &str, unchanged: bool, errors: &mut ErrorList) {
    if !unchanged {
        rules::choice(path, effect, device_taint_effect::ALL, errors);
    }
}

/// Whether a list is short enough for its items to be looked at.
pub(super) fn fits<T>(path: &Path, list: &[T], max: usize, errors: &mut ErrorList) -> bool {
    if list.len() > max {
        errors.push(path.too_many(list.len(), max));
    }
    list.len() <= max
}

/// Tells of items whose key an earlier one has, each after the item's own errors.
pub(super) struct Unique<K>(BTreeSet<K>);

impl<K: Ord> Unique<K> {
    pub(super) fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Notes a key of an item; `shown` is how it is printed.
    pub(super) fn note(&mut self, path: &Path, key: K, shown: impl Into<BadValue>, errors: &mut ErrorList) {
        if !self.0.insert(key) {
            errors.push(path.duplicate(shown));
        }
    }
}

/// Labels by which conditions are named, at most so many, each once.
pub(super) fn conditions(path: &Path, conditions: &[String], max: usize, errors: &mut ErrorList) {
    if !fits(path, conditions, max, errors) {
        return;
    }
    let (mut seen, rule): (_, NameRule) = (Unique::new(), names::qualified_name);
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        errors.push_invalid(&path, condition, rule(condition));
        seen.note(&path, condition, condition, errors);
    }
}

/// An entry of a map, the key cut in the middle where it is longer than a good one.
pub(super) fn entry(path: &Path, key: &str) -> Path {
    path.key(&cut(key, KEY_MAX_BYTES))
}

fn cut(key: &str, max: usize) -> String {
    if key.len() <= max {
        return key.to_owned();
    }
    let shown = max.saturating_sub(CUT.len());
    let (head, tail) = (shown.div_ceil(2), shown / 2);
    let start = (0..=head).rev().find(|at| key.is_char_boundary(*at)).unwrap_or_default();
    let end = (key.len() - tail..=key.len()).find(|at| key.is_char_boundary(*at)).unwrap_or(key.len());
    [&key[..start], CUT, &key[end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&Path, &str, &mut ErrorList);

    fn texts(check: Check, value: &str) -> Vec<String> {
        let mut errors = ErrorList::new();
        check(&Path::new("p"), value, &mut errors);
        errors.iter().map(|error| error.to_string().chars().take(60).collect()).collect()
    }

    #[test]
    fn shares_are_identities_in_their_plain_form() {
        const GOOD: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";
        for (value, expected) in [
            (GOOD.to_owned(), ""),
            (String::new(), "error validating uid: invalid UUID length: 0"),
            (GOOD.to_uppercase(), "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`"),
            (GOOD.replace('-', ""), "uid must be in RFC 4122 normalized form"),
            (format!("urn:uuid:{GOOD}"), "uid must be in RFC 4122 normalized form"),
            (format!("urn:oops:{GOOD}"), "error validating uid: invalid urn prefix: \"urn:oops:\""),
            (format!("({GOOD})"), "error validating uid: invalid bracketed UUID format"),
            (GOOD.replace('a', "x"), "error validating uid: invalid UUID format"),
        ] {
            let mut errors = ErrorList::new();
            share(&Path::new("p"), &value, &mut errors);
            let text = if errors.is_empty() { String::new() } else { errors.to_string() };
            let shown = format!("p: Invalid value: \"{value}\": {expected}");
            let wanted = if expected.is_empty() { "" } else { shown.as_str() };
            assert!(text.starts_with(wanted) && text.is_empty() == wanted.is_empty(), "{text}");
        }
    }

    #[test]
    fn names_have_their_forms() {
        let long = "a".repeat(64);
        let subdomain = |value: &str| -> String {
            format!("p: Invalid value: \"{value}\": a lowercase RFC 1123 subdomain").chars().take(60).collect()
        };
        let id = "p: Invalid value: \"-\": a valid C identifier must start with ";
        let rows: &[(Check, &str, Vec<String>)] = &[
            (driver, "gpu.Example.com", vec![]),
            (driver, "", vec!["p: Required value".into()]),
            (driver, &long, vec!["p: Too long: may not be more than 63 bytes".into()]),
            (driver, "_", vec![subdomain("_") + "x"]),
            (pool, "node/a.b", vec![]),
            (pool, "A/b/", vec![subdomain("A"), subdomain("")]),
            (qualified_name, "Vendor.example/model_1", vec![]),
            (qualified_name, "model", vec![]),
            (qualified_name, "/model", vec!["p: Invalid value: \"\": the domain must not be empty".into()]),
            (qualified_name, "a/", vec!["p: Invalid value: \"\": the name must not be empty".into()]),
            (qualified_name, &long[..33], vec!["p: Too long: may not be more than 32 bytes".into()]),
            (fully_qualified_name, "a.b/c", vec![]),
        ];
        for (check, value, expected) in rows {
            let found = texts(*check, value);
            assert_eq!(found.len(), expected.len(), "{value}: {found:?}");
            for (text, expected) in found.iter().zip(expected) {
                assert!(text.starts_with(&expected[..expected.len().min(45)]), "{value}: {text}");
            }
        }
        assert!(texts(fully_qualified_name, "-")[0].starts_with(&id[..45]));
        assert_eq!(texts(fully_qualified_name, "-").len(), 2);
    }

    #[test]
    fn long_keys_are_cut_in_the_middle() {
        for (key, max, expected) in
            [("abc", 3, "abc"), ("abcdefgh", 7, "ab...gh"), ("abcdefgh", 6, "ab...h"), ("üüüü", 6, "ü...")]
        {
            assert_eq!(cut(key, max), expected, "{key}");
        }
    }
}
