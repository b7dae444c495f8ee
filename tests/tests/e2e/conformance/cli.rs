//! What the suite does by `kubectl`: small applications, and looking at them.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX_OTHER, ECHO, echo, name_of, pod, restarts, shell, template, text, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![guestbook(), describe(), controllers(), replace(), logs()]
}

/// A page that keeps what it is told, or passes everything on.
fn page(name: &str, script: &str) -> Value {
    let labels = json!({"guestbook": name});
    let serve = "mkdir -p /www/cgi-bin; printf \"%s\\n\" \"#!/bin/sh\" \"echo Content-Type: text/plain; echo\" \"$PAGE\" \
        > /www/cgi-bin/book; chmod +x /www/cgi-bin/book; exec httpd -f -p 8080 -h /www";
    let container = with(shell("main", serve), json!({"env": [{"name": "PAGE", "value": script}]}));
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template(&labels, &[container])}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}},
    ]})
}

fn guestbook() -> Check {
    const ITEM: &str = "Kubectl client Guestbook application should create and stop a working application";
    Check::new("guestbook", &[ITEM], async |place: Place| {
        let keep = "case $QUERY_STRING in set=*) echo ${QUERY_STRING#set=} > /tmp/entry;; esac; cat /tmp/entry";
        let pass_on = |to: &str| format!("timeout 10 wget -qO- \"http://{to}/cgi-bin/book?$QUERY_STRING\"");
        let front = format!("case $QUERY_STRING in set=*) {};; *) {};; esac", pass_on("primary"), pass_on("replica"));
        let pages = [page("primary", keep), page("replica", &pass_on("primary")), page("frontend", &front)];
        for page in &pages {
            place.kubectl.apply(&page.to_string()).await;
        }
        for name in ["primary", "replica", "frontend"] {
            place.kubectl.ok(&format!("rollout status deployment/{name} --timeout=120s")).await;
        }
        for query in ["set=TestEntry", "get"] {
            let path = place.path(&format!("services/frontend/proxy/cgi-bin/book?{query}"));
            let answered = async || match place.get(&path).await {
                answer if answer.code == 200 && answer.text.trim() == "TestEntry" => Ok(()),
                answer => Err(format!("{query}: {answer:?}")),
            };
            place.eventually(answered).await;
        }
        for page in &pages {
            let delete = place.kubectl.command("delete --wait=false -f -").stdin(page.to_string());
            assert!(place.kubectl.run_command(&delete).await.success());
        }
        for name in ["primary", "replica", "frontend"] {
            place.gone(&place.path(&format!("deployments/{name}"))).await;
        }
    })
}

fn controller(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": labels, "template": template(&labels, &[echo("main", 8080)])}})
}

async fn running(place: &Place, name: &str, count: usize) -> Vec<Value> {
    let path = place.path(&format!("pods?labelSelector=app%3D{name}"));
    place
        .eventually(async || {
            let pods = place.items(&path).await;
            let ready = pods.iter().filter(|pod| super::object::is_true(pod, "Ready")).count();
            if ready == count && pods.len() == count {
                Ok(pods)
            } else {
                Err(format!("{ready} of {} are ready", pods.len()))
            }
        })
        .await
}

/// What must be seen of each kind.
const DESCRIBED: &[(&str, &str)] = &[
    (
        "rc",
        "Name:|Namespace:|Selector:|Labels:|Replicas:|Pods Status:|1 Running / 0 Waiting|Pod Template:|Image:|Events:",
    ),
    (
        "pod",
        "Name:|Namespace:|Node:|Status:|Running|IP:|Controlled By:  ReplicationController/described|Image:|State:|QoS Class:",
    ),
    (
        "service",
        "Name:|Namespace:|Labels:|Selector:|app=described|Type:|ClusterIP|IP:|Port:|6379/TCP|Endpoints:|Session Affinity:",
    ),
    (
        "node",
        "Name:|Labels:|Annotations:|CreationTimestamp:|Conditions:|Type|Status|LastHeartbeatTime|LastTransitionTime|Reason\
        |Message|Addresses:|Capacity:|Version:|Kubelet Version:|Pods",
    ),
    ("namespace", "Name:|Labels:|Annotations:|Status:|Active"),
    ("cronjob", "Name:|Schedule:|Concurrency Policy:|Suspend:|Starting Deadline Seconds:|Image:|Active Jobs:"),
];

fn describe() -> Check {
    const ITEM: &str =
        "Kubectl client Kubectl describe should check if kubectl describe prints relevant information for rc and pods";
    Check::new("describe", &[ITEM], async |place: Place| {
        let kubectl = &place.kubectl;
        kubectl.apply(&controller("described", 1).to_string()).await;
        let pods = running(&place, "described", 1).await;
        kubectl.ok("expose rc described --port=6379 --target-port=8080 --name=described").await;
        kubectl.ok("create cronjob described --image=busybox:1.36 --schedule='0 0 1 1 *' -- true").await;
        for (kind, wanted) in DESCRIBED {
            let name = match *kind {
                "pod" => name_of(&pods[0]),
                "node" => text(&pods[0]["spec"]["nodeName"]),
                "namespace" => &place.namespace,
                _ => "described",
            };
            let text = kubectl.ok(&format!("describe {kind} {name}")).await;
            let missing: Vec<_> = wanted.split('|').filter(|part| !text.contains(part)).collect();
            assert!(missing.is_empty(), "describe {kind}: {missing:?} are not in {text}");
        }
    })
}

fn controllers() -> Check {
    const ITEMS: &[&str] = &[
        "Kubectl client Update Demo should create and stop a replication controller",
        "Kubectl client Update Demo should scale a replication controller",
        "Kubectl client Kubectl expose should create services for rc",
        "Kubectl client Kubectl label should update the label on a resource",
        "Kubectl client Kubectl patch should add annotations for pods in rc",
    ];
    Check::new("kubectl-controllers", ITEMS, async |place: Place| {
        let kubectl = &place.kubectl;
        kubectl.apply(&controller("demo", 2).to_string()).await;
        for count in [2, 1, 2] {
            kubectl.ok(&format!("scale rc demo --replicas={count} --timeout=5m")).await;
            for pod in running(&place, "demo", count).await {
                let answer = place.get(&place.path(&format!("pods/{}/proxy/hostname", name_of(&pod)))).await;
                assert_eq!(answer.text, name_of(&pod));
            }
        }
        kubectl.ok("expose rc demo --name=rm2 --port=1234 --target-port=8080").await;
        kubectl.ok("expose service rm2 --name=rm3 --port=2345 --target-port=8080").await;
        for (name, port) in [("rm2", 1234), ("rm3", 2345)] {
            let service = place.get(&place.path(&format!("services/{name}"))).await.ok();
            assert_eq!(service["spec"]["ports"][0]["port"], port);
            let both = |found: &Value| found["subsets"][0]["addresses"].as_array().is_some_and(|all| all.len() == 2);
            let endpoints = place.until(&place.path(&format!("endpoints/{name}")), both).await;
            assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], 8080);
        }
        for pod in running(&place, "demo", 2).await {
            let name = name_of(&pod);
            kubectl.ok(&format!("patch pod {name} -p '{{\"metadata\":{{\"annotations\":{{\"x\":\"y\"}}}}}}'")).await;
            assert_eq!(place.get(&place.path(&format!("pods/{name}"))).await.ok()["metadata"]["annotations"]["x"], "y");
            kubectl.ok(&format!("label pods {name} testing-label=testing-label-value")).await;
            assert!(kubectl.ok(&format!("get pod {name} -L testing-label")).await.contains("testing-label-value"));
            kubectl.ok(&format!("label pods {name} testing-label-")).await;
            assert!(!kubectl.ok(&format!("get pod {name} -L testing-label")).await.contains("testing-label-value"));
        }
        kubectl.ok("delete rc demo --timeout=60s").await;
        running(&place, "demo", 0).await;
    })
}

fn replace() -> Check {
    const ITEM: &str = "Kubectl client Kubectl replace should update a single-container pod's image";
    Check::new("kubectl-replace", &[ITEM], async |place: Place| {
        let kubectl = &place.kubectl;
        place.ready(&pod("replaced", &[super::object::idle("main")], json!({}))).await;
        let mut manifest: Value = serde_json::from_str(&kubectl.ok("get pod replaced -o json").await).expect("JSON");
        manifest["spec"]["containers"][0]["image"] = json!(BUSYBOX_OTHER);
        // Another may have written the pod's status since.
        manifest["metadata"]["resourceVersion"] = Value::Null;
        let replace = kubectl.command("replace -f -").stdin(manifest.to_string());
        let replaced = kubectl.run_command(&replace).await;
        assert!(replaced.success(), "{}", replaced.error_text());
        place.until(&place.path("pods/replaced"), |pod| restarts(pod, "main") == 1).await;
        assert_eq!(kubectl.ok("get pod replaced -o jsonpath={.spec.containers[0].image}").await, BUSYBOX_OTHER);
    })
}

fn logs() -> Check {
    const ITEM: &str = "Kubectl logs logs should be able to retrieve and filter logs";
    Check::new("kubectl-logs", &[ITEM], async |place: Place| {
        let script =
            "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done; trap exit TERM; while :; do sleep 1; done";
        let container = json!({"name": "main", "image": ECHO, "command": ["sh", "-c", script]});
        place.ready(&pod("logs", &[container], json!({}))).await;
        let kubectl = &place.kubectl;
        kubectl.until("logs logs main", |text| text.ends_with("line 39")).await;
        assert_eq!(kubectl.ok("logs logs main --tail=1").await, "line 39");
        assert_eq!(kubectl.ok("logs logs main --limit-bytes=1").await, "l");
        let stamped = kubectl.ok("logs logs main --tail=1 --timestamps").await;
        let (time, line) = stamped.split_once(' ').unwrap_or_default();
        assert!(api_machinery::time::Time::parse(time).is_ok() && line == "line 39", "{stamped}");
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        let recent = kubectl.ok("logs logs main --since=1s").await;
        let old = kubectl.ok("logs logs main --since=24h").await;
        assert!(recent.lines().count() < old.lines().count(), "{recent}");
    })
}
