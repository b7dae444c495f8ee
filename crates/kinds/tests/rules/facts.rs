//! The tables of names, verbs, columns and storage beside the facts of upstream's release.

use feature_gates::Gates;
use kinds::info::SubresourceInfo;
use kinds::rules::{Endpoint, Rules};
use serde_json::{Value, json};

use super::{context, read};

fn texts(value: &Value, member: &str) -> Vec<String> {
    value[member].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A resource of the facts in the shape of [`ours`]; `default_columns` are those of kinds that have none of their own.
fn stated(fact: &Value, default_columns: &Value) -> Value {
    let prefix = fact["storage"]["etcdPrefix"].as_str().map(|prefix| prefix.trim_start_matches("/registry/"));
    let storage = prefix.map(|prefix| {
        let stored = &fact["storage"];
        json!({"prefix": prefix, "group": stored["gvk"]["group"], "version": stored["gvk"]["version"], "hash": stored["hash"]})
    });
    let mut fields = texts(fact, "fieldSelectors");
    fields.retain(|field| !field.starts_with("metadata."));
    let columns = |column: &Value| {
        let format = column["format"].as_str().unwrap_or_default();
        json!([column["name"], column["type"], format, column["priority"]])
    };
    let parts = |part: &Value| {
        let text = |member: &str| part[member].as_str().unwrap_or_default().to_owned();
        json!([part["name"], part["kind"], text("kindGroup"), text("kindVersion"), texts(part, "verbs")])
    };
    let list = |member: &str| fact[member].as_array().cloned().unwrap_or_default();
    let shown = Some(list("columns")).filter(|own| !own.is_empty());
    let shown = shown.or_else(|| default_columns.as_array().cloned()).unwrap_or_default();
    json!({
        "kind": fact["kind"], "singular": fact["singular"], "namespaced": fact["namespaced"],
        "shortNames": texts(fact, "shortNames"), "categories": texts(fact, "categories"), "verbs": texts(fact, "verbs"),
        "storage": storage, "featureGates": texts(fact, "featureGates"),
        "createOnUpdate": fact["strategy"]["createOnUpdate"].as_bool().unwrap_or_default(),
        "unconditionalUpdate": fact["strategy"]["unconditionalUpdate"].as_bool().unwrap_or_default(),
        "fieldSelectors": fields,
        "columns": shown.iter().map(columns).collect::<Vec<_>>(),
        "subresources": list("subresources").iter().map(parts).collect::<Vec<_>>(),
    })
}

/// A row of our table.
fn ours(rules: &dyn Rules) -> Value {
    let info = rules.info();
    let storage = info.storage.as_ref().map(|stored| {
        json!({"prefix": stored.prefix, "group": stored.group, "version": stored.version, "hash": stored.hash})
    });
    let part = |part: &SubresourceInfo<'_>| json!([part.name, part.kind, part.group, part.version, part.verbs]);
    let columns: Vec<Value> = rules
        .columns()
        .iter()
        .map(|column| json!([column.name, column.type_, column.format, column.priority]))
        .collect();
    json!({
        "kind": info.kind, "singular": info.singular, "namespaced": info.namespaced,
        "shortNames": info.short_names, "categories": info.categories, "verbs": info.verbs,
        "storage": storage, "featureGates": info.gates.iter().map(|gate| gate.name()).collect::<Vec<_>>(),
        "createOnUpdate": info.create_on_update, "unconditionalUpdate": info.unconditional_update,
        "fieldSelectors": info.field_selectors,
        "columns": columns,
        "subresources": info.subresources.iter().map(part).collect::<Vec<_>>(),
    })
}

/// Which release brought a kind decides what a server shows that behaves like an older one; before the oldest release
/// that can be emulated it makes no difference.
#[test]
fn what_is_new_says_so() {
    const OLDEST: u32 = 33;
    let facts = test_facts::facts("resources.json");
    for info in kinds::all().map(|rules| rules.info()) {
        let mut rows = facts["resources"].as_array().into_iter().flatten();
        let fact = rows.find(|fact| {
            fact["group"] == info.group && fact["version"] == info.version && fact["resource"] == info.resource
        });
        let release = fact.and_then(|fact| fact["introduced"].as_str()).and_then(|text| text.strip_prefix("1."));
        let minor: u32 = release.and_then(|minor| minor.parse().ok()).unwrap_or_default();
        let name = format!("{}/{}/{}", info.group, info.version, info.resource);
        assert_eq!(info.introduced.minor.max(OLDEST), minor.max(OLDEST), "{name}");
    }
}

#[test]
fn every_row_is_upstreams() {
    let facts = test_facts::facts("resources.json");
    let known = facts["resources"].as_array().expect("resources");
    let mut differences = Vec::new();
    for rules in kinds::all() {
        let info = rules.info();
        let name = format!("{}/{}/{}", info.group, info.version, info.resource);
        let is_it = |fact: &&Value| {
            fact["group"] == info.group && fact["version"] == info.version && fact["resource"] == info.resource
        };
        let Some(fact) = known.iter().find(is_it) else {
            differences.push(format!("{name}: unknown to upstream"));
            continue;
        };
        let (stated, ours) = (stated(fact, &facts["defaultTableColumns"]), ours(rules));
        for (member, wanted) in stated.as_object().into_iter().flatten() {
            if ours[member] != *wanted {
                differences.push(format!("{name} {member}: ours {}, upstream's {wanted}", ours[member]));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A row has as many cells as its kind has columns, even of an object that says nothing.
#[test]
fn rows_have_a_cell_for_each_column() {
    for rules in kinds::all().filter(|rules| rules.info().storage.is_some()) {
        let info = rules.info();
        let cells = rules.cells(&*rules.new_object(), super::context().now);
        assert_eq!(cells.len(), rules.columns().len(), "{}/{}", info.group, info.resource);
    }
}

/// Every field that can be selected by has a value, and no other field has.
#[test]
fn selectable_fields_have_values() {
    for rules in kinds::all() {
        let info = rules.info();
        let object = rules.new_object();
        for field in info.field_selectors {
            assert!(rules.field(&*object, field).is_some(), "{}/{} {field}", info.group, info.resource);
        }
        assert_eq!(rules.field(&*object, "spec.nothing"), None, "{}/{}", info.group, info.resource);
    }
}

#[test]
fn each_list_is_of_one_group_and_version() {
    for version in kinds::VERSIONS {
        for rules in version.kinds {
            let info = rules.info();
            assert_eq!((info.group, info.version), (version.group(), version.name()), "{}", info.kind);
        }
        let of_group = kinds::VERSIONS.iter().filter(|other| other.group() == version.group());
        let differs = of_group.filter(|other| other.group_priority != version.group_priority).count();
        assert_eq!(differs, 0, "{} has one place", version.group());
    }
    let in_order = kinds::VERSIONS.is_sorted_by_key(|version| std::cmp::Reverse(version.group_priority));
    assert!(in_order, "in discovery's order");
}

#[test]
fn what_nobody_owns_through_a_status_stays_as_it_is_stored() {
    let mut kept = Vec::new();
    for rules in kinds::all().filter(|rules| rules.info().subresources.iter().any(|own| own.name == "status")) {
        let mut object = read(rules, r#"{"metadata":{"annotations":{"a":"b"}}}"#);
        rules.prepare_update(&context(), Endpoint::Status, &mut *object, &*read(rules, "{}"));
        let keeps = object.meta().annotations.is_empty();
        let info = rules.info();
        assert_eq!(
            keeps,
            rules.reset_fields(&Gates::default(), "status").contains(&"metadata"),
            "{}/{}",
            info.group,
            info.resource
        );
        kept.extend(keeps.then_some(info.resource));
    }
    kept.sort_unstable();
    kept.dedup();
    let expected = [
        "apiservices",
        "devicetaintrules",
        "flowschemas",
        "podcertificaterequests",
        "podgroups",
        "prioritylevelconfigurations",
        "resourceclaims",
        "resourcepoolstatusrequests",
        "servicecidrs",
        "storageversionmigrations",
        "storageversions",
        "validatingadmissionpolicies",
        "volumeattachments",
    ];
    assert_eq!(kept, expected);
}
