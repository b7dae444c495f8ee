//! `--emulated-version` and `--min-compatibility-version`: which release a component behaves like, and which one must
//! be able to take over from it (KEP-4330).

use feature_gates::{BINARY, MinorVersion};

use super::gates::DEFAULT_COMPONENT;
use super::{Errors, Flag, FlagSet, Options};

/// No component emulates what came before compatibility versions.
const OLDEST: u32 = 31;
/// How many releases back a component can go.
const RANGE: u32 = 3;
/// How `--emulated-version` is called.
const EMULATED: &str = "emulated-version";
/// How `--min-compatibility-version` is called.
const MIN_COMPATIBLE: &str = "min-compatibility-version";

/// The flags, for components that can emulate.
pub const VERSIONS: FlagSet = FlagSet {
    title: "generic",
    flags: &[
        Flag::string_slice(EMULATED, "").help(
            "The version (major.minor) whose APIs and features are emulated, from 1.33 to 1.36. Gates of which this \
             build has one side only stay as they are.",
        ),
        Flag::string_slice(MIN_COMPATIBLE, "")
            .help("The lowest version (major.minor) that must be able to take over; from 1.33 to the emulated one."),
    ],
};

/// The releases that a process goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The release whose behaviour it shows.
    pub emulated: MinorVersion,
    /// The oldest release that can take over from it.
    pub min_compatible: MinorVersion,
}

impl Default for Versions {
    fn default() -> Self {
        Self::emulating(BINARY)
    }
}

impl Versions {
    /// A release, and the one before it as far as that can be had.
    #[must_use]
    pub fn emulating(emulated: MinorVersion) -> Self {
        let before = MinorVersion { minor: emulated.minor.saturating_sub(1), ..emulated };
        Self { emulated, min_compatible: before.max(floor()) }
    }

    /// Reads the flags of a component that has them.
    pub fn from_options(options: &Options, errors: &mut Errors) -> Self {
        if !options.declares(EMULATED) {
            return Self::default();
        }
        let mut versions = Self::default();
        if let Some(emulated) = version_of(options, EMULATED, errors) {
            if !(floor()..=BINARY).contains(&emulated) {
                errors.push(format!("emulation version {emulated} is not between [{}, {BINARY}]", floor()));
                return versions;
            }
            versions = Self::emulating(emulated);
        }
        if let Some(asked) = version_of(options, MIN_COMPATIBLE, errors) {
            let emulated = versions.emulated;
            if !(floor()..=emulated).contains(&asked) {
                errors
                    .push(format!("minCompatibilityVersion version {asked} is not between [{}, {emulated}]", floor()));
                return versions;
            }
            versions.min_compatible = asked;
        }
        versions
    }
}

/// The oldest release that can be emulated.
fn floor() -> MinorVersion {
    MinorVersion::one(BINARY.minor.saturating_sub(RANGE).max(OLDEST))
}

fn version_of(options: &Options, flag: &str, errors: &mut Errors) -> Option<MinorVersion> {
    let mut found: Option<MinorVersion> = None;
    for text in options.strings(flag) {
        let (component, version) = text.split_once('=').unwrap_or((DEFAULT_COMPONENT, text));
        let (component, version) = (component.trim(), version.trim());
        let Some((version, patch)) = parse(version) else {
            errors.push(format!("could not parse {version:?} as version"));
            continue;
        };
        if component != DEFAULT_COMPONENT {
            errors.push(format!("component not registered: {component}"));
        } else if patch != 0 {
            errors.push(format!("patch version not allowed, got: {component}={version}.{patch}"));
        } else if let Some(before) = found {
            errors.push(format!("duplicate version flag, {component}={before} and {component}={version}"));
        } else {
            found = Some(version);
        }
    }
    found
}

/// `major.minor`, and a patch number that may be there.
fn parse(text: &str) -> Option<(MinorVersion, u32)> {
    let mut numbers = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    let patch = numbers.next().unwrap_or(Some(0))?;
    Some((MinorVersion { major, minor }, patch))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const FLAGS: &[FlagSet] = &[VERSIONS];

    fn read(line: &str) -> Result<(u32, u32), String> {
        let options = parse(FLAGS, line.split_whitespace().map(str::to_owned)).expect("flags");
        let mut errors = Errors::new();
        let versions = Versions::from_options(&options, &mut errors);
        let minors = (versions.emulated.minor, versions.min_compatible.minor);
        errors.into_result().map(|()| minors).map_err(|error| error.to_string())
    }

    #[test]
    fn versions_are_read_and_bounded() {
        for (line, expected) in [
            ("", Ok((36, 35))),
            ("--emulated-version=1.35", Ok((35, 34))),
            ("--emulated-version=kube=1.34", Ok((34, 33))),
            ("--emulated-version=v1.33.0", Ok((33, 33))),
            ("--min-compatibility-version=1.36", Ok((36, 36))),
            ("--emulated-version=1.35 --min-compatibility-version=1.33", Ok((35, 33))),
            ("--emulated-version=1.32", Err("emulation version 1.32 is not between [1.33, 1.36]")),
            ("--emulated-version=1.37", Err("emulation version 1.37 is not between [1.33, 1.36]")),
            (
                "--emulated-version=1.34 --min-compatibility-version=1.35",
                Err("minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"),
            ),
            ("--emulated-version=1.35.1", Err("patch version not allowed, got: kube=1.35.1")),
            ("--emulated-version=1.35,1.34", Err("duplicate version flag, kube=1.35 and kube=1.34")),
            ("--emulated-version=wardle=1.1", Err("component not registered: wardle")),
            ("--emulated-version=new", Err("could not parse \"new\" as version")),
            ("--emulated-version=1.2.3.4", Err("could not parse \"1.2.3.4\" as version")),
        ] {
            assert_eq!(read(line), expected.map_err(str::to_owned), "{line}");
        }
    }
}
