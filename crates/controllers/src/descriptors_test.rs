//! The list of controllers against upstream's names, aliases and gates.

use serde_json::Value;

use crate::ALL;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a controller's name begins with that upstream has not, so that it is never taken for one of upstream's.
const OWN: &str = "coxswain-";

#[test]
fn all_of_upstream_but_what_only_clouds_need_is_here() {
    let table = test_facts::facts("kcm-controllers.json");
    let upstream = table["controllers"].as_array().unwrap();
    let own = ALL.iter().map(|descriptor| descriptor.name);
    for name in own.filter(|name| !name.starts_with(OWN)) {
        assert!(upstream.iter().any(|entry| entry["name"] == name), "{name} is not a controller of upstream");
    }
    for entry in upstream.iter().filter(|entry| entry["cloudProvider"] != true) {
        let name = entry["name"].as_str().unwrap();
        let descriptor = ALL.iter().find(|descriptor| descriptor.name == name);
        let descriptor = descriptor.unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(descriptor.aliases, texts(&entry["aliases"]), "{name}");
        let gates: Vec<&str> = descriptor.gates.iter().map(|gate| gate.name()).collect();
        assert_eq!(gates, texts(&entry["featureGates"]), "{name}");
        assert_eq!(descriptor.disabled_by_default, entry["disabledByDefault"] == true, "{name}");
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = ALL.iter().flat_map(|it| it.aliases.iter().chain([&it.name])).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
