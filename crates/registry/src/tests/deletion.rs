//! Delete, finalizers, collections, namespaces.

use api_machinery::meta::{DeleteOptions, Preconditions};
use api_machinery::object::Object;
use api_types::core_v1::{Namespace, Pod};
use kinds::rules::Endpoint;

use super::*;
use crate::{Deleted, Event, Hooks, Patch};

fn set_finalizers(finalizers: &'static [&'static str]) -> impl crate::Change {
    Patch(move |live: &dyn Object| {
        let mut object = live.clone_object();
        object.meta_mut().finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
        Ok(object)
    })
}

#[tokio::test(start_paused = true)]
async fn preconditions_protect_and_success_is_a_status() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let item = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    let wish = |uid: Option<&str>, version: Option<&str>| DeleteOptions {
        preconditions: Some(Preconditions {
            uid: uid.map(str::to_owned),
            resource_version: version.map(str::to_owned),
        }),
        ..DeleteOptions::default()
    };
    let wrong = maps.delete(&cx, "one", &wish(Some("x"), None), &Hooks::none()).await.unwrap_err();
    assert!(wrong.code == 409 && wrong.message.contains("the UID in the precondition (x) does not match"), "{wrong}");
    assert!(wrong.message.contains("on ConfigMap \"one\""), "{wrong}");
    let stale = maps.delete(&cx, "one", &wish(None, Some("1")), &Hooks::none()).await.unwrap_err();
    assert!(stale.code == 409 && stale.message.contains("the ResourceVersion in the precondition (1)"), "{stale}");
    let uid = item.object().meta().uid.clone();
    let deleted = maps.delete(&cx, "one", &wish(Some(&uid), None), &Hooks::none()).await.unwrap();
    let Deleted::Status(status) = deleted.body else { panic!("a status was expected") };
    let details = status.details.unwrap();
    assert_eq!((status.status.as_str(), details.kind.as_str(), details.uid), ("Success", "configmaps", uid));
    assert_eq!(maps.delete(&cx, "one", &DeleteOptions::default(), &Hooks::none()).await.unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_until_the_last_is_gone() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let mut held = config_map("one", "a");
    held.meta_mut().finalizers = vec!["example.com/hold".into()];
    maps.create(&cx, held, &Hooks::none()).await.unwrap();
    let mut watch =
        maps.watch(&cx, &ListOptions { resource_version: "1".into(), ..Default::default() }, None).await.unwrap();
    let deletion = maps.delete(&cx, "one", &DeleteOptions::default(), &Hooks::none()).await.unwrap();
    let Deleted::Object(marked) = deletion.body else { panic!("it should wait") };
    assert!(marked.object().meta().deletion_timestamp.is_some());
    assert_eq!(marked.object().meta().deletion_grace_period_seconds, Some(0));
    // Deleting again changes nothing.
    let Deleted::Object(again) = maps.delete(&cx, "one", &DeleteOptions::default(), &Hooks::none()).await.unwrap().body
    else {
        panic!("it should wait")
    };
    assert_eq!(again.revision(), marked.revision());
    let more = maps
        .update(&cx, "one", Endpoint::Main, &set_finalizers(&["example.com/hold", "example.com/more"]), &Hooks::none())
        .await
        .unwrap_err();
    assert!(more.message.contains("no new finalizers can be added if the object is being deleted"), "{more}");
    assert!(more.message.contains("found new finalizers []string{\"example.com/more\"}"), "{more}");
    maps.update(&cx, "one", Endpoint::Main, &set_finalizers(&[]), &Hooks::none()).await.unwrap();
    assert_eq!(maps.get(&cx, "one", "").await.unwrap_err().code, 404);
    let kinds: Vec<String> =
        [watch.next().await, watch.next().await, watch.next().await].iter().map(described).collect();
    assert_eq!(kinds, ["ADDED one", "MODIFIED one", "DELETED one"]);
}

pub(super) fn described(event: &Option<Event>) -> String {
    match event {
        Some(Event::Change(change)) => format!("{} {}", change.kind.as_str(), change.item.object().meta().name),
        Some(Event::Bookmark { initial_events_end, .. }) => format!("BOOKMARK {initial_events_end}"),
        Some(Event::Error(fault)) => format!("ERROR {fault}"),
        None => "END".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn propagation_chooses_the_collectors_finalizers() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let cases = [("Foreground", vec!["foregroundDeletion"]), ("Orphan", vec!["orphan"]), ("Background", vec![])];
    for (policy, expected) in cases {
        maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap();
        let options = DeleteOptions { propagation_policy: Some(policy.into()), ..Default::default() };
        let deletion = maps.delete(&cx, "one", &options, &Hooks::none()).await.unwrap();
        match deletion.body {
            Deleted::Object(item) => assert_eq!(item.object().meta().finalizers, expected, "{policy}"),
            Deleted::Status(_) => assert!(expected.is_empty(), "{policy}"),
        }
        if !expected.is_empty() {
            maps.update(&cx, "one", Endpoint::Main, &set_finalizers(&[]), &Hooks::none()).await.unwrap();
        }
        assert_eq!(maps.get(&cx, "one", "").await.unwrap_err().code, 404, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_end_gracefully_unless_nobody_runs_them() {
    let fixture = Fixture::new().await;
    let (pods, cx) = (fixture.resource("pods"), fixture.cx("default"));
    pods.create(&cx, defaulted(&fixture, "pods", pod("free", "")), &Hooks::none()).await.unwrap();
    let deletion = pods.delete(&cx, "free", &DeleteOptions::default(), &Hooks::none()).await.unwrap();
    assert!(matches!(deletion.body, Deleted::Object(_)), "pods are given back");
    assert_eq!(pods.get(&cx, "free", "").await.unwrap_err().code, 404, "unscheduled pods vanish at once");

    pods.create(&cx, defaulted(&fixture, "pods", pod("bound", "n1")), &Hooks::none()).await.unwrap();
    pods.delete(&cx, "bound", &DeleteOptions::default(), &Hooks::none()).await.unwrap();
    let waiting = pods.get(&cx, "bound", "").await.unwrap();
    assert_eq!(waiting.object().meta().deletion_grace_period_seconds, Some(30));
    let pending = pods.delete(&cx, "bound", &DeleteOptions::default(), &Hooks::none()).await.unwrap();
    let Deleted::Object(pending) = pending.body else { panic!("pending") };
    assert_eq!(pending.revision(), waiting.revision(), "a second delete changes nothing");
    let now = DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
    pods.delete(&cx, "bound", &now, &Hooks::none()).await.unwrap();
    assert_eq!(pods.get(&cx, "bound", "").await.unwrap_err().code, 404);
    let _: Option<&Pod> = waiting.object().downcast_ref();
}

#[tokio::test(start_paused = true)]
async fn namespaces_end_in_two_steps() {
    let fixture = Fixture::new().await;
    let (namespaces, cx) = (fixture.resource("namespaces"), fixture.cx(""));
    let mut team = Namespace::default();
    team.metadata.name = "team".into();
    team.spec.finalizers = vec!["kubernetes".into()];
    namespaces.create(&cx, Box::new(team), &Hooks::none()).await.unwrap();
    for _ in 0..2 {
        let deletion = namespaces.delete(&cx, "team", &DeleteOptions::default(), &Hooks::none()).await.unwrap();
        let Deleted::Object(item) = deletion.body else { panic!("it should wait") };
        let phase = &item.object().downcast_ref::<Namespace>().unwrap().status.phase;
        assert_eq!(phase, "Terminating");
    }
    let finalize = Patch(|live: &dyn Object| {
        let mut namespace = live.downcast_ref::<Namespace>().unwrap().clone();
        namespace.spec.finalizers.clear();
        Ok(Box::new(namespace) as Box<dyn Object>)
    });
    namespaces.update(&cx, "team", Endpoint::Other("finalize"), &finalize, &Hooks::none()).await.unwrap();
    assert_eq!(namespaces.get(&cx, "team", "").await.unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_by_selector() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    for (name, tier) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let mut map = config_map(name, "");
        map.meta_mut().labels.insert("tier".into(), tier.into());
        maps.create(&cx, map, &Hooks::none()).await.unwrap();
    }
    let query = ListOptions { label_selector: "tier=web".into(), ..Default::default() };
    let list = maps.delete_collection(&cx, &query, &DeleteOptions::default(), &Hooks::none()).await.unwrap();
    assert_eq!(names(&list), ["a", "c"]);
    assert_eq!(names(&maps.list(&cx, &ListOptions::default()).await.unwrap()), ["b"]);
}
