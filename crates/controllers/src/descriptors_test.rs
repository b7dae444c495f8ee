//! The list of controllers against upstream's names, aliases and gates.

use serde_json::Value;

use crate::ALL;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn names_aliases_and_gates_are_upstreams() {
    let table = test_facts::facts("kcm-controllers.json");
    let upstream = table["controllers"].as_array().unwrap();
    for descriptor in ALL {
        let name = descriptor.name;
        let entry = upstream.iter().find(|entry| entry["name"] == name);
        let entry = entry.unwrap_or_else(|| panic!("{name} is not a controller of upstream"));
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
