//! `--runtime-config`: which versions and resources of the API are served.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::object::Kind as _;
use api_types::apiregistration_v1::APIService;
use component_base::flags::{Errors, Options};
use component_base::version::{BINARY, MinorVersion};
use kinds::info::ResourceInfo;

use crate::config::BuiltInResource;
use crate::discovery::order::version_priority;

/// What the server knows of other servers by; it is there whatever else is.
const REGISTRATIONS: &str = APIService::TYPE.group;

/// How mature a version is, by its name.
fn maturity(version: &str) -> &'static str {
    if version.contains("alpha") {
        "api/alpha"
    } else if version.contains("beta") {
        "api/beta"
    } else {
        "api/ga"
    }
}

/// The settings, with core written as a group without a name.
fn settings(options: &Options, errors: &mut Errors) -> BTreeMap<String, bool> {
    let mut settings = BTreeMap::new();
    for (key, value) in options.pairs("runtime-config") {
        let on = match value.as_str() {
            "" | "true" => true,
            "false" => false,
            _ => {
                errors.push(format!("invalid value {key}={value}"));
                continue;
            }
        };
        let key = match key.as_str() {
            "v1" | "api/v1" => "/v1".to_owned(),
            other => other.strip_prefix("v1/").map_or_else(|| other.to_owned(), |rest| format!("/v1/{rest}")),
        };
        settings.insert(key, on);
    }
    settings
}

/// Checks that every key means something.
fn check(settings: &BTreeMap<String, bool>, errors: &mut Errors) {
    if settings.len() == 1 && settings.get("api/all") == Some(&false) {
        errors.push("invalid runtime-config with only api/all=false");
    }
    let known: Vec<&ResourceInfo<'_>> = kinds::all().map(|rules| rules.info()).collect();
    let mut unknown = BTreeSet::new();
    for (key, on) in settings {
        if matches!(key.as_str(), "api/all" | "api/ga" | "api/beta" | "api/alpha") {
            continue;
        }
        let parts: Vec<&str> = key.split('/').collect();
        let (group, version, resource) = match parts.as_slice() {
            [group, version] => (*group, *version, None),
            [group, version, resource] => (*group, *version, Some(*resource)),
            _ => {
                errors.push(format!("runtime-config invalid key {key}"));
                continue;
            }
        };
        if group == REGISTRATIONS && !on {
            errors.push(format!("--runtime-config={key}=false is not supported by this server"));
        } else if !known.iter().any(|info| info.group == group) {
            unknown.insert(group);
        } else if !known.iter().any(|info| info.group == group && info.version == version) {
            errors.push(format!("group version {group}/{version} that has not been registered"));
        } else if let Some(resource) = resource.filter(|own| own.chars().any(|letter| letter.is_ascii_uppercase())) {
            errors.push(format!(
                "invalid key {key}: group/version/resource and resource is always lowercase plural, not {resource:?}"
            ));
        }
    }
    if !unknown.is_empty() {
        errors.push(format!("unknown api groups {}", unknown.into_iter().collect::<Vec<_>>().join(",")));
    }
}

/// What is served of releases that came after the emulated one.
#[derive(Debug, Clone, Copy, Default)]
struct Forward {
    /// `--emulation-forward-compatible`: the more stable versions of what is served and no alpha.
    stable: bool,
    /// `--runtime-config-emulation-forward-compatible`: what is asked for by its name.
    named: bool,
}

impl Forward {
    /// Reads the flags. In upstream's words, where nothing is emulated there is nothing after it.
    fn read(options: &Options, emulated: MinorVersion, errors: &mut Errors) -> Self {
        let mut read = |flag: &str, field: &str| {
            let on = options.bool(flag);
            errors.check(
                !on || emulated != BINARY,
                format!(
                    "ServerRunOptions.{field} cannot be set to true if the emulation version is the same as the binary \
                     version"
                ),
            );
            on
        };
        Self {
            stable: read("emulation-forward-compatible", "EmulationForwardCompatible"),
            named: read("runtime-config-emulation-forward-compatible", "RuntimeConfigEmulationForwardCompatible"),
        }
    }
}

/// Refuses what the emulated release does not have. A version as a whole may be asked for where it has some of it.
fn check_introduced(settings: &BTreeMap<String, bool>, emulated: MinorVersion, errors: &mut Errors) {
    const HINT: &str = "Consider setting --runtime-config-emulation-forward-compatible=true";
    let mut versions = BTreeMap::<String, bool>::new();
    for info in kinds::all().map(|rules| rules.info()) {
        let version = format!("{}/{}", info.group, info.version);
        let is_later = info.introduced > emulated;
        *versions.entry(version.clone()).or_insert(true) &= is_later;
        errors.check(
            !is_later || settings.get(&format!("{version}/{}", info.resource)) != Some(&true),
            format!(
                "cannot enable resource {} in runtime-config because it is introduced at {} after the current version \
                 {emulated}. {HINT}",
                info.resource, info.introduced
            ),
        );
    }
    for (version, _) in versions.iter().filter(|(version, later)| **later && settings.get(*version) == Some(&true)) {
        errors.push(format!(
            "cannot enable version {version} in runtime-config because all the resources have been introduced after the \
             current version {emulated}. {HINT}"
        ));
    }
}

/// The resources that are not to be served by a server that behaves like the release `emulated`.
pub(super) fn disabled(options: &Options, emulated: MinorVersion, errors: &mut Errors) -> BTreeSet<BuiltInResource> {
    let settings = settings(options, errors);
    check(&settings, errors);
    let forward = Forward::read(options, emulated, errors);
    if !forward.named {
        check_introduced(&settings, emulated, errors);
    }
    // The most special one says whether flow control has its objects.
    let decides =
        ["flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"].into_iter().find(|key| settings.contains_key(*key));
    if let Some(key) = decides.filter(|key| settings.get(*key) == Some(&false)) {
        errors.check(
            !options.bool("enable-priority-and-fairness"),
            format!("--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"),
        );
    }
    let served = Served { settings: &settings, emulated, forward };
    let off = kinds::all().map(|rules| rules.info()).filter(|info| !served.has(info));
    off.map(|info| (info.group, info.version, info.resource)).collect()
}

/// What is served.
struct Served<'a> {
    settings: &'a BTreeMap<String, bool>,
    emulated: MinorVersion,
    forward: Forward,
}

impl Served<'_> {
    fn has(&self, info: &ResourceInfo<'_>) -> bool {
        if info.group == REGISTRATIONS {
            return true;
        }
        if info.introduced <= self.emulated {
            return self.is_on(info);
        }
        let named = || self.named(info) == Some(true);
        self.forward.named && named() || self.forward.stable && self.follows(info)
    }

    /// What is set of a resource, or of its version.
    fn named(&self, info: &ResourceInfo<'_>) -> Option<bool> {
        let version = format!("{}/{}", info.group, info.version);
        let resource = format!("{version}/{}", info.resource);
        [resource, version].iter().find_map(|key| self.settings.get(key)).copied()
    }

    fn is_on(&self, info: &ResourceInfo<'_>) -> bool {
        let general =
            || [maturity(info.version), "api/all"].into_iter().find_map(|key| self.settings.get(key)).copied();
        self.named(info).or_else(general).unwrap_or(maturity(info.version) == "api/ga")
    }

    /// Whether a version is a more stable one of what the emulated release serves, and nobody switched it off.
    fn follows(&self, info: &ResourceInfo<'_>) -> bool {
        let rank = |info: &ResourceInfo<'_>| version_priority(info.group, info.version);
        let is_followed = |own: &ResourceInfo<'_>| {
            (own.group, own.resource) == (info.group, info.resource)
                && own.introduced <= self.emulated
                && maturity(own.version) != "api/alpha"
                && rank(own) < rank(info)
                && self.is_on(own)
        };
        let has_settled = maturity(info.version) != "api/alpha" && self.named(info) != Some(false);
        has_settled && kinds::all().map(|rules| rules.info()).any(is_followed)
    }
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;
    use crate::options::flags;

    fn read(line: &str) -> Result<BTreeSet<BuiltInResource>, String> {
        read_as_of(36, line)
    }

    fn read_as_of(minor: u32, line: &str) -> Result<BTreeSet<BuiltInResource>, String> {
        let options =
            parse(flags::ALL, [format!("--runtime-config={line}"), "--enable-priority-and-fairness=false".to_owned()])
                .expect("the flags");
        let mut errors = Errors::new();
        let disabled = disabled(&options, MinorVersion::one(minor), &mut errors);
        errors.into_result().map(|()| disabled).map_err(|error| error.to_string())
    }

    const JOBS: BuiltInResource = ("batch", "v1", "jobs");
    const BETA: BuiltInResource = ("coordination.k8s.io", "v1beta1", "leasecandidates");
    const ALPHA: BuiltInResource = ("coordination.k8s.io", "v1alpha2", "leasecandidates");

    #[test]
    fn versions_and_resources_are_switched_off() {
        let stable = |line| {
            let mut off = read(line).unwrap();
            off.retain(|(_, version, _)| maturity(version) == "api/ga");
            off
        };
        assert_eq!(stable("batch/v1/jobs=false"), [JOBS].into());
        assert_eq!(stable("batch/v1=false").len(), 2);
        assert_eq!(stable("batch/v1=false,batch/v1/jobs=true").len(), 1, "the more special one wins");
        let few = stable("api/all=false,v1=true,batch/v1=true");
        assert!(few.contains(&("apps", "v1", "deployments")) && !few.contains(&JOBS));
        assert!(!few.iter().any(|(group, ..)| group.is_empty()));
        assert!(!few.iter().any(|(group, ..)| *group == REGISTRATIONS), "that stays");
    }

    #[test]
    fn what_is_not_stable_is_switched_on() {
        for (line, off) in [
            ("batch/v1=true", &[BETA, ALPHA] as &[BuiltInResource]),
            ("api/beta=true", &[ALPHA]),
            ("api/beta=true,coordination.k8s.io/v1beta1=false", &[BETA, ALPHA]),
            ("coordination.k8s.io/v1beta1=true", &[ALPHA]),
            ("coordination.k8s.io/v1alpha2/leasecandidates=true", &[BETA]),
            ("api/all=true", &[]),
        ] {
            let mut switched = read(line).unwrap();
            switched.retain(|(group, ..)| *group == BETA.0);
            assert_eq!(switched, off.iter().copied().collect(), "{line}");
        }
    }

    /// No flag goes so far back that a kind of this release is too new; the rule is the same.
    #[test]
    fn what_the_emulated_release_does_not_have_is_off() {
        assert!(read_as_of(33, "api/beta=true").unwrap().iter().all(|place| *place != BETA));
        assert!(read_as_of(32, "api/beta=true").unwrap().contains(&BETA));
        let whole = read_as_of(32, "coordination.k8s.io/v1beta1=true").unwrap_err();
        let text = "cannot enable version coordination.k8s.io/v1beta1 in runtime-config because all the resources have \
                    been introduced after the current version 1.32. Consider setting \
                    --runtime-config-emulation-forward-compatible=true";
        assert_eq!(whole, text);
        let error = read_as_of(32, "coordination.k8s.io/v1beta1/leasecandidates=true").unwrap_err();
        let text = "cannot enable resource leasecandidates in runtime-config because it is introduced at 1.33 after the \
                    current version 1.32. Consider setting --runtime-config-emulation-forward-compatible=true";
        assert_eq!(error, text);
    }

    #[test]
    fn what_came_later_is_served_where_that_is_wished() {
        let settings = |line: &str| {
            let pairs = line.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, on)| (key.to_owned(), on == "true")).collect::<BTreeMap<_, _>>()
        };
        let claims = |version: &'static str| {
            let found = kinds::find("resource.k8s.io", version, "resourceclaims").unwrap();
            move |served: &Served<'_>| served.has(found.info())
        };
        let introduced = kinds::find("resource.k8s.io", "v1", "resourceclaims").unwrap().info().introduced;
        let before = MinorVersion { minor: introduced.minor - 1, ..introduced };
        for (line, forward, expected) in [
            ("", Forward::default(), false),
            ("resource.k8s.io/v1beta1=true", Forward::default(), false),
            ("resource.k8s.io/v1beta1=true", Forward { stable: true, named: false }, true),
            ("resource.k8s.io/v1beta1=true,resource.k8s.io/v1=false", Forward { stable: true, named: false }, false),
            ("", Forward { stable: true, named: false }, false),
            ("resource.k8s.io/v1=true", Forward { stable: false, named: true }, true),
            ("api/all=true", Forward { stable: false, named: true }, false),
        ] {
            let settings = settings(line);
            let served = Served { settings: &settings, emulated: before, forward };
            assert_eq!(claims("v1")(&served), expected, "{line} {forward:?}");
        }
        let options = parse(flags::ALL, ["--emulation-forward-compatible".to_owned()]).unwrap();
        let mut errors = Errors::new();
        Forward::read(&options, BINARY, &mut errors);
        let text = "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same \
                    as the binary version";
        assert_eq!(errors.into_result().unwrap_err().to_string(), text);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (line, expected) in [
            ("batch/v1=maybe", "invalid value batch/v1=maybe"),
            ("example.com/v1=true", "unknown api groups example.com"),
            ("batch/v7=true", "group version batch/v7 that has not been registered"),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            (
                "apiregistration.k8s.io/v1=false",
                "--runtime-config=apiregistration.k8s.io/v1=false is not supported by this server",
            ),
            ("batch/v1/Jobs=false", "resource is always lowercase plural, not \"Jobs\""),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
