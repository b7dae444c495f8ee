//! Volumes of ConfigMaps, Secrets and fields, by themselves and projected: contents, paths, modes and owners.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{pod, shell, with};
use super::rows::{self, AT, Expect, Row, is};

/// What every row's objects hold.
const DATA: &[(&str, &str)] = &[("data-1", "value-1"), ("data-2", "value-2"), ("data-3", "value-3")];

pub(crate) fn checks() -> Vec<Check> {
    let nothing = async |_| {};
    let both = |rows: fn(Source) -> Vec<Row>, source: [Source; 2]| source.into_iter().flat_map(rows).collect();
    vec![
        rows::check("configmap-volumes", json!({}), both(config_maps, [CONFIG_MAP, PROJECTED_CONFIG_MAP]), prepare),
        rows::check("secret-volumes", json!({}), both(secrets, [SECRET, PROJECTED_SECRET]), prepare),
        own_namespace(),
        rows::check("downward-volumes", json!({}), both(downward, [DOWNWARD, PROJECTED_DOWNWARD]), nothing),
        rows::check("fs-group", fs_group(), both(group_rows, [SECRET, PROJECTED_SECRET]), prepare),
        rows::check("combined-volumes", json!({}), combined(), prepare),
        rows::check("sub-paths", json!({}), sub_paths(), prepare),
    ]
}

/// How a volume of one kind is written.
#[derive(Clone, Copy)]
struct Source {
    item: &'static str,
    kind: &'static str,
    projected: bool,
}

const CONFIG_MAP: Source = Source { item: "ConfigMap", kind: "configMap", projected: false };
const PROJECTED_CONFIG_MAP: Source = Source { item: "Projected configMap", kind: "configMap", projected: true };
const SECRET: Source = Source { item: "Secrets", kind: "secret", projected: false };
const PROJECTED_SECRET: Source = Source { item: "Projected secret", kind: "secret", projected: true };
const DOWNWARD: Source = Source { item: "Downward API volume", kind: "downwardAPI", projected: false };
const PROJECTED_DOWNWARD: Source = Source { item: "Projected downwardAPI", kind: "downwardAPI", projected: true };

impl Source {
    /// A volume; `defaultMode` belongs to the volume as a whole, the rest to its source.
    fn volume(self, mut source: Value, default_mode: Option<u32>) -> Value {
        let mode = default_mode.map_or(json!({}), |mode| json!({"defaultMode": mode}));
        if self.projected {
            return json!({"projected": with(mode, json!({"sources": [{self.kind: source}]}))});
        }
        // A Secret by itself is named otherwise than a projected one.
        if self.kind == "secret"
            && let Some(name) = source.as_object_mut().and_then(|source| source.remove("name"))
        {
            source["secretName"] = name;
        }
        json!({self.kind: with(source, mode)})
    }

    fn row(self, what: &str, source: Value, mode: Option<u32>, script: &str, expected: &str) -> Row {
        Row::volume(format!("{} {what}", self.item), self.volume(source, mode), script, is(expected))
    }
}

async fn prepare(place: Place) {
    let data: Value =
        DATA.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into();
    // Another check of this area may have made it.
    place.create("configmaps", &json!({"metadata": {"name": "config"}, "data": data})).await;
    place.create("secrets", &json!({"metadata": {"name": "secret"}, "stringData": data})).await;
    let binary =
        json!({"metadata": {"name": "binary"}, "data": {"text": "text data"}, "binaryData": {"dump": "3soAAA=="}});
    place.create("configmaps", &binary).await;
}

const CONTENT: &str = "cat /v/data-1; echo; stat -Lc %a /v/data-1";
const MAPPED: &str = "cat /v/path/to/data-2; echo; stat -Lc %a /v/path/to/data-2; ls /v";

/// One key at a path of its own.
fn mapped(name: &str, mode: Option<u32>) -> Value {
    let item = json!({"key": "data-2", "path": "path/to/data-2"});
    let item = mode.map_or(item.clone(), |mode| with(item, json!({"mode": mode})));
    json!({"name": name, "items": [item]})
}

/// What ConfigMaps and Secrets have in common, except for how an item says "mode".
fn common(source: Source, name: &str, mode: &str) -> Vec<Row> {
    let all = json!({"name": name});
    vec![
        source.row("should be consumable from pods in volume", all.clone(), None, CONTENT, "value-1\n644"),
        source.row(
            "should be consumable from pods in volume with defaultMode set",
            all,
            Some(0o400),
            CONTENT,
            "value-1\n400",
        ),
        source.row(
            "should be consumable from pods in volume with mappings",
            mapped(name, None),
            None,
            MAPPED,
            "value-2\n644\npath",
        ),
        source.row(
            &format!("should be consumable from pods in volume with mappings and Item {mode} set"),
            mapped(name, Some(0o400)),
            None,
            MAPPED,
            "value-2\n400\npath",
        ),
    ]
}

fn config_maps(source: Source) -> Vec<Row> {
    let all = || json!({"name": "config"});
    let mut rows = common(source, "config", "mode");
    rows.extend([
        source
            .row("should be consumable from pods in volume as non-root", all(), None, CONTENT, "value-1\n644")
            .non_root(),
        source
            .row(
                "should be consumable from pods in volume with mappings as non-root",
                mapped("config", None),
                None,
                MAPPED,
                "value-2\n644\npath",
            )
            .non_root(),
        source.row("should be consumable in multiple volumes in the same pod", all(), None, CONTENT, "value-1\n644"),
    ]);
    if !source.projected {
        let script = "cat /v/text; echo; od -An -tx1 /v/dump";
        let binary = json!({"name": "binary"});
        rows.push(source.row(
            "binary data should be reflected in volume",
            binary,
            None,
            script,
            "text data\n de ca 00 00",
        ));
    }
    rows
}

fn secrets(source: Source) -> Vec<Row> {
    let all = json!({"name": "secret"});
    let mut rows = common(source, "secret", "Mode");
    rows.push(source.row("should be consumable in multiple volumes in a pod", all, None, CONTENT, "value-1\n644"));
    rows
}

/// The Secret of the same name in another namespace is not the one that is mounted.
fn own_namespace() -> Check {
    const ITEM: &str = "Secrets should be able to mount in a volume regardless of a different secret existing with same name in different namespace";
    Check::new("own-secret", &[ITEM], async |place: Place| {
        let other = place.another("conformance-volumes-other").await;
        let secret = |value: &str| json!({"metadata": {"name": "same"}, "stringData": {"data-1": value}});
        other.create("secrets", &secret("other")).await.ok();
        place.create("secrets", &secret("own")).await.ok();
        let mount = json!({"volumeMounts": [{"name": "secret", "mountPath": AT}]});
        let volumes = json!([{"name": "secret", "secret": {"secretName": "same"}}]);
        let spec = json!({"restartPolicy": "Never", "volumes": volumes});
        let (_, log) =
            place.result(&pod("own-secret", &[with(shell("main", "cat /v/data-1"), mount)], spec), "main").await;
        assert_eq!(log, "own");
        other.remove().await;
    })
}

fn downward(source: Source) -> Vec<Row> {
    let field = |what: &str, path: &str, mode: Option<u32>, item_mode: Option<u32>, script: &str, expected: &str| {
        let item = json!({"path": "file", "fieldRef": {"fieldPath": path}});
        let item = item_mode.map_or(item.clone(), |mode| with(item, json!({"mode": mode})));
        source.row(what, json!({"items": [item]}), mode, script, expected)
    };
    let name = "downward-volumes";
    let resource = |what: &str, number: usize, resource: &str, expect: Expect| {
        let container = format!("row-{number}");
        let item = json!({"path": "file", "resourceFieldRef": {"containerName": container, "resource": resource}});
        let volume = source.volume(json!({"items": [item]}), None);
        Row::volume(format!("{} {what}", source.item), volume, "cat /v/file", expect)
    };
    // Rows name their own containers; the projected ones come behind the others.
    let first = if source.projected { 9 } else { 0 } + 3;
    let own = json!({"resources": {"requests": {"cpu": "25m", "memory": "32Mi"},
        "limits": {"cpu": "1250m", "memory": "64Mi"}}});
    let allocatable_cpu = "should provide node allocatable (cpu) as default cpu limit if the limit is not set";
    let allocatable_memory = "should provide node allocatable (memory) as default memory limit if the limit is not set";
    vec![
        field("should provide podname only", "metadata.name", None, None, "cat /v/file", name),
        field("should set DefaultMode on files", "metadata.name", Some(0o400), None, "stat -Lc %a /v/file", "400"),
        field("should set mode on item file", "metadata.name", None, Some(0o400), "stat -Lc %a /v/file", "400"),
        resource("should provide container's cpu limit", first, "limits.cpu", is("2")).container(own.clone()),
        resource("should provide container's cpu request", first + 1, "requests.cpu", is("1")).container(own.clone()),
        resource("should provide container's memory limit", first + 2, "limits.memory", is("67108864"))
            .container(own.clone()),
        resource("should provide container's memory request", first + 3, "requests.memory", is("33554432"))
            .container(own),
        resource(allocatable_cpu, first + 4, "limits.cpu", Expect::Allocatable(&["cpu"])),
        resource(allocatable_memory, first + 5, "limits.memory", Expect::Allocatable(&["memory"])),
    ]
}

fn fs_group() -> Value {
    json!({"securityContext": {"runAsUser": 1000, "fsGroup": 1001}})
}

fn group_rows(source: Source) -> Vec<Row> {
    let what = "should be consumable from pods in volume as non-root with defaultMode and fsGroup set";
    let script = "cat /v/data-1; echo; stat -Lc \"%a %g\" /v/data-1; id -G";
    let all = json!({"name": "secret"});
    vec![source.row(what, all, Some(0o440), script, "value-1\n440 1001\n1000 1001")]
}

fn combined() -> Vec<Row> {
    let volume = json!({"projected": {"sources": [
        {"secret": {"name": "secret", "items": [{"key": "data-1", "path": "secret/data"}]}},
        {"configMap": {"name": "config", "items": [{"key": "data-2", "path": "config/data"}]}},
        {"downwardAPI": {"items": [{"path": "podname", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]}});
    let script = "cat /v/podname; echo; cat /v/secret/data; echo; cat /v/config/data";
    let item = "Projected combined should project all components that make up the projection API";
    let beside = "EmptyDir wrapper volumes should not conflict";
    vec![
        Row::volume(item, volume, script, is("combined-volumes\nvalue-1\nvalue-2")),
        Row::volume(beside, json!({"secret": {"secretName": "secret"}}), "cat /v/data-1", is("value-1")),
        Row::volume(beside, json!({"configMap": {"name": "config"}}), "cat /v/data-1", is("value-1")),
    ]
}

fn sub_paths() -> Vec<Row> {
    let item = |what: &str| format!("Subpath Atomic writer volumes should support subpaths with {what}");
    let file = |path: &str| json!({"mountPath": "/file", "subPath": path});
    let sources = |source: Value| json!({"projected": {"sources": [source]}});
    let name = json!({"items": [{"path": "down/name", "fieldRef": {"fieldPath": "metadata.name"}}]});
    let config = json!({"configMap": {"name": "config"}});
    let read = "cat /file";
    let expanded = json!({"mountPath": "/logs", "subPathExpr": "$(POD_NAME)/$(OTHER)"});
    let env = json!({"env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "OTHER", "value": "deep"}]});
    vec![
        Row::mounted(item("configmap pod"), config.clone(), file("data-1"), read, is("value-1")),
        Row::mounted(
            item("configmap pod with mountPath of existing file"),
            config.clone(),
            json!({"mountPath": "/etc/group", "subPath": "data-1"}),
            "cat /etc/group",
            is("value-1"),
        ),
        Row::mounted(
            item("secret pod"),
            json!({"secret": {"secretName": "secret"}}),
            file("data-1"),
            read,
            is("value-1"),
        ),
        Row::mounted(item("downward pod"), json!({"downwardAPI": name}), file("down/name"), read, is("sub-paths")),
        Row::mounted(item("projected pod"), sources(config), file("data-1"), read, is("value-1")),
        Row::mounted(
            "Variable Expansion should allow substituting values in a volume subpath",
            json!({"emptyDir": {}}),
            expanded,
            "echo x > /logs/file; grep -o \"/sub-paths/deep /logs\" /proc/self/mountinfo",
            is("/sub-paths/deep /logs"),
        )
        .container(env),
    ]
}
