//! `--feature-gates`: from pairs to a component's gates.

use feature_gates::shared::REMOTE_UID;
use feature_gates::{BINARY, Gates, Known, Resolved, Stage};

use super::go::parse_bool;
use super::versions::Versions;
use super::{Errors, Options};

/// The component that gates and versions belong to when none is named (`kube:Name=true`).
pub(super) const DEFAULT_COMPONENT: &str = "kube";

/// Applies `--feature-gates` to the gates that a component knows; without such a flag they stay at their defaults.
pub fn gates(options: &Options, known: &Known, versions: Versions, errors: &mut Errors) -> Resolved {
    let nothing = Resolved { gates: known.defaults(versions.emulated), warnings: Vec::new() };
    if !options.declares("feature-gates") {
        return nothing;
    }
    let pairs = options.pairs("feature-gates");
    let has_prefix = |(name, _): &&(String, String)| name.contains(':');
    if pairs.iter().any(|pair| has_prefix(&pair)) && !pairs.iter().all(|pair| has_prefix(&pair)) {
        errors.push("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use");
        return nothing;
    }
    let settings: Vec<(String, bool)> = pairs.iter().filter_map(|(name, value)| setting(name, value, errors)).collect();
    known.resolve(&settings, versions.emulated, versions.min_compatible).unwrap_or_else(|refused| {
        refused.iter().for_each(|error| errors.push(error));
        nothing
    })
}

fn setting(name: &str, value: &str, errors: &mut Errors) -> Option<(String, bool)> {
    let (component, name) = name.split_once(':').unwrap_or((DEFAULT_COMPONENT, name));
    if component != DEFAULT_COMPONENT {
        errors.push(format!("component not registered: {component}"));
        return None;
    }
    match parse_bool(value) {
        Ok(on) => return Some((name.to_owned(), on)),
        Err(_) if value.is_empty() => errors.push(format!("missing bool value for {name}")),
        Err(error) => errors.push(format!("invalid value of {name}={value}, err: {error}")),
    }
    None
}

/// Nobody is to believe that front proxies tell uids where the gate says that they do not.
pub fn check_uid_headers(options: &Options, gates: &Gates, errors: &mut Errors) {
    let (flag, name) = ("requestheader-uid-headers", REMOTE_UID.name());
    let fine = gates.enabled(REMOTE_UID) || options.strings(flag).is_empty();
    errors.check(fine, format!("--{flag} requires the {name} feature to be enabled"));
}

/// The list of gates that `--help` shows: those that can still be set, with stage and default.
#[must_use]
pub fn gates_help(known: &Known) -> String {
    let mut lines = vec![
        "kube:AllAlpha=true|false (ALPHA - default=false)".to_owned(),
        "kube:AllBeta=true|false (BETA - default=false)".to_owned(),
    ];
    for feature in known.features().filter(|feature| known.switches(*feature)) {
        let Some(step) = feature.gate().at(BINARY) else { continue };
        if !step.locked && matches!(step.stage, Stage::Alpha | Stage::Beta) {
            let (name, stage) = (feature.name(), step.stage.label());
            lines.push(format!("kube:{name}=true|false ({stage} - default={})", step.default));
        }
    }
    lines.sort();
    lines.join("\n")
}
