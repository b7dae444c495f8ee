//! Tests of the graph, of the decision about one object, and of the collector at work.

use std::collections::BTreeSet;

use api_machinery::meta::{ObjectMeta, OwnerReference};

use super::collect::{ItemAction, Owner, action_for};
use super::dot::picture;
use super::graph::{Effects, Graph};
use super::object::{FOREGROUND, Identity, ORPHAN};
use crate::workloads::fixtures::{at, meta};

fn owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: name.into(),
        uid: format!("{name}-uid"),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn owned(name: &str, by: &str) -> ObjectMeta {
    let mut meta = meta(name);
    meta.owner_references.push(owner(by));
    meta
}

fn deleted(mut meta: ObjectMeta, finalizer: &str) -> ObjectMeta {
    meta.deletion_timestamp = Some(at(1));
    meta.finalizers.push(finalizer.into());
    meta
}

fn observe(graph: &mut Graph, kind: &str, meta: &ObjectMeta) -> Effects {
    let identity = Identity {
        kind: kind.into(),
        api_version: if kind == "Pod" { "v1" } else { "apps/v1" }.into(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
    };
    graph.observe(identity, meta)
}

fn uids<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(|name| format!("{name}-uid")).collect()
}

#[test]
fn an_owner_that_nobody_has_seen_is_checked() {
    let mut graph = Graph::default();
    assert_eq!(observe(&mut graph, "Pod", &owned("p", "rs")).delete, uids(["rs"]));
    assert!(graph.node("rs-uid").unwrap().is_virtual);
    let identity = graph.node("rs-uid").unwrap().identity;
    let effects = graph.not_there(&identity);
    assert_eq!(effects.delete, uids(["p"]), "its dependent is looked at");
    assert_eq!(effects.absent, Some(identity));
}

#[test]
fn an_owner_named_from_outside_all_namespaces_is_looked_for_from_within() {
    let mut graph = Graph::default();
    let mut outside = owned("volume", "rs");
    outside.namespace.clear();
    assert_eq!(observe(&mut graph, "Node", &outside).delete, uids(["rs"]));
    assert_eq!(observe(&mut graph, "Pod", &owned("p", "rs")).delete, uids(["p"]), "by its own name");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_goes_only_if_its_owners_did_not() {
    let pod = |owners: serde_json::Value| {
        serde_json::json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ns", "uid": "p-uid", "ownerReferences": owners}})
    };
    let reference = |uid: &str| serde_json::json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid});
    let (a, b) = (reference("a"), reference("b"));
    for (name, now, deleted) in [("the same", [&a, &b].as_slice(), true), ("one less", &[&b], false)] {
        let server = client::fake::FakeServer::new();
        let client = server.client();
        let info = client::ResourceInfo::of::<api_types::core_v1::Pod>();
        server.put("v1/pods", pod(serde_json::json!([a, b])));
        let read = super::object::api(&client, &info, "ns").get("p").await.unwrap().metadata;
        server.put("v1/pods", pod(serde_json::json!(now)));
        server.fail_next("DELETE", &[409]);
        let outcome = super::object::delete(&client, &info, &read, "Background").await;
        assert_eq!(outcome.is_ok(), deleted, "{name}");
        assert_eq!(outcome.err().is_some_and(|error| error.is_conflict()), !deleted, "{name}: it is tried again");
        assert_eq!(server.objects("v1/pods").is_empty(), deleted, "{name}");
    }
}

#[test]
fn an_owner_that_shows_up_is_real() {
    let mut graph = Graph::default();
    observe(&mut graph, "Pod", &owned("p", "rs"));
    assert_eq!(observe(&mut graph, "ReplicaSet", &meta("rs")), Effects::default());
    assert!(!graph.node("rs-uid").unwrap().is_virtual);
    let mut other = Graph::default();
    observe(&mut other, "Pod", &owned("p", "rs"));
    let effects = observe(&mut other, "Deployment", &meta("rs"));
    assert_eq!(effects.delete, uids(["p"]), "the dependent named another kind");
}

#[test]
fn dependents_are_looked_at_when_their_owner_goes() {
    let mut graph = Graph::default();
    observe(&mut graph, "ReplicaSet", &meta("rs"));
    observe(&mut graph, "Pod", &owned("a", "rs"));
    observe(&mut graph, "Pod", &owned("b", "rs"));
    assert_eq!(graph.remove("rs-uid").delete, uids(["a", "b"]));
    assert_eq!(graph.remove("rs-uid"), Effects::default(), "only once");
}

#[test]
fn foreground_deletion_waits_for_blocking_dependents() {
    let mut graph = Graph::default();
    observe(&mut graph, "ReplicaSet", &meta("rs"));
    observe(&mut graph, "Pod", &owned("a", "rs"));
    let waiting = deleted(meta("rs"), FOREGROUND);
    assert_eq!(observe(&mut graph, "ReplicaSet", &waiting).delete, uids(["a", "rs"]));
    assert_eq!(observe(&mut graph, "ReplicaSet", &waiting), Effects::default(), "only at the transition");
    assert_eq!(observe(&mut graph, "Pod", &owned("b", "rs")).delete, uids(["b"]), "late ones go too");
    let mut unblocked = owned("b", "rs");
    unblocked.owner_references[0].block_owner_deletion = Some(false);
    assert!(observe(&mut graph, "Pod", &unblocked).delete.contains("rs-uid"));
    assert_eq!(graph.remove("a-uid").delete, uids(["rs"]), "the owner looks again");
}

#[test]
fn who_does_not_say_so_does_not_block() {
    for (block, uid, expected) in [
        (Some(true), "rs-uid", true),
        (Some(false), "rs-uid", false),
        (None, "rs-uid", false),
        (Some(true), "other", false),
    ] {
        let reference = OwnerReference { block_owner_deletion: block, ..owner("rs") };
        assert_eq!(super::collect::blocks(&[reference], uid), expected, "{block:?} {uid}");
    }
}

#[test]
fn orphaning_starts_once() {
    let mut graph = Graph::default();
    let going = deleted(meta("rs"), ORPHAN);
    assert_eq!(observe(&mut graph, "ReplicaSet", &going).orphan, uids(["rs"]));
    assert_eq!(observe(&mut graph, "ReplicaSet", &going), Effects::default());
}

#[test]
fn verdicts() {
    use Owner::{Dangling, Solid, Waiting};
    let plain = meta("p");
    let keep = deleted(meta("p"), ORPHAN);
    for (name, meta, owners, dependents, expected) in [
        ("steady state", &plain, vec![Solid], false, ItemAction::Keep),
        ("one owner gone", &plain, vec![Solid, Dangling], false, ItemAction::Forget(vec!["1".into()])),
        ("all gone", &plain, vec![Dangling], true, ItemAction::Delete("Background")),
        ("owner waits", &plain, vec![Waiting], false, ItemAction::Delete("Background")),
        ("owner waits, with dependents", &plain, vec![Waiting, Dangling], true, ItemAction::DeleteForeground),
        ("dependents are to stay", &keep, vec![Dangling], true, ItemAction::Delete("Orphan")),
    ] {
        let owners: Vec<_> = owners.into_iter().enumerate().map(|(at, owner)| (at.to_string(), owner)).collect();
        assert_eq!(action_for(meta, &owners, dependents), expected, "{name}");
    }
}

#[test]
fn the_graph_can_be_drawn() {
    let mut graph = Graph::default();
    observe(&mut graph, "ReplicaSet", &deleted(meta("rs"), FOREGROUND));
    observe(&mut graph, "Pod", &owned("p", "rs"));
    observe(&mut graph, "Pod", &owned("q", "other"));
    observe(&mut graph, "Pod", &meta("free"));
    let all = picture(&graph, &[]);
    let expected = r#"strict digraph full {
  // Node definitions.
  "p-uid" [
    label="uid=p-uid\nnamespace=ns\nPod.v1/p\n"
    group=""
    version="v1"
    kind="Pod"
    namespace="ns"
    name="p"
    uid="p-uid"
    missing="false"
    beingDeleted="false"
    deletingDependents="false"
    virtual="false"
  ];
  "rs-uid" [
    label="uid=rs-uid\nnamespace=ns\nReplicaSet.v1.apps/rs\nbeingDeleted,deletingDependents\n"
    group="apps"
    version="v1"
    kind="ReplicaSet"
    namespace="ns"
    name="rs"
    uid="rs-uid"
    missing="false"
    beingDeleted="true"
    deletingDependents="true"
    virtual="false"
  ];
  // Edge definitions.
  "p-uid" -> "rs-uid";
}
"#;
    assert_eq!(picture(&graph, &["p-uid"]), expected);
    assert_eq!(picture(&graph, &["rs-uid", "gone"]), expected);
    assert!(all.contains("\n  \"q-uid\" -> \"other-uid\";\n") && all.contains("/other\\nvirtual\\n"), "{all}");
    assert!(!all.contains("free"), "who owns nothing and belongs to nobody is left out");
    // An owner that went before those that it owned.
    graph.remove("rs-uid");
    let left = picture(&graph, &["p-uid"]);
    assert!(left.contains("label=\"uid=rs-uid\\nnamespace=\\nReplicaSet.v1.apps/rs\\nmissingFromGraph\\n\""), "{left}");
    assert_eq!(picture(&graph, &["free-uid"]), "strict digraph full {\n}\n");
}
