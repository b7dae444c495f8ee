//! Watches: starts, selectors, bookmarks, ends.

use std::time::Duration;

use kinds::rules::Endpoint;
use storage::{Backend as _, Revision};
use tokio::time::Instant;

use super::deletion::described;
use super::*;
use crate::{Event, Hooks, Replace, Watch};

fn labelled(name: &str, tier: &str) -> Box<dyn Object> {
    let mut map = config_map(name, "");
    map.meta_mut().labels.insert("tier".into(), tier.into());
    map
}

async fn described_next(watch: &mut Watch) -> String {
    described(&watch.next().await)
}

/// Everything a watch says within a simulated second.
async fn said(watch: &mut Watch) -> Vec<String> {
    let mut said = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), watch.next()).await {
        said.push(described(&event));
        if event.is_none() {
            break;
        }
    }
    said
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_where_it_is_told() {
    for uncached in [false, true] {
        let fixture = Fixture::with(|options| {
            if uncached {
                options.uncached.insert("configmaps".into());
            }
        })
        .await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let first = maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap().item;
        maps.create(&cx, config_map("b", ""), &Hooks::none()).await.unwrap();
        let options = |version: &str, initial: Option<bool>, bookmarks: bool| ListOptions {
            resource_version: version.into(),
            resource_version_match: if initial.is_some() { "NotOlderThan".into() } else { String::new() },
            send_initial_events: initial,
            allow_watch_bookmarks: bookmarks,
            ..Default::default()
        };
        let cases = [
            (options("", None, false), vec!["ADDED a", "ADDED b"]),
            (options("", Some(true), true), vec!["ADDED a", "ADDED b", "BOOKMARK true"]),
            (options("", Some(false), false), vec![]),
            (options(&first.revision().to_string(), None, false), vec!["ADDED b"]),
            (options(&first.revision().to_string(), Some(true), true), vec!["ADDED a", "ADDED b", "BOOKMARK true"]),
        ];
        for (query, expected) in cases {
            let mut watch = maps.watch(&cx, &query, None).await.unwrap();
            assert_eq!(said(&mut watch).await, expected, "uncached {uncached}: {query:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    for uncached in [false, true] {
        let fixture = Fixture::with(|options| {
            if uncached {
                options.uncached.insert("configmaps".into());
            }
        })
        .await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let query = ListOptions { label_selector: "tier=web".into(), ..Default::default() };
        let mut watch = maps.watch(&cx, &query, None).await.unwrap();
        let put = async |tier: &str| {
            maps.update(&cx, "a", Endpoint::Main, &Replace(labelled("a", tier)), &Hooks::none()).await.unwrap().item
        };
        maps.create(&cx, labelled("a", "db"), &Hooks::none()).await.unwrap();
        put("web").await;
        let mut modified = labelled("a", "web");
        modified.meta_mut().annotations.insert("x".into(), "y".into());
        maps.update(&cx, "a", Endpoint::Main, &Replace(modified), &Hooks::none()).await.unwrap();
        let left = put("db").await;
        put("cache").await;
        put("web").await;
        maps.delete(&cx, "a", &Default::default(), &Hooks::none()).await.unwrap();
        assert_eq!(described_next(&mut watch).await, "ADDED a");
        assert_eq!(described_next(&mut watch).await, "MODIFIED a");
        let Some(Event::Change(exit)) = watch.next().await else { panic!("an event") };
        assert_eq!(exit.kind.as_str(), "DELETED");
        let meta = exit.item.object().meta();
        assert_eq!(meta.labels.get("tier").map(String::as_str), Some("web"), "the last content that matched");
        assert_eq!(meta.resource_version, left.revision().to_string(), "with the revision of the change");
        assert_eq!(said(&mut watch).await, ["ADDED a", "DELETED a"], "uncached {uncached}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_watched_by_node() {
    let fixture = Fixture::new().await;
    let (pods, cx) = (fixture.resource("pods"), fixture.cx(""));
    let query = ListOptions { field_selector: "spec.nodeName=n1".into(), ..Default::default() };
    let mut watch = pods.watch(&cx, &query, None).await.unwrap();
    let here = fixture.cx("default");
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "")] {
        pods.create(&here, defaulted(&fixture, "pods", pod(name, node)), &Hooks::none()).await.unwrap();
    }
    assert_eq!(said(&mut watch).await, ["ADDED a"]);
    assert_eq!(names(&pods.list(&cx, &query).await.unwrap()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_and_a_namespace_are_in_both() {
    let fixture = Fixture::new().await;
    let pods = fixture.resource("pods");
    let query = ListOptions { field_selector: "spec.nodeName=n1".into(), ..Default::default() };
    let [here, there] = ["default", "kube-system"].map(|namespace| fixture.cx(namespace));
    let mut watch = pods.watch(&here, &query, None).await.unwrap();
    for (cx, namespace, name) in [(&there, "kube-system", "a"), (&here, "default", "b")] {
        let mut pod = defaulted(&fixture, "pods", pod(name, "n1"));
        pod.meta_mut().namespace = namespace.into();
        pods.create(cx, pod, &Hooks::none()).await.unwrap();
    }
    assert_eq!(said(&mut watch).await, ["ADDED b"]);
    assert_eq!(names(&pods.list(&here, &query).await.unwrap()), ["b"]);
    assert_eq!(names(&pods.list(&fixture.cx(""), &query).await.unwrap()), ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap();
    let started = Instant::now();
    let query = ListOptions { allow_watch_bookmarks: true, ..Default::default() };
    let deadline = started + Duration::from_secs(150);
    let mut watch = maps.watch(&cx, &query, Some(deadline)).await.unwrap();
    assert_eq!(described_next(&mut watch).await, "ADDED a");
    assert_eq!(described_next(&mut watch).await, "BOOKMARK true");
    let mut times = Vec::new();
    while let Some(event) = watch.next().await {
        assert_eq!(described(&Some(event)), "BOOKMARK false");
        times.push(started.elapsed().as_secs());
    }
    assert_eq!((times, started.elapsed().as_secs()), (vec![60, 120, 148], 150));
}

#[tokio::test(start_paused = true)]
async fn history_that_is_gone_is_an_event_of_the_watch() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap();
    for number in 0..150 {
        // Old enough to be dropped beyond the hundred that are always kept.
        tokio::time::advance(Duration::from_secs(10)).await;
        let change = Replace(config_map("a", &number.to_string()));
        maps.update(&cx, "a", Endpoint::Main, &change, &Hooks::none()).await.unwrap();
    }
    maps.list(&cx, &ListOptions::default()).await.unwrap();
    let query = ListOptions { resource_version: "2".into(), ..Default::default() };
    let mut watch = maps.watch(&cx, &query, None).await.unwrap();
    let last = watch.next().await;
    assert_eq!(described(&last), "ERROR too old resource version: 2 (52)");
    let Some(Event::Error(fault)) = last else { panic!("an error") };
    assert_eq!(crate::watch_fault(&fault, &feature_gates::Gates::default()).code, 410);
    assert!(watch.next().await.is_none());

    let future = ListOptions {
        resource_version: "9999".into(),
        resource_version_match: "NotOlderThan".into(),
        send_initial_events: Some(true),
        ..Default::default()
    };
    let mut watch = maps.watch(&cx, &future, None).await.unwrap();
    assert!(described_next(&mut watch).await.starts_with("ERROR Too large resource version: 9999"));
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_a_watch_begins_with_what_is_at_hand_and_marks_nothing() {
    for uncached in [false, true] {
        let fixture = Fixture::with(|options| {
            options.gates = options.gates.with(crate::WATCH_LIST, false);
            if uncached {
                options.uncached.insert("configmaps".into());
            }
        })
        .await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let first = maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap().item;
        maps.create(&cx, config_map("b", ""), &Hooks::none()).await.unwrap();
        // The cache has seen both.
        maps.list(&cx, &ListOptions::default()).await.unwrap();
        for (version, expected) in [
            (String::new(), &["ADDED a", "ADDED b"][..]),
            ("0".to_owned(), &["ADDED a", "ADDED b"]),
            (first.revision().to_string(), &["ADDED b"]),
        ] {
            let options = ListOptions {
                resource_version: version.clone(),
                allow_watch_bookmarks: true,
                ..ListOptions::default()
            };
            let mut watch = maps.watch(&cx, &options, None).await.unwrap();
            assert_eq!(said(&mut watch).await, expected, "{version} {uncached}");
        }
        let wanted = ListOptions {
            send_initial_events: Some(true),
            resource_version_match: "NotOlderThan".into(),
            ..ListOptions::default()
        };
        assert_eq!(maps.watch(&cx, &wanted, None).await.err().map(|error| error.code), Some(422));
        let mut own = maps.follow().await.unwrap();
        assert_eq!(said(&mut own).await, ["ADDED a", "ADDED b", "BOOKMARK true"], "the server itself, {uncached}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_falls_out_and_is_told() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let mut slow = maps.watch(&cx, &ListOptions::default(), None).await.unwrap();
    let mut other = config_map("quiet", "");
    other.meta_mut().namespace = "other".into();
    maps.create(&fixture.cx("other"), other, &Hooks::none()).await.unwrap();
    let mut elsewhere = maps.watch(&fixture.cx("other"), &ListOptions::default(), None).await.unwrap();
    maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap();
    for number in 0..300 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let change = Replace(config_map("a", &number.to_string()));
        maps.update(&cx, "a", Endpoint::Main, &change, &Hooks::none()).await.unwrap();
    }
    maps.list(&cx, &ListOptions::default()).await.unwrap();
    assert!(described_next(&mut slow).await.starts_with("ERROR too old resource version"));
    assert_eq!(described_next(&mut slow).await, "END");
    // The same time and the same log, but nothing that concerned this one was dropped.
    assert_eq!(said(&mut elsewhere).await, ["ADDED quiet"]);
    assert_eq!(fixture.resource("configmaps").cache_stats().unwrap().watchers, 2);
}

#[tokio::test(start_paused = true)]
async fn frames_are_encoded_once_for_all_watchers() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(maps.watch(&cx, &ListOptions::default(), None).await.unwrap());
    }
    maps.create(&cx, config_map("a", ""), &Hooks::none()).await.unwrap();
    let mut frames = Vec::new();
    for watch in &mut watches {
        let Some(Event::Change(change)) = watch.next().await else { panic!("an event") };
        frames.push((change.json_frame(), change.protobuf_frame()));
    }
    let (json, protobuf) = &frames[0];
    assert!(json.starts_with(b"{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"") && json.ends_with(b"}\n"));
    let length = u32::from_be_bytes(protobuf[..4].try_into().unwrap());
    assert_eq!(length as usize, protobuf.len() - 4);
    let pointers: Vec<_> = frames.iter().map(|(json, protobuf)| (json.as_ptr(), protobuf.as_ptr())).collect();
    assert!(pointers.iter().all(|pointer| *pointer == pointers[0]));
}

#[tokio::test(start_paused = true)]
async fn events_are_served_under_both_names_and_end_with_their_lease() {
    let fixture = Fixture::new().await;
    let cx = fixture.cx("default");
    let core = fixture.resource("events");
    let other = fixture.registry.resource("events.k8s.io", "v1", "events").unwrap();
    let mut event = api_types::core_v1::Event::default();
    event.metadata.name = "e".into();
    event.metadata.namespace = "default".into();
    event.involved_object.namespace = "default".into();
    event.involved_object.kind = "Pod".into();
    event.message = "hello".into();
    event.reason = "Greeting".into();
    event.type_ = "Normal".into();
    core.create(&cx, Box::new(event), &Hooks::none()).await.unwrap();
    let seen = other.get(&cx, "e", "").await.unwrap();
    let seen = seen.object().downcast_ref::<api_types::events_v1::Event>().unwrap();
    assert_eq!((seen.note.as_str(), seen.reason.as_str()), ("hello", "Greeting"));
    assert!(!seen.metadata.resource_version.is_empty());
    let mut watch = other.watch(&cx, &ListOptions::default(), None).await.unwrap();
    let Some(Event::Change(change)) = watch.next().await else { panic!("an event") };
    assert!(change.item.object().downcast_ref::<api_types::events_v1::Event>().is_some());
    tokio::time::sleep(Duration::from_secs(2 * 3_600)).await;
    assert_eq!(described_next(&mut watch).await, "DELETED e");
    assert_eq!(core.get(&cx, "e", "").await.unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_removed_resource_ends_its_watches() {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    let mut watch = maps.watch(&fixture.cx(""), &ListOptions::default(), None).await.unwrap();
    fixture.registry.remove("", "v1", "configmaps");
    assert_eq!(described_next(&mut watch).await, "END");
    assert!(fixture.registry.resource("", "v1", "configmaps").is_none());
    let after = maps.list(&fixture.cx(""), &ListOptions::default()).await.unwrap_err();
    assert_eq!((after.code, after.message.as_str()), (429, "apiserver cacher is stopped"));
}

#[tokio::test(start_paused = true)]
async fn watches_survive_a_compaction_that_does_not_reach_them() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let mut watch = maps.watch(&cx, &ListOptions::default(), None).await.unwrap();
    for number in 0..5 {
        maps.create(&cx, config_map(&format!("m{number}"), ""), &Hooks::none()).await.unwrap();
        maps.list(&cx, &ListOptions::default()).await.unwrap();
        fixture.store.compact(fixture.store.current_revision().await.unwrap()).await.unwrap();
    }
    assert_eq!(said(&mut watch).await.len(), 5);
    assert!(fixture.store.current_revision().await.unwrap() > Revision(5));
}
