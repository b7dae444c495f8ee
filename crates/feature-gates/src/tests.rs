//! The table against the facts, and what settings lead to.

use serde_json::Value;

use super::*;

const PLAIN: MinorVersion = MinorVersion::one(35);
const WATCH_LIST: Feature = Feature::named("WatchList");
const GZIP: Feature = Feature::named("APIResponseCompression");
const ON_EXIT: Feature = Feature::named("ControllerManagerReleaseLeaderElectionLockOnExit");
const DECLARED: Feature = Feature::named("NodeDeclaredFeatures");
const SOCKETS: Feature = Feature::named("ExtendWebSocketsToKubelet");
const ORDERED: Feature = Feature::named("OrderedNamespaceDeletion");
const EXTENDED: Feature = Feature::named("DRAExtendedResource");
/// A binary with a part in more than it can switch.
const KNOWN: Known =
    Known::switching(&[&[WATCH_LIST, GZIP], &[ON_EXIT, DECLARED, SOCKETS, ORDERED]]).of(Part::ControllerManager);

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn written(step: &Step) -> String {
    let stage = match step.stage {
        Stage::Ga => "GA".to_owned(),
        other => format!("{other:?}"),
    };
    let lock = if step.locked { ":locked" } else { "" };
    format!("{}:{stage}:{}{lock}", step.since, if step.default { "on" } else { "off" })
}

fn source(own: &DefinedIn) -> String {
    let name = match own {
        DefinedIn::Kubernetes => "kubernetes",
        DefinedIn::ApiServer => "apiserver",
        DefinedIn::ApiExtensionsServer => "apiextensions-apiserver",
        DefinedIn::Client => "client-go",
        DefinedIn::ComponentBase => "component-base",
        DefinedIn::ControllerManager => "controller-manager",
    };
    name.to_owned()
}

#[test]
fn the_table_is_that_of_the_release() {
    let facts = test_facts::facts("feature-gates.json");
    assert_eq!(facts["release"], BINARY.to_string());
    let published = facts["gates"].as_array().expect("the facts list gates");
    assert_eq!(all().len(), published.len());
    for (gate, facts) in all().iter().zip(published) {
        let name = gate.name;
        assert_eq!(facts["name"], name);
        assert_eq!(gate.history.iter().map(written).collect::<Vec<_>>(), texts(&facts["history"]), "{name}");
        assert_eq!(gate.defined_in.iter().map(source).collect::<Vec<_>>(), texts(&facts["definedIn"]), "{name}");
        assert_eq!(gate.needs, texts(&facts["dependsOn"]), "{name}");
        let now = gate.at(BINARY).expect("every gate of the release has a step of it");
        assert_eq!(facts["default"], now.default, "{name}");
        assert_eq!(facts["locked"].as_bool().unwrap_or(false), now.locked, "{name}");
    }
}

#[test]
fn every_gate_is_as_upstream_has_it_when_nobody_sets_any() {
    Known::KUBERNETES.resolve(&[], BINARY, PLAIN).expect("what is on has what it needs");
    let gates = Gates::default();
    assert!(gates.enabled(GZIP) && !gates.enabled(ON_EXIT) && gates.enabled(Feature::named("WinDSR")));
    assert_eq!(gates.iter().count(), all().len());
}

/// Settings as the flag has them, at an emulated version.
fn set(line: &str, emulated: u32) -> Result<Resolved, String> {
    let pairs = line.split(',').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').expect("a pair"));
    let settings: Vec<(String, bool)> = pairs.map(|(name, value)| (name.to_owned(), value == "true")).collect();
    let min_compatible = MinorVersion::one(emulated - 1);
    let resolved = KNOWN.resolve(&settings, MinorVersion::one(emulated), min_compatible);
    resolved.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[test]
fn settings_switch_what_can_be_switched() {
    for (line, emulated, feature, on) in [
        ("", 36, WATCH_LIST, true),
        ("WatchList=false", 36, WATCH_LIST, false),
        ("WatchList=false,WatchList=true", 36, WATCH_LIST, true),
        ("WatchList=false", 36, GZIP, true),
        // As in the history: beta, but off, in one version between two in which it is on.
        ("", 33, WATCH_LIST, false),
        ("WatchList=true", 33, WATCH_LIST, true),
        ("OrderedNamespaceDeletion=false", 33, ORDERED, false),
        ("", 36, ON_EXIT, false),
        ("ControllerManagerReleaseLeaderElectionLockOnExit=true", 36, ON_EXIT, true),
        ("AllAlpha=false,ControllerManagerReleaseLeaderElectionLockOnExit=true", 36, ON_EXIT, true),
        ("WinDSR=false", 33, Feature::named("WinDSR"), false),
        // Later than the version, so it is not there.
        ("", 35, SOCKETS, false),
        ("", 35, DECLARED, false),
        ("", 36, SOCKETS, true),
    ] {
        let resolved = set(line, emulated).unwrap_or_else(|error| panic!("{line} at 1.{emulated}: {error}"));
        assert_eq!(resolved.gates.enabled(feature), on, "{line} at 1.{emulated}");
    }
}

#[test]
fn a_gate_of_other_binaries_takes_any_value() {
    let set = |known: Known, name: &str| {
        let resolved = known.resolve(&[(name.to_owned(), true)], BINARY, PLAIN);
        resolved.map(|resolved| resolved.gates.enabled(Feature::find(name).unwrap())).ok()
    };
    let (proxy, manager) = (Known::KUBERNETES.of(Part::Proxy), Known::KUBERNETES.of(Part::ControllerManager));
    for (known, name, expected) in [
        (proxy, "MaxUnavailableStatefulSet", Some(true)),
        (Known::KUBERNETES, "MaxUnavailableStatefulSet", Some(true)),
        // It has a part in it, and not this side.
        (manager, "MaxUnavailableStatefulSet", None),
        // Nobody has a part in it, and nothing shows it.
        (manager, "APIServingWithRoutine", Some(true)),
        // What it needs is about others, too.
        (proxy, "WorkloadAwarePreemption", None),
    ] {
        assert_eq!(set(known, name), expected, "{name}");
    }
    let together = ["GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"].map(|name| (name.to_owned(), true));
    assert!(proxy.resolve(&together, BINARY, PLAIN).is_ok());
    assert!(proxy.resolve(&[("MaxUnavailableStatefulSet".into(), false)], BINARY, PLAIN).is_ok());
}

#[test]
fn whole_stages_can_be_switched() {
    // It has a part in none, so that it takes any value of each gate that the lists tell of.
    let known = Known::KUBERNETES;
    assert_eq!(known.one_sided(), [""; 0]);
    assert!(KNOWN.one_sided().contains(&"HPAScaleToZero"));
    assert!(KNOWN.one_sided().iter().all(|name| !KNOWN.switches(Feature::named(name))));
    // As upstream: some alpha features need some of the next stage.
    let needed = "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]";
    for (settings, expected) in [
        (&[("AllAlpha", true)][..], None),
        (&[("AllAlpha", false)], None),
        (&[("AllBeta", true)], None),
        (&[("AllBeta", false)], None),
        (&[("AllAlpha", true), ("AllBeta", true)], None),
        (&[("AllAlpha", false), ("AllBeta", true)], None),
        (&[("AllAlpha", false), ("AllBeta", false)], None),
        (&[("AllAlpha", true), ("AllBeta", false)], Some(needed)),
    ] {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let error = known.resolve(&settings, BINARY, PLAIN).err().map(|errors| errors[0].to_string());
        assert_eq!(error.as_deref(), expected, "{settings:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (line, emulated, expected) in [
        ("Nope=false", 36, "unrecognized feature gate: Nope"),
        (
            "OrderedNamespaceDeletion=false",
            36,
            "cannot set feature gate OrderedNamespaceDeletion to false, feature is locked to true",
        ),
        (
            "ExtendWebSocketsToKubelet=true",
            35,
            "cannot set feature gate ExtendWebSocketsToKubelet to true, feature is PreAlpha at emulated version 1.35, min \
             compatibility version 1.34",
        ),
        (
            "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=true",
            36,
            "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: [NodeDeclaredFeatures]",
        ),
        (
            "HPAScaleToZero=true",
            36,
            "cannot set feature gate HPAScaleToZero to true: this build only has what there is with HPAScaleToZero=false",
        ),
        ("PodLevelResources=false", 36, "this build only has what there is with PodLevelResources=true"),
        ("DynamicResourceAllocation=false", 36, "feature is locked to true"),
        (
            "AllAlpha=true",
            36,
            "cannot set feature gate AllAlpha to true: of these gates this build only has the other side: [",
        ),
        ("AllBeta=false", 36, "[APIServerIdentity "),
        ("Nope=true,WatchLost=true", 36, "unrecognized feature gate: Nope; unrecognized feature gate: WatchLost"),
    ] {
        let error = set(line, emulated).expect_err(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let group = set("AllAlpha=true", 36).expect_err("it has gates that are not there");
    assert!(!group.contains(ON_EXIT.name()), "what can be switched is no reason: {group}");
}

#[test]
fn a_stage_leaves_what_is_named_and_what_is_locked() {
    const FEW: Known = Known { defined_in: &[DefinedIn::ControllerManager], switches: &[Feature::LIST], part: None };
    let settings = [("AllAlpha".to_owned(), true), (ON_EXIT.name().to_owned(), false)];
    let gates = FEW.resolve(&settings, BINARY, PLAIN).expect("all can be switched").gates;
    let shown: Vec<_> = gates.iter().collect();
    assert_eq!(
        shown,
        [
            ("CloudControllerManagerWatchBasedRoutesReconciliation", Stage::Alpha, true),
            ("CloudControllerManagerWebhook", Stage::Alpha, true),
            (ON_EXIT.name(), Stage::Alpha, false),
        ]
    );
    assert!(!gates.enabled(GZIP), "a gate that the binary does not know is off");
    let unknown = FEW.resolve(&[(GZIP.name().to_owned(), true)], BINARY, PLAIN).expect_err("not of this binary");
    assert_eq!(unknown, [GateError::Unknown(GZIP.name().into())]);
}

impl Feature {
    const LIST: &'static [Self] = &[
        Self::named("CloudControllerManagerWatchBasedRoutesReconciliation"),
        Self::named("CloudControllerManagerWebhook"),
        ON_EXIT,
    ];
}

#[test]
fn users_are_told_what_will_go_and_what_stays() {
    let told = |line: &str, emulated| set(line, emulated).expect(line).warnings;
    assert_eq!(told("WatchList=true", 36), Vec::<String>::new());
    let ga = "Setting GA feature gate OrderedNamespaceDeletion=true. It will be removed in a future release.";
    assert_eq!(told("OrderedNamespaceDeletion=true", 36), [ga]);
    let old = "Setting deprecated feature gate KMSv1=false. It will be removed in a future release.";
    assert_eq!(told("KMSv1=false", 36), [old]);
    let warnings = told("NodeDeclaredFeatures=true", 35);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("Emulating version 1.35: these feature gates stay as in 1.36"), "{}", warnings[0]);
    assert!(
        warnings[0].contains("StaleControllerConsistencyJob") && !warnings[0].contains(SOCKETS.name()),
        "{}",
        warnings[0]
    );
    let older = told("", 33);
    assert!(older[0].starts_with("Emulating version 1.33"), "{}", older[0]);
    assert!(!older[0].contains("WindowsGracefulNodeShutdown"), "nobody has a part in it: {}", older[0]);
    let alpha = "component has alpha features enabled in emulated version, this is unsupported: features=[NodeDeclaredFeatures]";
    assert_eq!(warnings[1], alpha);
}

#[test]
fn one_gate_can_be_switched_in_a_copy() {
    let gates = Gates::default();
    let other = gates.with(EXTENDED, false);
    assert!(gates.enabled(EXTENDED) && !other.enabled(EXTENDED) && other.enabled(GZIP));
}
