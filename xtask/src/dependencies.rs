//! What may be in the dependency graph: one copy of the crates that types cross, allowed licences, nothing banned.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use crate::metadata::{built, packages, text};

/// Crates that must not be in the graph, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("ring", "aws-lc-rs is the one crypto provider"),
    ("openssl-sys", "aws-lc-rs is the one crypto provider"),
    ("chrono", "jiff is the one calendar"),
    ("protobuf", "prost and the reflection engine are the codecs"),
    ("serde_yml", "unsound; serde-saphyr reads YAML"),
];

/// Crates whose types cross crate borders: two versions would not fit together.
const SINGLE: &[&str] = &[
    "http",
    "hyper",
    "h2",
    "hyper-util",
    "tower",
    "tokio",
    "rustls",
    "rustls-webpki",
    "prost",
    "tonic",
    "serde",
    "jiff",
];

/// Licences that may appear; an expression passes when one of its alternatives has only these.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MPL-2.0",
    "MPL-2.0+",
    "Zlib",
    "Unicode-3.0",
    "BSL-1.0",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "MIT-0",
    "OpenSSL",
];

pub(crate) fn problems(metadata: &Value) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let built = built()?;
    for package in packages(metadata).filter(|package| built.iter().any(|name| name == text(package, "name"))) {
        let name = text(package, "name");
        versions.entry(name).or_default().push(text(package, "version"));
        if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            problems.push(format!("{name} is in the dependency graph, but {reason}"));
        }
        let licence = text(package, "license");
        if !allowed(licence) {
            problems.push(format!("{name}: licence {licence:?} is not on the list"));
        }
    }
    for name in SINGLE {
        if let Some(found) = versions.get(name).filter(|found| found.len() > 1) {
            problems.push(format!("{name} is there in several versions: {}", found.join(", ")));
        }
    }
    Ok(problems)
}

/// Whether one alternative of a licence expression is on the list as a whole.
fn allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    let conjunctions: Vec<&str> = flat.split(" AND ").collect();
    !flat.is_empty()
        && conjunctions.iter().all(|part| part.split(" OR ").any(|licence| LICENCES.contains(&licence.trim())))
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn licences() {
        for (expression, expected) in [
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only", false),
            ("GPL-2.0-only OR Apache-2.0", true),
            ("ISC AND (Apache-2.0 OR ISC)", true),
            ("MIT AND GPL-3.0-only", false),
            ("", false),
        ] {
            assert_eq!(allowed(expression), expected, "{expression}");
        }
    }
}
