//! Validation of where a webhook is, by URL or as a service: the same for admission and for the conversion of objects.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;

use crate::field_rules;
use crate::go_url::Url;

/// What follows a complaint about a URL.
const FORM: &str = "; desired format: https://host[/path]";

/// The versions of the question, of admission as of conversion, that the API server speaks.
pub(crate) const KNOWN_REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// A service that is a webhook.
pub(crate) struct Service<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) path: Option<&'a str>,
    pub(crate) port: Option<i32>,
}

/// Whether a webhook understands a version of the question that the API server speaks.
pub(crate) fn knows_a_review(versions: &[String]) -> bool {
    versions.iter().any(|version| KNOWN_REVIEWS.contains(&version.as_str()))
}

/// Checks the versions of the question that a webhook understands; there is one at least, and where it is demanded a known one.
pub(crate) fn validate_review_versions(path: &Path, versions: &[String], needs_known: bool, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = path.index(index);
        if seen.insert(version) {
            errors.push_invalid(&at, version, names::dns1035_label(version));
        } else {
            errors.push(at.invalid(version.as_str(), "duplicate version"));
        }
    }
    if needs_known && !knows_a_review(versions) {
        let detail = format!("must include at least one of {}", KNOWN_REVIEWS.join(", "));
        errors.push(path.invalid(BadValue::list(versions), detail));
    }
}

/// Checks a URL: https, a host, and nothing that could be mixed up with what the caller adds.
pub(crate) fn validate_url(path: &Path, text: &str, errors: &mut ErrorList) {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return errors.push(path.required(format!("url must be a valid URL: {error}{FORM}"))),
    };
    let mut refuse = |value: &str, detail: &str| errors.push(path.invalid(value, detail));
    if url.scheme != "https" {
        refuse(&url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse(url.host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        refuse(url.fragment, "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        refuse(url.query, "query parameters are not permitted in the URL");
    }
}

/// Checks a service.
pub(crate) fn validate_service(path: &Path, service: &Service<'_>, errors: &mut ErrorList) {
    field_rules::required(&path.child("name"), service.name, errors);
    field_rules::required(&path.child("namespace"), service.namespace, errors);
    if let Some(port) = service.port {
        let details = names::port_number(port).into_iter();
        errors.extend(details.map(|why| path.child("port").invalid(port, format!("port is not valid: {why}"))));
    }
    if let Some(text) = service.path {
        validate_path(&path.child("path"), text, errors);
    }
}

fn validate_path(path: &Path, text: &str, errors: &mut ErrorList) {
    let mut refuse = |detail: String| errors.push(path.invalid(text, detail));
    match text {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".into()),
        _ if !text.starts_with('/') => refuse("must start with a '/'".into()),
        _ => {}
    }
    let inner = text.strip_prefix('/').unwrap_or(text);
    for (index, segment) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if segment.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in names::dns1123_subdomain(segment) {
            refuse(format!("segment[{index}]: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(check: impl FnOnce(&mut ErrorList)) -> Vec<String> {
        let mut errors = ErrorList::new();
        check(&mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn urls_say_no_more_than_a_host_and_a_path() {
        let form = "desired format: https://host[/path]";
        for (url, expected) in [
            ("https://h.example.com:8443/a/b", vec![]),
            (
                "",
                vec![
                    format!("u: Invalid value: \"\": 'https' is the only allowed URL scheme; {form}"),
                    format!("u: Invalid value: \"\": host must be specified; {form}"),
                ],
            ),
            ("http://h", vec![format!("u: Invalid value: \"http\": 'https' is the only allowed URL scheme; {form}")]),
            (
                "https://me:x@h?a=b#c",
                vec![
                    "u: Invalid value: \"me:x\": user information is not permitted in the URL".to_owned(),
                    "u: Invalid value: \"c\": fragments are not permitted in the URL".to_owned(),
                    "u: Invalid value: \"a=b\": query parameters are not permitted in the URL".to_owned(),
                ],
            ),
            (
                "https://h:x",
                vec![format!(
                    "u: Required value: url must be a valid URL: parse \"https://h:x\": invalid port \":x\" after host; {form}"
                )],
            ),
        ] {
            assert_eq!(texts(|errors| validate_url(&Path::new("u"), url, errors)), expected, "{url}");
        }
    }

    #[test]
    fn services_have_ports_and_paths() {
        for (path, port, expected) in [
            (None, None, vec![]),
            (Some("/"), Some(443), vec![]),
            (Some("/a/b/"), Some(1), vec![]),
            (Some("//"), None, vec!["s.path: Invalid value: \"//\": segment[0] may not be empty"]),
            (Some("a"), None, vec!["s.path: Invalid value: \"a\": must start with a '/'"]),
            (Some("/a//b"), None, vec!["s.path: Invalid value: \"/a//b\": segment[1] may not be empty"]),
            (
                None,
                Some(0),
                vec!["s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
            ),
        ] {
            let service = Service { namespace: "n", name: "s", path, port };
            assert_eq!(texts(|errors| validate_service(&Path::new("s"), &service, errors)), expected, "{path:?}");
        }
        let unnamed = Service { namespace: "", name: "", path: None, port: None };
        let told = texts(|errors| validate_service(&Path::new("s"), &unnamed, errors));
        assert_eq!(told, ["s.name: Required value", "s.namespace: Required value"]);
    }
}
