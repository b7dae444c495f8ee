//! emptyDir volumes: their modes on both media, files of root and of others, sharing between containers, many at once.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, is_true, name_of, pause, pod, shell, text, with};
use super::rows::{self, Row, is};

/// Volumes of one pod in the check for races, as many as the suite takes.
const MANY: usize = 50;

pub(crate) fn checks() -> Vec<Check> {
    vec![rows::check("empty-dir", json!({}), files(), async |_| {}), shared(), many()]
}

/// A tmpfs is sticky, which the suite does not look at.
const MODE: &str = "stat -c %a /v | tail -c 4";

fn files() -> Vec<Row> {
    let media = [("default", json!({"emptyDir": {}})), ("tmpfs", json!({"emptyDir": {"medium": "Memory"}}))];
    let mut rows = Vec::new();
    for (medium, volume) in media {
        let kind = |text: &str| if medium == "tmpfs" { format!("{text} tmpfs") } else { text.to_owned() };
        let mount = if medium == "tmpfs" { "; mount | grep \" /v \" | cut -d\" \" -f5" } else { "" };
        let whole = format!("echo $({MODE}{mount})");
        let item = match medium {
            "tmpfs" => "EmptyDir volumes volume on tmpfs should have the correct mode",
            _ => "EmptyDir volumes volume on default medium should have the correct mode",
        };
        rows.push(Row::volume(item, volume.clone(), &whole, is(&kind("777"))));
        for mode in ["644", "666", "777"] {
            let script = format!(
                "umask 0; echo content > /v/f; chmod 0{mode} /v/f; echo $(cat /v/f; stat -c %a /v/f; {MODE}{mount})"
            );
            let row = |user: &str| {
                let item = format!("EmptyDir volumes should support ({user},0{mode},{medium})");
                Row::volume(item, volume.clone(), &script, is(&kind(&format!("content {mode} 777"))))
            };
            rows.push(row("root"));
            rows.push(row("non-root").non_root());
        }
    }
    rows
}

fn shared() -> Check {
    const ITEM: &str = "EmptyDir volumes pod should support shared volumes between containers";
    Check::new("shared-empty-dir", &[ITEM], async |place: Place| {
        let mount = json!({"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]});
        let reader = with(shell("reader", IDLE), mount.clone());
        let writer = with(shell("writer", &format!("echo hello > /shared/file; {IDLE}")), mount);
        let volumes = json!({"volumes": [{"name": "shared", "emptyDir": {}}]});
        place.ready(&pod("shared", &[reader, writer], volumes)).await;
        let read = async || match place.exec("shared", "reader", "cat /shared/file || true").await {
            text if text == "hello" => Ok(()),
            text => Err(text),
        };
        place.eventually(read).await;
    })
}

fn many() -> Check {
    const ITEM: &str = "EmptyDir wrapper volumes should not cause race condition when used for configmaps";
    Check::new("many-volumes", &[ITEM], async |place: Place| {
        let name = |number: usize| format!("racey-{number}");
        for number in 0..MANY {
            let config = json!({"metadata": {"name": name(number)}, "data": {"data-1": "value-1"}});
            place.create("configmaps", &config).await.ok();
        }
        let volumes: Vec<Value> =
            (0..MANY).map(|number| json!({"name": name(number), "configMap": {"name": name(number)}})).collect();
        let mounts: Vec<Value> =
            (0..MANY).map(|number| json!({"name": name(number), "mountPath": format!("/etc/v{number}")})).collect();
        let container = with(pause("main"), json!({"volumeMounts": mounts}));
        let template = json!({"metadata": {"labels": {"name": "racey"}},
            "spec": super::object::pod_spec(&[container], json!({"volumes": volumes}))});
        let controller = json!({"metadata": {"name": "racey"},
            "spec": {"replicas": 3, "selector": {"name": "racey"}, "template": template}});
        place.create("replicationcontrollers", &controller).await.ok();
        let path = place.path("pods?labelSelector=name%3Dracey");
        place
            .eventually(async || {
                let pods = place.items(&path).await;
                let ready = pods.iter().filter(|pod| is_true(pod, "Ready")).count();
                if ready == 3 { Ok(()) } else { Err(format!("{ready} of {} are ready", pods.len())) }
            })
            .await;
        for pod in place.items(&path).await {
            assert_eq!(text(&pod["status"]["phase"]), "Running", "{}", name_of(&pod));
        }
        let gone = json!({"propagationPolicy": "Background"});
        place.delete_with(&place.path("replicationcontrollers/racey"), &gone).await.ok();
    })
}
