//! Scenarios of tracked writes and applies.

use api_machinery::leaf::RawJson;
use api_machinery::meta::ObjectMeta;
use serde_json::json;

use super::*;
use crate::test_types::node;

fn manager() -> FieldManager<'static> {
    FieldManager {
        node: node(),
        gvk: GroupVersionKind::new("test", "v1", "Sample"),
        subresource: String::new(),
        reset: FieldSet::default(),
        versions: Versions::Custom(&*VERSIONS),
    }
}

/// The second version has a field that the first has not.
static VERSIONS: LazyLock<Two> = LazyLock::new(|| {
    let with = |schema: Value| Structural::root(&schema);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let narrow = json!({"type": "object", "properties": {"args": {"type": "array", "items": {"type": "string"}}}});
    Two([("test/v1".into(), with(any)), ("test/v1beta1".into(), with(narrow))])
});

#[derive(Debug)]
struct Two([(String, Structural); 2]);

impl CustomVersions for Two {
    fn has(&self, api_version: &str) -> bool {
        self.schema(api_version).is_some()
    }

    fn schema(&self, api_version: &str) -> Option<&Structural> {
        self.0.iter().find(|(name, _)| name == api_version).map(|(_, schema)| schema)
    }
}

fn object(fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "test/v1", "kind": "Sample", "metadata": {"name": "x"}});
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

fn at(second: i64) -> Time {
    Time::from_unix_seconds(second)
}

fn apply(live: Option<&Value>, fields: &Value, who: &str, force: bool) -> Result<Value, ApplyError> {
    let empty = json!({"apiVersion": "test/v1", "kind": "Sample"});
    apply_by(&manager(), live, &object(fields), ApplyOptions { manager: who, force, now: at(100), empty: &empty })
}

fn apply_by(
    manager: &FieldManager<'_>,
    live: Option<&Value>,
    applied: &Value,
    options: ApplyOptions<'_>,
) -> Result<Value, ApplyError> {
    let apart = live.map(|live| (without_managed_fields(live), record(live)));
    let live = apart.as_ref().map(|(bare, record)| (bare, record.as_slice()));
    manager.apply(live, applied, options).map(|(object, record)| recorded(&object, record))
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The record of an object, typed.
fn record(object: &Value) -> Vec<ManagedFieldsEntry> {
    let mut meta = ObjectMeta::default();
    let list = managed_fields(object).unwrap_or(&Value::Null);
    api_machinery::value::from_value(&json!({ "managedFields": list }), &mut meta).unwrap();
    meta.managed_fields
}

/// The object with this record instead of its own.
fn recorded(object: &Value, record: Vec<ManagedFieldsEntry>) -> Value {
    let mut object = without_managed_fields(object);
    if !record.is_empty() {
        let meta = ObjectMeta { managed_fields: record, ..ObjectMeta::default() };
        object["metadata"]["managedFields"] = api_machinery::value::to_value(&meta)["managedFields"].clone();
    }
    object
}

fn create(new: &Value, who: &str, now: Time) -> Value {
    create_by(&manager(), new, who, now)
}

fn create_by(manager: &FieldManager<'_>, new: &Value, who: &str, now: Time) -> Value {
    let bare = without_managed_fields(new);
    recorded(new, manager.create(View::Dynamic(&bare), &record(new), who, now))
}

fn update(live: &Value, new: &Value, who: &str, now: Time) -> Value {
    update_by(&manager(), live, new, who, now)
}

fn update_by(manager: &FieldManager<'_>, live: &Value, new: &Value, who: &str, now: Time) -> Value {
    let (before, given) = (record(live), record(new));
    let bare = without_managed_fields(live);
    recorded(new, manager.update((&bare, &before), (&without_managed_fields(new), &given), who, now))
}

/// `manager operation fields` of each entry.
fn owners(object: &Value) -> Vec<String> {
    let entries = managed_fields(object).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    entries
        .iter()
        .map(|entry| format!("{} {} {}", text(entry, "manager"), text(entry, "operation"), entry["fieldsV1"]))
        .collect()
}

#[test]
fn ordinary_writes_are_tracked() {
    let created = create(&object(&json!({"replicas": 1, "labels": {"a": "1"}})), "one", at(1));
    assert_eq!(owners(&created), [r#"one Update {"f:labels":{".":{},"f:a":{}},"f:replicas":{}}"#]);
    let mut changed = created.clone();
    changed["replicas"] = json!(2);
    let updated = update(&created, &changed, "two", at(2));
    assert_eq!(owners(&updated), [r#"one Update {"f:labels":{".":{},"f:a":{}}}"#, r#"two Update {"f:replicas":{}}"#]);
    let unchanged = update(&updated, &updated, "three", at(3));
    assert_eq!(unchanged, updated);
    let mut emptied = updated.clone();
    emptied.as_object_mut().unwrap().remove("labels");
    assert_eq!(owners(&update(&updated, &emptied, "two", at(4))), [r#"two Update {"f:replicas":{}}"#]);
}

#[test]
fn untracked_objects_stay_untracked() {
    let live = object(&json!({"replicas": 1}));
    let new = object(&json!({"replicas": 2}));
    assert_eq!(update(&live, &new, "one", at(1)), new);
}

#[test]
fn an_empty_list_resets_the_record() {
    let live = create(&object(&json!({"replicas": 1})), "one", at(1));
    let mut new = object(&json!({"replicas": 2}));
    new["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(owners(&update(&live, &new, "two", at(2))), [r#"two Update {"f:replicas":{}}"#]);
}

#[test]
fn applies_merge_and_prune() {
    let first = apply(None, &json!({"replicas": 1, "labels": {"a": "1", "b": "2"}}), "one", false).unwrap();
    assert_eq!(owners(&first), [r#"one Apply {"f:labels":{"f:a":{},"f:b":{}},"f:replicas":{}}"#]);
    let again = apply(Some(&first), &json!({"replicas": 1, "labels": {"a": "1", "b": "2"}}), "one", false).unwrap();
    assert_eq!(again, first);
    let dropped = apply(Some(&first), &json!({"labels": {"a": "1"}}), "one", false).unwrap();
    assert_eq!(without_managed_fields(&dropped), object(&json!({"labels": {"a": "1"}})));
    let shared = apply(Some(&first), &json!({"replicas": 1}), "two", false).unwrap();
    // It changed no value, so it has no time and comes first.
    assert_eq!(owners(&shared)[0], r#"two Apply {"f:replicas":{}}"#);
    let left = apply(Some(&shared), &json!({"labels": {"a": "1", "b": "2"}}), "one", false).unwrap();
    assert_eq!(left["replicas"], json!(1));
}

#[test]
fn items_that_nobody_wants_disappear() {
    let first = apply(None, &json!({"items": [{"name": "a", "value": "1"}, {"name": "b"}]}), "one", false).unwrap();
    let second = apply(Some(&first), &json!({"items": [{"name": "b"}]}), "one", false).unwrap();
    assert_eq!(second["items"], json!([{"name": "b"}]));
    let third = apply(Some(&second), &json!({}), "one", false).unwrap();
    assert_eq!(third, object(&json!({})));
}

#[test]
fn conflicts_are_reported_or_forced() {
    let live = create(&object(&json!({"replicas": 1, "labels": {"a": "1"}})), "one", at(1));
    let error = apply(Some(&live), &json!({"replicas": 2}), "two", false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\" using test/v1: .replicas");
    let error = apply(Some(&live), &json!({"replicas": 2, "labels": {"a": "2"}}), "two", false).unwrap_err();
    let expected = "Apply failed with 2 conflicts: conflicts with \"one\" using test/v1:\n- .labels.a\n- .replicas";
    assert_eq!(error.to_string(), expected);
    let status = ApiError::from(error);
    let causes = status.details.unwrap().causes;
    assert_eq!(
        (status.code, causes[1].reason.as_str(), causes[1].field.as_str()),
        (409, "FieldManagerConflict", ".replicas")
    );
    let error = apply(Some(&live), &json!({"replicas": 2}), "one", false).unwrap_err();
    let expected = "Apply failed with 1 conflict: conflict with \"one\" using test/v1: .replicas";
    assert_eq!(error.to_string(), expected, "what a manager wrote otherwise is not what it applied");
    let forced = apply(Some(&live), &json!({"replicas": 2}), "two", true).unwrap();
    assert_eq!(owners(&forced), [r#"two Apply {"f:replicas":{}}"#, r#"one Update {"f:labels":{".":{},"f:a":{}}}"#]);
    let same = apply(Some(&live), &json!({"replicas": 1}), "two", false).unwrap();
    assert_eq!(owners(&same).len(), 2);
    assert!(managed_fields(&same).unwrap()[0].get("time").is_none());
}

#[test]
fn the_first_apply_respects_what_was_there() {
    let live = object(&json!({"replicas": 1}));
    let error = apply(Some(&live), &json!({"replicas": 2}), "two", false).unwrap_err();
    assert!(error.to_string().contains("\"before-first-apply\" using test/v1: .replicas"), "{error}");
}

#[test]
fn reset_fields_are_not_tracked() {
    let manager = FieldManager { reset: FieldSet::of_fields(&["inner"]), ..manager() };
    let created = create_by(&manager, &object(&json!({"replicas": 1, "inner": {"a": "1"}})), "one", at(1));
    assert_eq!(owners(&created), [r#"one Update {"f:replicas":{}}"#]);
}

#[test]
fn bad_applies_are_refused() {
    let cases = [
        (
            json!({"foo": 1}),
            "failed to create typed patch object (/x; test/v1, Kind=Sample): .foo: field not declared in schema",
        ),
        (json!({"kind": "Other"}), "invalid object type: test/v1, Kind=Other"),
        (json!({"metadata": {"managedFields": [{}]}}), "metadata.managedFields must be nil"),
        (
            json!({"foo": 1, "replicas": "x"}),
            "failed to create typed patch object (/x; test/v1, Kind=Sample): errors:\n  .foo: field not declared in \
             schema\n  .replicas: expected numeric (int or float), got string",
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(apply(None, &fields, "one", false).unwrap_err().to_string(), expected);
    }
}

#[test]
fn old_entries_are_united() {
    let mut live = create(&object(&json!({"labels": {"k0": "v"}})), "m00", at(1));
    for round in 1..=12 {
        let mut new = live.clone();
        new["labels"][format!("k{round}")] = json!("v");
        live = update(&live, &new, &format!("m{round:02}"), at(1 + round));
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    assert!(owners[0].starts_with("ancient-changes Update {\"f:labels\":{\".\":{},\"f:k0\":{}"), "{}", owners[0]);
    assert!(owners[9].starts_with("m12 Update"));
}

/// Who owns a map as such goes on owning it when its last member goes.
#[test]
fn emptied_maps_keep_their_owners() {
    let first = apply(None, &json!({"labels": {"a": "1"}}), "one", false).unwrap();
    let both = apply(Some(&first), &json!({"labels": {}}), "two", false).unwrap();
    let emptied = apply(Some(&both), &json!({"labels": {}}), "one", false).unwrap();
    assert_eq!(emptied["labels"], Value::Null);
    assert_eq!(owners(&emptied), ["two Apply {\"f:labels\":{}}", "one Apply {\"f:labels\":{}}"]);
}

#[test]
fn client_side_apply_is_taken_over() {
    let text = r#"{"apiVersion":"test/v1","kind":"Sample","metadata":{"name":"x"},"replicas":1}"#;
    let mut live = object(&json!({"replicas": 1}));
    live["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": text});
    let live = create(&live, "kubectl-client-side-apply", at(1));
    assert!(apply(Some(&live), &json!({"replicas": 2}), "other", false).is_err());
    let taken = apply(Some(&live), &json!({"replicas": 2}), "kubectl", false).unwrap();
    assert_eq!(taken["replicas"], json!(2));
    let annotation = taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str();
    assert!(annotation.unwrap().contains("\"replicas\":2"));
}

/// A real kind: defaults of keys, nested lists and atomic selectors.
#[test]
fn deployments_are_applied() {
    use api_machinery::reflect::{Field, Shape};
    let Shape::Struct(table) = <api_types::apps_v1::Deployment as Field>::shape() else { panic!("a struct") };
    let manager = FieldManager {
        node: TypeNode::of_struct(table),
        gvk: GroupVersionKind::new("apps", "v1", "Deployment"),
        subresource: String::new(),
        reset: FieldSet::of_fields(&["status"]),
        versions: Versions::BuiltIn,
    };
    let deployment = |image: &str, ports: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [{"name": "c", "image": image, "ports": ports}]}},
            },
        })
    };
    let empty = api_machinery::value::to_value(&api_types::apps_v1::Deployment::default());
    let options = ApplyOptions { manager: "one", force: false, now: at(1), empty: &empty };
    let first = apply_by(&manager, None, &deployment("a", json!([{"containerPort": 80}])), options).unwrap();
    let expected = concat!(
        r#"one Apply {"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{},"f:template":{"f:spec":"#,
        r#"{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"#,
        r#""f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}"#
    );
    assert_eq!(owners(&first), [expected]);
    let mut live = first.clone();
    live["spec"]["replicas"] = json!(3);
    live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = json!("TCP");
    live["status"] = json!({"replicas": 1});
    let scaled = update_by(&manager, &live, &live, "hpa", at(2));
    let changed = deployment("b", json!([{"containerPort": 443, "name": "tls"}]));
    let second = apply_by(&manager, Some(&scaled), &changed, options).unwrap();
    let container = &second["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], json!("b"));
    assert_eq!(container["ports"], json!([{"containerPort": 443, "name": "tls"}]));
    assert_eq!((&second["spec"]["replicas"], &second["status"]), (&json!(3), &json!({"replicas": 1})));
}

#[test]
fn sets_of_versions_that_are_not_known_are_forgotten() {
    let entry = |who: &str, api_version: &str| ManagedFieldsEntry {
        manager: who.into(),
        operation: "Update".into(),
        api_version: api_version.into(),
        fields_type: "FieldsV1".into(),
        fields_v1: Some(RawJson::from_value(&json!({"f:args": {}}))),
        ..ManagedFieldsEntry::default()
    };
    let record = [entry("old", "test/v9"), entry("one", "test/v1")];
    let (live, new) = (object(&json!({"args": ["a"]})), object(&json!({"args": ["a"], "replicas": 1})));
    let after = manager().update((&live, &record), (&new, &[]), "two", at(2));
    let who: Vec<&str> = after.iter().map(|entry| entry.manager.as_str()).collect();
    assert_eq!(who, ["one", "two"]);

    // What a version cannot hold cannot be told in it, and the record ends.
    let record = [entry("one", "test/v1"), entry("early", "test/v1beta1")];
    let after = manager().update((&live, &record), (&new, &[]), "two", at(2));
    assert_eq!(after, []);
    let fits = object(&json!({"args": ["b"]}));
    let after = manager().update((&live, &record), (&fits, &[]), "two", at(2));
    assert_eq!(after.len(), 1, "the writer has it now: {after:?}");

    let built_in = FieldManager { versions: Versions::BuiltIn, ..manager() };
    let record = [entry("old", "apps/v1beta1"), entry("none", "apps/v7"), entry("core", "v1")];
    let after = built_in.update((&live, &record), (&live, &[]), "two", at(2));
    let who: Vec<&str> = after.iter().map(|entry| entry.manager.as_str()).collect();
    assert_eq!(who, ["core", "old"]);
}

/// Objects with any of several values in each member, by a number that counts on.
fn any_object(state: &mut u64) -> Value {
    let members = [
        ("labels", vec![json!({}), json!({"a": "1"}), json!({"a": "1", "b": "2"})]),
        (
            "items",
            vec![json!([]), json!([{"name": "a", "value": "1"}]), json!([{"name": "b"}, {"name": "a", "value": "2"}])],
        ),
        ("inner", vec![json!({}), json!({"a": "1"}), json!({"a": "2", "b": "2"}), Value::Null]),
        ("marks", vec![json!(["x"]), json!(["y", "x"]), json!([])]),
        ("args", vec![json!(["1"]), json!(["2", "1"])]),
        ("selector", vec![json!({"a": "1"}), json!({"b": "1"})]),
        ("ports", vec![json!([{"port": 1}]), json!([{"port": 1, "protocol": "UDP", "name": "n"}, {"port": 1}])]),
        ("raw", vec![json!({"z": {"y": 1}}), json!({"z": {"x": []}}), json!(3)]),
        ("replicas", vec![json!(1), json!(2)]),
    ];
    let mut object = json!({"apiVersion": "test/v1", "kind": "Sample", "metadata": {"name": "x"}});
    for (name, values) in members {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // One more choice is that the member is not there.
        if let Some(value) = values.get(usize::try_from(*state >> 33).unwrap_or_default() % (values.len() + 1)) {
            object[name] = value.clone();
        }
    }
    object
}

/// What is left out because nothing can come of it would have come to nothing.
#[test]
fn short_ways_of_applies_lead_where_the_long_ones_do() {
    let (mut state, mut kept, empty) = (7, 0, json!({}));
    for _ in 0..4_000 {
        let [live, mut applied, last, others] = [(); 4].map(|()| any_object(&mut state));
        applied["metadata"]["labels"] = json!({"a": "1"});
        let merged = merge(&live, &applied, node());
        let expected = compare(&live, &merged, node());
        assert_eq!(compare_within(&live, &merged, &applied, node()), expected, "{live} {applied}");

        let record = |set: FieldSet| Record { api_version: "test/v1".into(), set, time: at(1) };
        let mine = manager().identity("me", Operation::Apply);
        let theirs = manager().identity("others", Operation::Update);
        let mut managers = Managers::default();
        managers.entries.insert(mine, record(fields_of(&applied, node())));
        managers.entries.insert(theirs, record(fields_of(&others, node())));
        // What was applied before is what is applied now, in part or with more; an item's own place may be somebody else's.
        let last =
            fields_of(&last, node()).intersection(&fields_of(&applied, node()).union(FieldSet::of_fields(&["args"])));
        if fields_of(&applied, node()).keeps(&last, node()) {
            kept += 1;
            assert_eq!(pruned(node(), merged.clone(), &managers, &last, &empty), merged, "{live} {applied} {others}");
        }
    }
    assert!(kept > 1_000, "{kept}");
}

/// Entries that a write cannot touch are as if they had been read.
#[test]
fn what_a_write_leaves_alone_comes_out_as_it_would() {
    let (mut state, mut alone) = (11, 0);
    for round in 0..4_000_u32 {
        let [live, mut new, first, second, third] = [(); 5].map(|()| any_object(&mut state));
        // Most writes change a little.
        if round % 4 > 0 {
            let changed = new["raw"].take();
            new.clone_from(&live);
            new["raw"] = changed;
        }
        let mut managers = Managers::default();
        for (who, operation, subresource, owned, time) in [
            ("applier", Operation::Apply, "", first, at(3)),
            ("writer", Operation::Update, "", second, at(2)),
            ("kubelet", Operation::Update, "status", third, Time::default()),
        ] {
            let api_version = if round % 5 == 0 { "gone/v1" } else { "test/v1" };
            let versioned = if operation == Operation::Update { api_version } else { "" };
            let (manager, api_version) = (who.to_owned(), api_version.to_owned());
            let identity =
                Identity { manager, operation, api_version: versioned.into(), subresource: subresource.into() };
            let set = fields_of(&owned, node()).difference(&UNOWNED_SET);
            managers.entries.insert(identity, Record { api_version, set, time });
        }
        let record = managers.to_entries();
        let manager = manager();
        for who in ["writer", "another"] {
            let (written, removed) = manager.changes(&live, &new);
            alone += left_alone::split(&record, [&written, &removed], who).0.len();
            for given in [&record[..], &[]] {
                let known = manager.of_known_versions(Managers::of_entries(&record).unwrap());
                let expected = manager.recorded(&live, &new, known, who, at(100)).capped().to_entries();
                let found = manager.update((&live, &record), (&new, given), who, at(100));
                assert_eq!(found, expected, "{live} {new} {record:?}");
            }
        }
    }
    assert!(alone > 1_000, "{alone}");
}

#[test]
fn a_record_that_comes_with_a_new_object_keeps_nothing_that_nobody_owns() {
    let given = json!({"manager": "other", "operation": "Apply", "apiVersion": "test/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}, "f:items": {}}});
    let new = json!({"metadata": {"name": "n", "labels": {"a": "1"}, "managedFields": [given]}});
    let made = create(&new, "me", Time::default());
    let sets: Vec<_> = made["metadata"]["managedFields"].as_array().unwrap().iter().map(|e| &e["fieldsV1"]).collect();
    assert_eq!(sets, [&json!({"f:items": {}}), &json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}})]);
}
