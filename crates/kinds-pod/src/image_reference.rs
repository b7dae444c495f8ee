//! References to images, as far as the time to pull them hangs on how they are written.
//! Grammar: <https://github.com/distribution/reference>

use std::sync::LazyLock;

use regex::Regex;

/// The longest name of a repository, its registry included.
const MAX_NAME_BYTES: usize = 255;
const DEFAULT_DOMAIN: &str = "docker.io";

/// A registry, with a port or without.
static DOMAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    Regex::new(&format!(r"^(?:{part}(?:\.{part})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$")).ok()
});
/// A repository in it, then a tag, then a digest.
static REST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    Regex::new(&format!(r"^({part}(?:/{part})*)(?::(\w[\w.-]{{0,127}}))?(@{digest})?$")).ok()
});

/// Whether a reference asks for the tag `latest`, or says nothing and so means it. What is no reference does not.
pub(super) fn is_latest(image: &str) -> bool {
    // The usual case needs no grammar: a tag that is another one, or that makes this no reference at all.
    let other_tag = |(name, tag): (&str, &str)| tag != "latest" && !tag.contains('/') && !name.contains('@');
    if image.rsplit_once(':').is_some_and(other_tag) {
        return false;
    }
    let (domain, rest) = match image.split_once('/') {
        Some((domain, rest)) if is_domain(domain) => (domain, rest),
        _ => (DEFAULT_DOMAIN, image),
    };
    let (Some(domains), Some(rests)) = (&*DOMAIN, &*REST) else { return false };
    let Some(parts) = rests.captures(rest).filter(|_| domains.is_match(domain)) else { return false };
    let name = parts.get(1).map_or("", |name| name.as_str());
    let is_identifier = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if name.len() + domain.len() + 1 > MAX_NAME_BYTES || (domain == DEFAULT_DOMAIN && is_identifier) {
        return false;
    }
    parts.get(2).map_or(parts.get(3).is_none(), |tag| tag.as_str() == "latest")
}

/// Whether the first part of a path is a registry rather than a part of a repository's name.
fn is_domain(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost" || text.to_lowercase() != text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_to_be_the_latest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (image, expected) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1.36", false),
            ("registry:5000/busybox", true),
            ("registry:5000/a/b_c--d:v1", false),
            ("registry:5000/a/b_c--d:latest", true),
            ("LOCAL/busybox", true),
            (&format!("busybox@{digest}"), false),
            (&format!("busybox:latest@{digest}"), true),
            // None of these is a reference.
            ("busybox:latest@sha256:abc", false),
            ("Busybox", false),
            (" busybox", false),
            ("busybox:", false),
            ("a//b", false),
            ("", false),
            (&"a".repeat(64), false),
            (&"b".repeat(250), false),
        ] {
            assert_eq!(is_latest(image), expected, "{image}");
        }
    }
}
