//! What the tables of the kinds declare: defaults that fit their fields and are upstream's, and values.

use api_machinery::json::Reader;
use api_machinery::reflect::{Shape, StructType};
use api_machinery::value::Value;

/// Calls `visit` with every struct below `table` once.
fn walk(
    table: &'static StructType,
    seen: &mut Vec<(&'static str, &'static str)>,
    visit: &mut dyn FnMut(&'static StructType),
) {
    let name = (table.package, table.name);
    if seen.contains(&name) {
        return;
    }
    seen.push(name);
    visit(table);
    for field in table.fields {
        let mut shape = (field.shape)();
        while let Shape::List(inner) | Shape::Map(inner) | Shape::Optional(inner) = shape {
            shape = inner();
        }
        if let Shape::Struct(inner) = shape {
            walk(inner, seen, visit);
        }
    }
}

/// The tables of all kinds.
fn roots() -> impl Iterator<Item = &'static StructType> {
    kinds::all().map(|rules| rules.new_object().as_reflect().struct_type())
}

#[test]
fn defaults_are_json() {
    let (mut seen, mut count) = (Vec::new(), 0);
    for root in roots() {
        walk(root, &mut seen, &mut |table| {
            for field in table.fields.iter().filter(|field| !field.fill.is_empty()) {
                count += 1;
                assert!(Reader::new(field.fill).read_value().is_ok(), "{}.{}", table.name, field.name);
            }
        });
    }
    assert!(count > 30, "{count} defaults");
}

/// Values are told of text alone, once each, and a default is one of them.
#[test]
fn defaults_are_among_the_values() {
    let (mut seen, mut count) = (Vec::new(), 0);
    for root in roots() {
        walk(root, &mut seen, &mut |table| {
            for field in table.fields.iter().filter(|field| !field.values().is_empty()) {
                let (place, values) = (format!("{}.{}", table.name, field.name), field.values());
                count += 1;
                let mut shape = (field.shape)();
                while let Shape::List(inner) | Shape::Map(inner) | Shape::Optional(inner) = shape {
                    shape = inner();
                }
                assert!(matches!(shape, Shape::Str), "{place} is no text");
                assert!((1..values.len()).all(|at| !values[..at].contains(&values[at])), "{place} repeats a value");
                for default in [field.default, field.fill].into_iter().filter(|text| !text.is_empty()) {
                    let is_known = values.contains(&default.trim_matches('"'));
                    assert!(is_known, "{place}: the default {default} is none of {values:?}");
                }
            }
        });
    }
    assert!(count > 60, "{count} fields with values");
}

/// Set by the rules of their kinds: only where an autoscaler says how fast it goes, and of the window only upwards; the
/// templates of cron jobs go without their first, and volumes with any other source without the last.
const BY_RULES: [(&str, &str); 6] = [
    ("HPAScalingRules", "selectPolicy"),
    ("HPAScalingRules", "stabilizationWindowSeconds"),
    ("JobSpec", "completionMode"),
    ("JobSpec", "manualSelector"),
    ("JobSpec", "suspend"),
    ("VolumeSource", "emptyDir"),
];

/// The package of a table as the facts call it: `core/v1` for `io.k8s.api.core.v1`.
fn package(table: &StructType) -> String {
    let mut parts = table.package.rsplit('.');
    let (version, group) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{group}/{version}")
}

/// The default that a table states for a field.
fn stated(table: &StructType, field: &str) -> Value {
    let row = table.index_of(field).and_then(|index| table.fields.get(index));
    let text = row.map(|row| row.fill).filter(|fill| !fill.is_empty()).unwrap_or("null");
    serde_json::from_str(text).expect("defaults are JSON")
}

/// Where a default hangs on other fields, the facts have it under `conditional`, and that holds.
#[test]
fn defaults_are_upstreams() {
    let facts = test_facts::facts("defaults.json");
    let conditional: Vec<(&str, &str)> = facts["conditional"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one["type"].as_str()?, one["field"].as_str()?)))
        .collect();
    let (mut seen, mut tables) = (Vec::new(), Vec::new());
    for root in roots() {
        walk(root, &mut seen, &mut |table| tables.push(table));
    }
    let (mut differences, mut compared) = (Vec::new(), 0);
    for table in tables {
        let (package, name) = (package(table), table.name);
        let known = facts["api"][&package][name].as_array().cloned().unwrap_or_default();
        let by_condition = |field: &str| {
            conditional.contains(&(&format!("{package}.{name}"), field)) || BY_RULES.contains(&(name, field))
        };
        for fact in &known {
            let field = fact["field"].as_str().unwrap_or_default();
            compared += 1;
            if !by_condition(field) && stated(table, field) != fact["value"] {
                differences.push(format!(
                    "{package} {name}.{field}: ours {}, upstream's {}",
                    stated(table, field),
                    fact["value"]
                ));
            }
        }
        for row in table.fields.iter().filter(|row| !row.fill.is_empty() && !by_condition(row.name)) {
            if !known.iter().any(|fact| fact["field"] == row.name) {
                differences.push(format!("{package} {name}.{}: upstream has no default", row.name));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 60, "only {compared} defaults were compared");
}
