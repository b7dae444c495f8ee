//! Get and list: freshness, selectors, pages.

use std::time::Duration;

use api_machinery::protobuf;
use kinds::rules::Endpoint;
use storage::{Backend as _, Revision};

use super::*;
use crate::{Hooks, Replace};

async fn filled(count: usize) -> (Fixture, Arc<Resource>) {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    for number in 0..count {
        let mut map = config_map(&format!("map-{number:02}"), "old");
        map.meta_mut().labels.insert("parity".into(), (number % 2).to_string());
        maps.create(&fixture.cx("default"), map, &Hooks::none()).await.unwrap();
    }
    (fixture, maps)
}

#[tokio::test(start_paused = true)]
async fn reads_see_every_acknowledged_write() {
    let (fixture, maps) = filled(0).await;
    for number in 0..20 {
        let name = format!("map-{number}");
        maps.create(&fixture.cx("default"), config_map(&name, ""), &Hooks::none()).await.unwrap();
        maps.get(&fixture.cx("default"), &name, "").await.unwrap();
        let list = maps.list(&fixture.cx("default"), &ListOptions::default()).await.unwrap();
        assert_eq!(list.items.len(), number + 1);
        assert_eq!(list.revision, fixture.store.current_revision().await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_whatever_happens_meanwhile() {
    for uncached in [false, true] {
        let fixture = Fixture::with(|options| {
            if uncached {
                options.uncached.insert("configmaps".into());
            }
        })
        .await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        for number in 0..10 {
            maps.create(&cx, config_map(&format!("map-{number:02}"), "old"), &Hooks::none()).await.unwrap();
        }
        let first = maps.list(&cx, &page(4, "")).await.unwrap();
        assert_eq!(first.remaining_item_count, Some(6), "uncached: {uncached}");
        // The rest is changed, deleted and added to before it is read.
        maps.update(&cx, "map-05", Endpoint::Main, &Replace(config_map("map-05", "new")), &Hooks::none())
            .await
            .unwrap();
        maps.delete(&cx, "map-06", &Default::default(), &Hooks::none()).await.unwrap();
        maps.create(&cx, config_map("map-045", "new"), &Hooks::none()).await.unwrap();
        let mut seen = names(&first);
        let mut token = first.continue_token.clone();
        while !token.is_empty() {
            let next = maps.list(&cx, &page(4, &token)).await.unwrap();
            assert_eq!(next.revision, first.revision);
            assert!(next.items.iter().all(|item| value(item) == "old"));
            seen.extend(names(&next));
            token = next.continue_token;
        }
        let expected: Vec<String> = (0..10).map(|number| format!("map-{number:02}")).collect();
        assert_eq!(seen, expected, "uncached: {uncached}");
        let exact = ListOptions {
            resource_version: first.revision.to_string(),
            resource_version_match: "Exact".into(),
            ..Default::default()
        };
        assert_eq!(names(&maps.list(&cx, &exact).await.unwrap()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_one_namespace_carry_names_only() {
    let (fixture, maps) = filled(3).await;
    let list = maps.list(&fixture.cx("default"), &page(1, "")).await.unwrap();
    let token = crate::continue_token::Token::decode(&list.continue_token).unwrap();
    assert_eq!(token.start, "map-00\0");
    let list = maps.list(&fixture.cx(""), &page(1, "")).await.unwrap();
    let token = crate::continue_token::Token::decode(&list.continue_token).unwrap();
    assert_eq!(token.start, "default/map-00\0");
    let rest = maps.list(&fixture.cx(""), &page(0, &list.continue_token)).await.unwrap();
    assert_eq!(names(&rest), ["map-01", "map-02"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_select_and_say_what_they_cannot() {
    let (fixture, maps) = filled(4).await;
    let select = |labels: &str, fields: &str| ListOptions {
        label_selector: labels.into(),
        field_selector: fields.into(),
        ..Default::default()
    };
    for (labels, fields, expected) in [
        ("parity=1", "", vec!["map-01", "map-03"]),
        ("parity!=1", "metadata.name!=map-00", vec!["map-02"]),
        ("", "metadata.name=map-02", vec!["map-02"]),
        ("parity=1", "metadata.name=map-02", vec![]),
        ("", "metadata.namespace=default", vec!["map-00", "map-01", "map-02", "map-03"]),
        ("", "metadata.namespace=other", vec![]),
    ] {
        let list = maps.list(&fixture.cx(""), &select(labels, fields)).await.unwrap();
        assert_eq!(names(&list), expected, "{labels} {fields}");
    }
    let unknown = maps.list(&fixture.cx(""), &select("", "data=x")).await.unwrap_err();
    assert_eq!(unknown.code, 400);
    assert!(unknown.message.contains("\"data\" is not a known field selector: only \"metadata.name\""), "{unknown}");
    let pods = fixture.resource("pods").list(&fixture.cx(""), &select("", "spec.x=y")).await.unwrap_err();
    assert_eq!(pods.message, "field label not supported: spec.x");
    let jobs = fixture.registry.resource("batch", "v1", "jobs").unwrap();
    let options = ListOptions { field_selector: "spec.x=a".into(), ..ListOptions::default() };
    let error = jobs.list(&fixture.cx("default"), &options).await.unwrap_err();
    assert_eq!(error.message, "field label \"spec.x\" not supported for Job");
    let options = ListOptions { field_selector: "=".into(), ..ListOptions::default() };
    assert!(jobs.list(&fixture.cx("default"), &options).await.is_ok(), "nothing is asked for");
    assert_eq!(maps.list(&fixture.cx(""), &select("a in", "")).await.unwrap_err().code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_selected_items_goes_on_where_it_stopped() {
    let (fixture, maps) = filled(7).await;
    let mut query = ListOptions { label_selector: "parity=0".into(), limit: 3, ..Default::default() };
    let first = maps.list(&fixture.cx("default"), &query).await.unwrap();
    assert_eq!((names(&first).len(), first.remaining_item_count), (3, None), "no count with selectors");
    query.continue_ = first.continue_token;
    let second = maps.list(&fixture.cx("default"), &query).await.unwrap();
    assert_eq!((names(&second), second.continue_token.as_str()), (vec!["map-06".to_owned()], ""));
}

#[tokio::test(start_paused = true)]
async fn versions_out_of_reach_are_refused() {
    let (fixture, maps) = filled(2).await;
    let at = |version: &str, wanted: &str| ListOptions {
        resource_version: version.into(),
        resource_version_match: wanted.into(),
        ..Default::default()
    };
    let started = tokio::time::Instant::now();
    let future = maps.list(&fixture.cx(""), &at("1000", "")).await.unwrap_err();
    assert_eq!((future.code, started.elapsed().as_secs()), (504, 3));
    assert!(future.message.starts_with("Timeout: Too large resource version: 1000, current: "), "{future}");
    assert!(future.has_cause("ResourceVersionTooLarge") && future.retry_after_seconds() == Some(1));
    let bad = maps.list(&fixture.cx(""), &at("x", "")).await.unwrap_err();
    assert!(
        bad.code == 400 && bad.message.starts_with("invalid resource version: resourceVersion: Invalid value: \"x\"")
    );
    assert_eq!(maps.get(&fixture.cx("default"), "map-00", "x").await.unwrap_err().code, 500);
    assert_eq!(maps.get(&fixture.cx("default"), "map-00", "1000").await.unwrap_err().code, 504);
    let both = ListOptions { resource_version: "5".into(), ..page(1, "abc") };
    assert_eq!(
        maps.list(&fixture.cx(""), &both).await.unwrap_err().message,
        "specifying resource version is not allowed when using continue"
    );
    let token = maps.list(&fixture.cx(""), &page(1, "!")).await.unwrap_err();
    assert!(
        token.code == 400 && token.message.starts_with("invalid continue token: continue key is not valid"),
        "{token}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_expired_comes_with_one_that_goes_on() {
    let fixture = Fixture::with(|options| {
        options.uncached.insert("configmaps".into());
    })
    .await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    for number in 0..4 {
        maps.create(&cx, config_map(&format!("map-{number}"), ""), &Hooks::none()).await.unwrap();
    }
    let first = maps.list(&cx, &page(2, "")).await.unwrap();
    maps.delete(&cx, "map-2", &Default::default(), &Hooks::none()).await.unwrap();
    fixture.store.compact(fixture.store.current_revision().await.unwrap()).await.unwrap();
    let expired = maps.list(&cx, &page(2, &first.continue_token)).await.unwrap_err();
    assert_eq!((expired.code, expired.reason.as_ref()), (410, "Expired"));
    let rest = maps.list(&cx, &page(2, &expired.continue_token)).await.unwrap();
    assert_eq!(names(&rest), ["map-3"]);
    let exact = ListOptions {
        resource_version: first.revision.to_string(),
        resource_version_match: "Exact".into(),
        ..Default::default()
    };
    let gone = maps.list(&cx, &exact).await.unwrap_err();
    assert_eq!(gone.message, "The resourceVersion for the provided list is too old.");
}

#[tokio::test(start_paused = true)]
async fn items_leave_their_type_to_the_list() {
    let (fixture, maps) = filled(1).await;
    let item = maps.get(&fixture.cx("default"), "map-00", "2").await.unwrap();
    assert!(item.json().starts_with(b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"));
    assert!(item.json_item().starts_with(b"{\"metadata\":"));
    assert!(item.protobuf().starts_with(b"k8s\0") && !item.protobuf_item().starts_with(b"k8s\0"));
    let again = maps.get(&fixture.cx("default"), "map-00", "").await.unwrap();
    assert_eq!(item.json_item().as_ptr(), again.json_item().as_ptr(), "encoded once for all");
    assert_eq!(item.revision(), Revision(2));
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_object_fails_its_readers_and_nobody_else() {
    let (fixture, maps) = filled(1).await;
    let key = storage::Key::from("/registry/configmaps/default/broken");
    fixture.store.txn(&key, storage::Expect::Any, storage::Write::put("k8s\0garbage")).await.unwrap();
    let error = maps.get(&fixture.cx("default"), "broken", "").await.unwrap_err();
    assert_eq!(error.code, 500);
    assert!(
        error.message.starts_with("StorageError: corrupt object, Code: 7, Key: /registry/configmaps/default/broken")
    );
    assert!(error.message.contains("object not decodable revision=3"), "{error}");
    maps.get(&fixture.cx("default"), "map-00", "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lists_are_counted_by_who_answered() {
    let odd = ListOptions { label_selector: "parity=1".into(), ..ListOptions::default() };
    let (fixture, maps) = filled(4).await;
    maps.list(&fixture.cx("default"), &odd).await.unwrap();
    let counts = maps.counts();
    assert_eq!(counts.cached, [crate::IndexedLists { index: "", lists: 1, fetched: 4 }]);
    assert_eq!((counts.cached_returned, counts.stored, counts.decode_errors), (2, 0, 0));
    let reads = counts.consistent.iter().map(|own| (own.success, own.fallback, own.reads));
    assert_eq!(reads.filter(|(.., reads)| *reads > 0).collect::<Vec<_>>(), [(true, false, 1)]);
    let cache = counts.cache.unwrap();
    assert_eq!((cache.initializations, cache.events_received, cache.events_dispatched), (1, 4, 4));
    assert!(cache.read_waits.all > 0);

    let uncached = Fixture::with(|options| {
        options.uncached.insert("configmaps".into());
    })
    .await;
    let maps = uncached.resource("configmaps");
    for name in ["a", "b", "c"] {
        maps.create(&uncached.cx("default"), config_map(name, ""), &Hooks::none()).await.unwrap();
    }
    maps.list(&uncached.cx("default"), &odd).await.unwrap();
    let counts = maps.counts();
    assert_eq!((counts.stored, counts.stored_fetched, counts.stored_evaluated, counts.stored_returned), (1, 3, 3, 0));
    assert_eq!((counts.cache, counts.stats), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_differs_from_the_store_answers_no_exact_list() {
    let (fixture, maps) = filled(3).await;
    let checks = || -> Vec<(&str, u64)> {
        maps.counts().checks.into_iter().map(|(found, count)| (found.as_str(), count)).collect()
    };
    let from_store = async || {
        let newest = maps.list(&fixture.cx("default"), &ListOptions::default()).await.unwrap().revision;
        let exact = ListOptions {
            resource_version: newest.0.to_string(),
            resource_version_match: "Exact".into(),
            ..ListOptions::default()
        };
        let before = maps.counts().stored;
        assert_eq!(maps.list(&fixture.cx("default"), &exact).await.unwrap().items.len(), 3);
        maps.counts().stored - before
    };
    fixture.registry.check_caches().await;
    assert_eq!((checks(), from_store().await), (vec![("success", 1), ("failure", 0), ("error", 0)], 0));
    // As if the cache had missed all of it.
    let newest = fixture.store.current_revision().await.unwrap();
    let secrets = fixture.resource("secrets");
    let nothing = secrets.store.cache.as_ref().unwrap().not_older_than(newest).await.unwrap();
    maps.store.compare_with(&nothing).await;
    assert_eq!((checks(), from_store().await), (vec![("success", 1), ("failure", 1), ("error", 0)], 1));
    fixture.registry.check_caches().await;
    assert_eq!((checks(), from_store().await), (vec![("success", 2), ("failure", 1), ("error", 0)], 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_sent_what_is_kept_wakes_nothing() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    for name in ["a", "b"] {
        maps.create(&cx, config_map(name, "value"), &Hooks::none()).await.unwrap();
    }
    let fresh = maps.list(&cx, &ListOptions::default()).await.unwrap().items;
    let (json, protobuf) = (fresh[0].json(), fresh[0].protobuf());
    drop(fresh);
    tokio::time::sleep(Duration::from_secs(200)).await;

    let items = maps.list(&cx, &ListOptions::default()).await.unwrap().items;
    assert_eq!(items[0].protobuf_item(), protobuf::open(&protobuf).unwrap().raw);
    assert_eq!(items[0].protobuf(), protobuf);
    assert_eq!(items[0].json(), json);
    assert!(items.iter().all(|item| item.is_at_rest()));
    tokio::time::sleep(Duration::from_secs(200)).await;
    let later = maps.list(&cx, &ListOptions::default()).await.unwrap().items;
    assert!(!Arc::ptr_eq(&items[0], &later[0]), "the text that was made of it is let go");
    assert!(Arc::ptr_eq(&items[1], &later[1]), "there was none");

    let items = later;
    let selected = ListOptions { label_selector: "app=other".into(), ..ListOptions::default() };
    assert!(maps.list(&cx, &selected).await.unwrap().items.is_empty());
    assert!(items.iter().all(|item| !item.is_at_rest()), "their labels were looked at");
}
