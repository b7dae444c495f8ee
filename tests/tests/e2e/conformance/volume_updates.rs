//! Volumes of running pods follow their objects: ConfigMaps and Secrets that change, come and go, and the pod's own
//! labels and annotations.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{pod, shell, with};

const POD: &str = "updates";

const ITEMS: &[&str] = &[
    "ConfigMap updates should be reflected in volume",
    "Projected configMap updates should be reflected in volume",
    "ConfigMap optional updates should be reflected in volume",
    "Projected configMap optional updates should be reflected in volume",
    "Secrets optional updates should be reflected in volume",
    "Projected secret optional updates should be reflected in volume",
    "Downward API volume should update labels on modification",
    "Downward API volume should update annotations on modification",
    "Projected downwardAPI should update labels on modification",
    "Projected downwardAPI should update annotations on modification",
];

pub(crate) fn checks() -> Vec<Check> {
    vec![Check::new("volume-updates", ITEMS, updates)]
}

/// The objects by what becomes of them, each mounted in two ways.
fn volumes() -> Vec<Value> {
    let mut volumes = Vec::new();
    let field = |name: &str| json!({"path": name, "fieldRef": {"fieldPath": format!("metadata.{name}")}});
    let fields = json!({"items": [field("labels"), field("annotations")]});
    for object in ["changed", "deleted", "created"] {
        let optional = object != "changed";
        let named = json!({"name": object, "optional": optional});
        volumes.push(json!({"name": format!("c-{object}"), "configMap": named}));
        volumes.push(json!({"name": format!("pc-{object}"), "projected": {"sources": [{"configMap": named}]}}));
        volumes.push(json!({"name": format!("s-{object}"), "secret": {"secretName": object, "optional": optional}}));
        volumes.push(json!({"name": format!("ps-{object}"), "projected": {"sources": [{"secret": named}]}}));
    }
    volumes.push(json!({"name": "d", "downwardAPI": fields}));
    volumes.push(json!({"name": "pd", "projected": {"sources": [{"downwardAPI": fields}]}}));
    volumes
}

/// Tells of all files in a line, again and again.
const SCRIPT: &str = "trap exit TERM; while :; do for f in /v/*/*; do [ -f $f ] && \
    echo -n \"$f=$(tr \"\\n\" , < $f) \"; done; echo; sleep 1; done";

async fn updates(place: Place) {
    for resource in ["configmaps", "secrets"] {
        for object in ["changed", "deleted"] {
            place.create(resource, &object_of(resource, object, "before")).await.ok();
        }
    }
    let volumes = volumes();
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|volume| json!({"name": volume["name"], "mountPath": format!("/v/{}", super::object::text(&volume["name"]))}))
        .collect();
    let container = with(shell("main", SCRIPT), json!({"volumeMounts": mounts}));
    let meta = json!({"metadata": {"labels": {"tone": "soft"}, "annotations": {"builder": "bar"}}});
    place.ready(&with(pod(POD, &[container], json!({"volumes": volumes})), meta)).await;
    let before = shows(&place, &["c-changed", "pc-changed", "s-changed", "c-deleted", "ps-deleted"], "before").await;
    assert!(!before.contains("created"), "{before}");
    for (path, wanted) in [("d/labels", "tone=\"soft\""), ("pd/annotations", "builder=\"bar\"")] {
        assert!(before.contains(&format!("/v/{path}=")) && before.contains(wanted), "{path}: {before}");
    }
    change(&place).await;
    let all = ["c", "pc", "s", "ps"].map(|kind| [format!("{kind}-changed"), format!("{kind}-created")]);
    let all: Vec<&str> = all.iter().flatten().map(String::as_str).collect();
    shows(&place, &all, "after").await;
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    place.log_until(POD, "main", |text| !last(text).contains("deleted")).await;
    let told = |line: &str| line.matches("tone=\"loud\"").count() == 2 && line.matches("builder=\"foo\"").count() == 2;
    place.log_until(POD, "main", |text| told(&last(text))).await;
    place.delete(&place.path(&format!("pods/{POD}"))).await.ok();
}

fn object_of(resource: &str, name: &str, value: &str) -> Value {
    let data = if resource == "secrets" { "stringData" } else { "data" };
    json!({"metadata": {"name": name}, data: {"data-1": value}})
}

async fn change(place: &Place) {
    for resource in ["configmaps", "secrets"] {
        place.merge(&place.path(&format!("{resource}/changed")), &object_of(resource, "changed", "after")).await.ok();
        place.create(resource, &object_of(resource, "created", "after")).await.ok();
        place.delete(&place.path(&format!("{resource}/deleted"))).await.ok();
    }
    let meta = json!({"metadata": {"labels": {"tone": "loud"}, "annotations": {"builder": "foo"}}});
    place.merge(&place.path(&format!("pods/{POD}")), &meta).await.ok();
}

/// Waits until the files of these volumes hold a text.
async fn shows(place: &Place, volumes: &[&str], value: &str) -> String {
    let whole = |line: &str| volumes.iter().all(|volume| line.contains(&format!("/v/{volume}/data-1={value} ")));
    let text = place.log_until(POD, "main", |text| text.lines().last().is_some_and(whole)).await;
    text.lines().last().unwrap_or_default().to_owned()
}
