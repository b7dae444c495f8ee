//! Which version this is, as `/version`, `--version` and `kubernetes_build_info` say it.

use std::sync::OnceLock;

pub use feature_gates::{BINARY, MinorVersion};
use serde_json::{Value, json};

/// The release of Kubernetes that the binaries stand in for. Clients compare `major.minor`; the part after `+` says
/// who built it and does not take part in comparisons.
const GIT_VERSION: &str = "v1.36.3+coxswain";
/// What `--version=v...` has it told as.
static TOLD: OnceLock<String> = OnceLock::new();
/// The commit, when the build was told (`COXSWAIN_GIT_COMMIT`).
const GIT_COMMIT: &str = match option_env!("COXSWAIN_GIT_COMMIT") {
    Some(commit) => commit,
    None => "",
};
/// When it was built, as RFC 3339 (`COXSWAIN_BUILD_DATE`); the epoch when unknown, as upstream's builds say then.
const BUILD_DATE: &str = match option_env!("COXSWAIN_BUILD_DATE") {
    Some(date) => date,
    None => "1970-01-01T00:00:00Z",
};

/// The version that is told: the build's, or what the flag has made of it.
#[must_use]
pub fn git_version() -> &'static str {
    TOLD.get().map_or(GIT_VERSION, String::as_str)
}

/// Why the process may not be told as a version, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// It is none.
    #[error("could not parse {0:?} as version")]
    Form(String),
    /// It is another release's.
    #[error("version {0:?} must match major/minor/patch of default version {GIT_VERSION:?}")]
    Release(String),
}

/// Takes the version that `--version` gives, once in the life of the process. It may say more than the build's, but
/// not that it is another release.
///
/// # Errors
/// With upstream's text where it is no version, or another release's.
pub fn tell_as(version: &str) -> Result<(), VersionError> {
    check(version)?;
    // A process has one command line.
    let _ = TOLD.set(version.to_owned());
    Ok(())
}

/// Whether the process may be told as this version.
pub(crate) fn check(version: &str) -> Result<(), VersionError> {
    match numbers(version) {
        None => Err(VersionError::Form(version.to_owned())),
        own if own == numbers(GIT_VERSION) => Ok(()),
        Some(_) => Err(VersionError::Release(version.to_owned())),
    }
}

/// The three numbers of a semantic version.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let core = version.strip_prefix('v').unwrap_or(version);
    let (core, more) = core.split_at(core.find(['-', '+']).unwrap_or(core.len()));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+');
    let mut numbers = core.split('.').map(|number| number.parse().ok());
    let parsed = [numbers.next()??, numbers.next()??, numbers.next()??];
    (numbers.next().is_none() && more.len() != 1 && more.chars().all(is_part)).then_some(parsed)
}

/// The build's facts, with the names of `/version`, in its order.
#[must_use]
pub fn facts() -> [(&'static str, String); 9] {
    [
        ("major", BINARY.major.to_string()),
        ("minor", BINARY.minor.to_string()),
        ("gitVersion", git_version().to_owned()),
        ("gitCommit", GIT_COMMIT.to_owned()),
        ("gitTreeState", if GIT_COMMIT.is_empty() { "" } else { "clean" }.to_owned()),
        ("buildDate", BUILD_DATE.to_owned()),
        ("goVersion", format!("rustc{}", env!("CARGO_PKG_RUST_VERSION"))),
        ("compiler", "rustc".to_owned()),
        ("platform", platform()),
    ]
}

/// The document of `/version`. The emulated and the lowest compatible version follow the server's flags.
#[must_use]
pub fn document(emulated: MinorVersion, min_compatible: MinorVersion) -> String {
    let facts = facts();
    let (numbers, rest) = facts.split_at(2);
    let middle = [
        ("emulationMajor", emulated.major.to_string()),
        ("emulationMinor", emulated.minor.to_string()),
        ("minCompatibilityMajor", min_compatible.major.to_string()),
        ("minCompatibilityMinor", min_compatible.minor.to_string()),
    ];
    let lines: Vec<String> = numbers
        .iter()
        .chain(&middle)
        .chain(rest)
        .map(|(name, value)| format!("  {}: {}", json!(name), Value::String(value.clone())))
        .collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// What `--version` prints.
#[must_use]
pub fn line() -> String {
    format!("Kubernetes {}", git_version())
}

/// What `--version=raw` prints.
#[must_use]
pub fn raw() -> String {
    let fields: Vec<String> = facts()
        .iter()
        .map(|(name, value)| {
            let mut letters = name.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter();
            format!("{}:{value:?}", first.chain(letters).collect::<String>())
        })
        .collect();
    format!("version.Info{{{}}}", fields.join(", "))
}

/// The `User-Agent` of a component: `kubelet/v1.36.3+coxswain (linux/amd64) kubernetes/<commit>`.
#[must_use]
pub fn user_agent(component: &str) -> String {
    let commit = GIT_COMMIT.get(..7).unwrap_or("unknown");
    // As upstream, without what follows a dash.
    let version = git_version().split('-').next().unwrap_or_default();
    format!("{component}/{version} ({}) kubernetes/{commit}", platform())
}

/// The platform in Go's words.
#[must_use]
pub fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_upstreams_fields_in_order() {
        let text = document(BINARY, MinorVersion { major: 1, minor: 35 });
        let names: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(1)).collect();
        let expected = "major minor emulationMajor emulationMinor minCompatibilityMajor minCompatibilityMinor gitVersion \
                        gitCommit gitTreeState buildDate goVersion compiler platform";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((value["minor"].as_str(), value["minCompatibilityMinor"].as_str()), (Some("36"), Some("35")));
        assert!(text.starts_with("{\n  \"major\": \"1\",\n"));
    }

    #[test]
    fn a_told_version_is_of_this_release() {
        for version in ["v1.36.3", "v1.36.3-custom", "v1.36.3-a.1+b", "1.36.3"] {
            assert_eq!(check(version), Ok(()), "{version}");
        }
        let other = "version \"v1.36.4\" must match major/minor/patch of default version \"v1.36.3+coxswain\"";
        assert_eq!(check("v1.36.4").unwrap_err().to_string(), other);
        for version in ["v1", "v1.36.3.4", "vx", "v1.36.3-", "v1.36.3-a b"] {
            assert_eq!(check(version), Err(VersionError::Form(version.to_owned())));
        }
    }

    #[test]
    fn versions_print_for_the_flag() {
        assert!(line().starts_with("Kubernetes v1.36."));
        assert!(raw().starts_with("version.Info{Major:\"1\", Minor:\"36\", GitVersion:\"v1.36."));
    }
}
