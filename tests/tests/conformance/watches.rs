//! Watches of config maps.

use std::time::Duration;

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Watch, conform, name_of, text, version_of};

const LABEL: &str = "watch-this-configmap";

fn config_map(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {LABEL: label}}})
}

fn mutation(number: u32) -> Value {
    json!({"data": {"mutation": number.to_string()}})
}

async fn expect(watch: &mut Watch, kind: &str, name: &str, number: &str) {
    let (found, object) = watch.next().await;
    assert_eq!((found.as_str(), name_of(&object), text(&object["data"]["mutation"])), (kind, name, number));
}

#[test]
fn watch_config_maps_closed_and_restarted() {
    conform(async |cx| {
        let ns = cx.namespace("watch").await;
        let maps = format!("/api/v1/namespaces/{ns}/configmaps");
        let selected = format!("{maps}?labelSelector={LABEL}%3Drestarted");
        let mut watch = cx.watch(&selected).await;
        cx.create(&maps, &config_map("one", "restarted")).await.ok();
        cx.merge(&format!("{maps}/one"), &mutation(1)).await.ok();
        expect(&mut watch, "ADDED", "one", "").await;
        let (kind, last) = watch.next().await;
        assert_eq!(kind, "MODIFIED");
        drop(watch);
        cx.merge(&format!("{maps}/one"), &mutation(2)).await.ok();
        cx.delete(&format!("{maps}/one")).await.ok();
        let mut watch = cx.watch(&format!("{selected}&resourceVersion={}", version_of(&last))).await;
        expect(&mut watch, "MODIFIED", "one", "2").await;
        expect(&mut watch, "DELETED", "one", "2").await;
    });
}

#[test]
fn watch_config_maps_from_resource_version() {
    conform(async |cx| {
        let ns = cx.namespace("watch").await;
        let maps = format!("/api/v1/namespaces/{ns}/configmaps");
        cx.create(&maps, &config_map("one", "from")).await.ok();
        let first = cx.merge(&format!("{maps}/one"), &mutation(1)).await.ok();
        cx.merge(&format!("{maps}/one"), &mutation(2)).await.ok();
        cx.delete(&format!("{maps}/one")).await.ok();
        let path = format!("{maps}?labelSelector={LABEL}%3Dfrom&resourceVersion={}", version_of(&first));
        let mut watch = cx.watch(&path).await;
        expect(&mut watch, "MODIFIED", "one", "2").await;
        expect(&mut watch, "DELETED", "one", "2").await;
    });
}

#[test]
fn watch_config_maps_with_multiple_watchers() {
    conform(async |cx| {
        let ns = cx.namespace("watch").await;
        let maps = format!("/api/v1/namespaces/{ns}/configmaps");
        let mut a = cx.watch(&format!("{maps}?labelSelector={LABEL}%3Da")).await;
        let mut b = cx.watch(&format!("{maps}?labelSelector={LABEL}%3Db")).await;
        let mut both = cx.watch(&format!("{maps}?labelSelector={LABEL}%20in%20(a,b)")).await;
        for label in ["a", "b"] {
            cx.create(&maps, &config_map(label, label)).await.ok();
            cx.merge(&format!("{maps}/{label}"), &mutation(1)).await.ok();
            cx.merge(&format!("{maps}/{label}"), &mutation(2)).await.ok();
            cx.delete(&format!("{maps}/{label}")).await.ok();
            let own = if label == "a" { &mut a } else { &mut b };
            for watch in [own, &mut both] {
                expect(watch, "ADDED", label, "").await;
                expect(watch, "MODIFIED", label, "1").await;
                expect(watch, "MODIFIED", label, "2").await;
                expect(watch, "DELETED", label, "2").await;
            }
        }
        a.silent().await;
        b.silent().await;
        both.silent().await;
    });
}

#[test]
fn watch_config_maps_label_changed() {
    conform(async |cx| {
        let ns = cx.namespace("watch").await;
        let maps = format!("/api/v1/namespaces/{ns}/configmaps");
        let mut watch = cx.watch(&format!("{maps}?labelSelector={LABEL}%3Dlabel-changed")).await;
        let relabel = |label: &str| json!({"metadata": {"labels": {LABEL: label}}});
        cx.create(&maps, &config_map("one", "label-changed")).await.ok();
        cx.merge(&format!("{maps}/one"), &mutation(1)).await.ok();
        cx.merge(&format!("{maps}/one"), &relabel("wrong")).await.ok();
        expect(&mut watch, "ADDED", "one", "").await;
        expect(&mut watch, "MODIFIED", "one", "1").await;
        expect(&mut watch, "DELETED", "one", "1").await;
        cx.merge(&format!("{maps}/one"), &mutation(2)).await.ok();
        watch.silent().await;
        cx.merge(&format!("{maps}/one"), &relabel("label-changed")).await.ok();
        cx.merge(&format!("{maps}/one"), &mutation(3)).await.ok();
        cx.delete(&format!("{maps}/one")).await.ok();
        expect(&mut watch, "ADDED", "one", "2").await;
        expect(&mut watch, "MODIFIED", "one", "3").await;
        expect(&mut watch, "DELETED", "one", "3").await;
    });
}

#[test]
fn watch_consistency() {
    conform(async |cx| {
        let ns = cx.namespace("watch").await;
        let maps = format!("/api/v1/namespaces/{ns}/configmaps");
        let mut versions = vec![version_of(&cx.get(&maps).await.ok()).to_owned()];
        for number in 0..40_u32 {
            let name = format!("map-{}", number % 7);
            let path = format!("{maps}/{name}");
            let written = match number % 3 {
                0 if !cx.exists(&path).await => cx.create(&maps, &config_map(&name, "x")).await,
                2 if cx.exists(&path).await => cx.delete(&path).await,
                _ if cx.exists(&path).await => cx.merge(&path, &mutation(number)).await,
                _ => cx.create(&maps, &config_map(&name, "x")).await,
            };
            let object = written.ok();
            if !version_of(&object).is_empty() {
                versions.push(version_of(&object).to_owned());
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut first: Option<Vec<String>> = None;
        for start in versions.iter().take(20) {
            let mut watch = cx.watch(&format!("{maps}?resourceVersion={start}")).await;
            let mut seen = Vec::new();
            let last = versions.last().expect("versions");
            while seen.last() != Some(last) {
                seen.push(version_of(&watch.next().await.1).to_owned());
            }
            let all = first.get_or_insert_with(|| seen.clone());
            assert!(all.ends_with(&seen), "{seen:?} is not the end of {all:?}");
        }
    });
}
