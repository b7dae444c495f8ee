//! LeaseCandidate of coordination.k8s.io/v1beta1: its names, and its rules.

use std::cmp::Ordering;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::coordination_v1::constants::coordinated_lease_strategy::OLDEST_EMULATION_VERSION;
use api_types::coordination_v1beta1::LeaseCandidate;
use feature_gates::MinorVersion;

use crate::coordination_v1::validate_strategy;
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<LeaseCandidate>("leasecandidates", "lvME0iHWE20=")),
    create_on_update: true,
    introduced: MinorVersion::one(33),
    ..ResourceInfo::of::<LeaseCandidate>()
};

/// The rules of the kind.
pub(crate) struct LeaseCandidateRules;

impl TypedRules for LeaseCandidateRules {
    type Object = LeaseCandidate;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<LeaseCandidate>] = &[
        Cell::NAME,
        Cell::text("LeaseName", |object, _| object.spec.lease_name.clone().into()),
        Cell::text("BinaryVersion", |object, _| object.spec.binary_version.clone().into()),
        Cell::text("EmulationVersion", |object, _| object.spec.emulation_version.clone().into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, _: bool) -> Vec<String> {
        names::config_key(name)
    }

    fn validate(_: &RuleContext, object: &LeaseCandidate) -> ErrorList {
        let (mut errors, path, spec) = (ErrorList::new(), Path::new("spec"), &object.spec);
        if spec.lease_name.is_empty() {
            errors.push(path.child("leaseName").required(""));
        }
        let emulated = version(&path.child("emulationVersion"), &spec.emulation_version, &mut errors);
        let binary = path.child("binaryVersion");
        if spec.binary_version.is_empty() {
            errors.push(binary.required(""));
        }
        let own = version(&binary, &spec.binary_version, &mut errors);
        if let (Some(own), Some(emulated)) = (&own, &emulated)
            && own < emulated
        {
            let detail = "must be greater than or equal to `emulationVersion`";
            errors.push(binary.invalid(&spec.binary_version, detail));
        }
        if spec.strategy.is_empty() {
            errors.push(path.child("strategy").required(""));
            return errors;
        }
        let says_nothing = emulated.is_none_or(|emulated| emulated == Version::default());
        if spec.strategy == OLDEST_EMULATION_VERSION && says_nothing {
            let detail = "must be specified when `strategy` is 'OldestEmulationVersion'";
            errors.push(path.child("emulationVersion").required(detail));
        }
        validate_strategy(&path, &spec.strategy, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &LeaseCandidate, old: &LeaseCandidate) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        if object.spec.lease_name != old.spec.lease_name {
            let path = Path::new("spec").child("leaseName");
            errors.push(path.invalid(&object.spec.lease_name, field_rules::IMMUTABLE));
        }
        errors
    }
}

/// A version as semver.org has it, without what comes after a plus.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd)]
struct Version {
    numbers: [u64; 3],
    before: Before,
}

/// What comes before a release; the release itself is after all of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Before(Vec<String>);

impl PartialOrd for Before {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let number = |text: &String| text.parse::<u64>().ok();
        let one = |(own, other): (&String, &String)| match (number(own), number(other)) {
            (Some(own), Some(other)) => own.cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => own.cmp(other),
        };
        let first = self.0.iter().zip(&other.0).map(one).find(|order| order.is_ne());
        Some(first.unwrap_or_else(|| match (self.0.is_empty(), other.0.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.0.len().cmp(&other.0.len()),
        }))
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let known = |part: &str| {
            let letters = part.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-');
            letters && !part.is_empty()
        };
        let number = |part: &str| {
            let plain = part.bytes().all(|letter| letter.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            plain.then(|| part.parse::<u64>().ok()).flatten()
        };
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (text, before) = text.split_once('-').map_or((text, None), |(text, before)| (text, Some(before)));
        if build.is_some_and(|build| !build.split('.').all(known)) {
            return None;
        }
        let before: Vec<String> = before.map(|all| all.split('.').map(str::to_owned).collect()).unwrap_or_default();
        let sound =
            |part: &String| known(part) && (part.bytes().any(|own| !own.is_ascii_digit()) || number(part).is_some());
        let mut parts = text.splitn(3, '.').map(number);
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        before.iter().all(sound).then_some(Self { numbers, before: Before(before) })
    }
}

/// Reads a version; nothing comes of an empty text.
fn version(path: &Path, text: &str, errors: &mut ErrorList) -> Option<Version> {
    if text.is_empty() {
        return None;
    }
    let version = Version::parse(text);
    if version.is_none() {
        errors.push(path.invalid(text, "must be a valid semantic version"));
    }
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let ordered = ["0.9.0", "1.0.0-2", "1.0.0-10", "1.0.0-a", "1.0.0-a.1", "1.0.0", "1.36.0", "1.36.1+x"];
        for pair in ordered.windows(2) {
            let [one, other] = [0, 1].map(|place| Version::parse(pair[place]).unwrap());
            assert!(one < other, "{pair:?}");
        }
        for wrong in ["1.36", "v1.36.0", "1.036.0", "1.36.0-", "1.36.0-01", "1.36.0+", "1.36.0.1", "1.a.0"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn candidates_say_what_they_run() {
        let cases = [
            ("l", "1.36.0", "1.35.0", OLDEST_EMULATION_VERSION, ""),
            ("l", "1.36.0", "", "example.com/own", ""),
            (
                "",
                "",
                "",
                "",
                "spec.leaseName: Required value, spec.binaryVersion: Required value, spec.strategy: Required value",
            ),
            (
                "l",
                "1.35.0",
                "1.36.0",
                "example.com/own",
                "spec.binaryVersion: Invalid value: \"1.35.0\": must be greater than or equal to `emulationVersion`",
            ),
            (
                "l",
                "1.36",
                "0.0.0",
                OLDEST_EMULATION_VERSION,
                "spec.binaryVersion: Invalid value: \"1.36\": must be a valid semantic version, spec.emulationVersion: \
                 Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
            ),
        ];
        for (lease, binary, emulated, strategy, expected) in cases {
            let mut object = LeaseCandidate::default();
            object.spec.lease_name = lease.into();
            object.spec.binary_version = binary.into();
            object.spec.emulation_version = emulated.into();
            object.spec.strategy = strategy.into();
            let errors = LeaseCandidateRules::validate(&RuleContext::default(), &object);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(", "), expected);
        }
    }
}
