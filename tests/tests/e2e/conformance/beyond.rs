//! What the suite does not ask for and users do: sidecars, endpoints that are not ready or not on the node, and what a
//! node tells of itself.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::networking::{client, http_name, on};
use super::object::{IDLE, container, echo, phase, pod, restarts, shell, text, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![sidecars(), unready_addresses(), internal_traffic(), nodes(), statistics()]
}

/// One that runs beside the others from before their start until after their end.
fn sidecar(script: &str) -> Value {
    let mount = json!({"restartPolicy": "Always", "volumeMounts": [{"name": "steps", "mountPath": "/v"}]});
    with(shell("sidecar", script), mount)
}

fn sidecars() -> Check {
    Check::new("sidecars", &[], async |place: Place| {
        let mount = json!({"volumeMounts": [{"name": "steps", "mountPath": "/v"}]});
        let probe = json!({"startupProbe": {"exec": {"command": ["test", "-e", "/v/up"]}, "periodSeconds": 1, "timeoutSeconds": 5}});
        let beside = with(sidecar(&format!("sleep 2; touch /v/up; {IDLE}")), probe);
        let main = with(shell("main", "[ -e /v/up ] && sleep 1"), mount.clone());
        let spec = |beside: Value| {
            json!({"restartPolicy": "Never", "initContainers": [beside],
            "volumes": [{"name": "steps", "emptyDir": {}}]})
        };
        let (ended, _) = place.result(&pod("sidecar", &[main], spec(beside)), "main").await;
        assert_eq!(phase(&ended), "Succeeded", "{ended}");
        assert!(!container(&ended, "sidecar")["state"]["terminated"].is_null(), "{ended}");
        // One that ends is started again, whatever the pod's policy.
        let beside = sidecar("[ -e /v/once ] || { touch /v/once; exit 3; }; trap exit TERM; while :; do sleep 1; done");
        let main = with(shell("main", IDLE), mount);
        place.create("pods", &pod("restarted", &[main], spec(beside))).await.ok();
        let path = place.path("pods/restarted");
        // The other container may start before the sidecar ends or after it has been started again.
        let again = |pod: &Value| {
            let runs = !container(pod, "sidecar")["state"]["running"].is_null();
            restarts(pod, "sidecar") == 1 && runs && phase(pod) == "Running"
        };
        place.until(&path, again).await;
        place.delete(&path).await.ok();
    })
}

fn labelled(name: &str, app: &str, container: Value, spec: Value) -> Value {
    with(pod(name, &[container], spec), json!({"metadata": {"labels": {"app": app}}}))
}

fn unready_addresses() -> Check {
    Check::new("unready-addresses", &[], async |place: Place| {
        let never = json!({"readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}});
        place.create("pods", &labelled("unready", "unready", with(echo("main", 8080), never), json!({}))).await.ok();
        for (name, publish) in [("published", true), ("unpublished", false)] {
            let spec = json!({"selector": {"app": "unready"}, "publishNotReadyAddresses": publish, "ports": [{"port": 80, "targetPort": 8080}]});
            place.create("services", &json!({"metadata": {"name": name}, "spec": spec})).await.ok();
        }
        place.shared(&client("beyond-client", on("node-1"))).await;
        let answered = async || match place.try_exec("beyond-client", "main", &http_name("published")).await {
            Ok(name) if name == "unready" => Ok(()),
            other => Err(format!("{other:?}")),
        };
        place.eventually(answered).await;
        let refused = place.try_exec("beyond-client", "main", &http_name("unpublished")).await;
        assert!(refused.is_err(), "{refused:?} answers although it is not ready");
    })
}

fn internal_traffic() -> Check {
    Check::new("internal-traffic-policy", &[], async |place: Place| {
        for node in ["node-1", "node-2"] {
            place.create("pods", &labelled(&format!("local-{node}"), "local", echo("main", 8080), on(node))).await.ok();
        }
        for node in ["node-1", "node-2"] {
            place.until(&place.path(&format!("pods/local-{node}")), |pod| super::object::is_true(pod, "Ready")).await;
        }
        place.shared(&client("beyond-client", on("node-1"))).await;
        let spec = json!({"selector": {"app": "local"}, "internalTrafficPolicy": "Local", "ports": [{"port": 80, "targetPort": 8080}]});
        place.create("services", &json!({"metadata": {"name": "local"}, "spec": spec})).await.ok();
        super::services::has_endpoints(&place, "local", &["local-node-1:8080", "local-node-2:8080"]).await;
        let ask = format!("for i in 1 2 3 4 5 6 7 8; do {} || exit 1; echo; done | sort -u", http_name("local"));
        let answered = async || match place.try_exec("beyond-client", "main", &ask).await {
            Ok(names) if names == "local-node-1" => Ok(()),
            other => Err(format!("{other:?}")),
        };
        place.eventually(answered).await;
    })
}

fn nodes() -> Check {
    Check::new("node-endpoints", &[], async |place: Place| {
        for node in ["node-1", "node-2"] {
            let get = async |path: &str| {
                let answer = place.get(&format!("/api/v1/nodes/{node}/proxy/{path}")).await;
                assert_eq!(answer.code, 200, "{path}: {answer:?}");
                answer
            };
            assert_eq!(get("healthz").await.text, "ok");
            assert!(get("metrics").await.text.contains("kubelet_running_pods"));
            assert!(get("metrics/cadvisor").await.text.contains("container_memory_working_set_bytes"));
            assert!(get("logs/").await.text.contains("<a href=\""));
            assert_eq!(text(&get("stats/summary").await.body["node"]["nodeName"]), node);
            assert!(get("configz").await.body["kubeletconfig"].is_object());
            assert!(get("pods").await.body["items"].is_array());
        }
    })
}

/// What the metrics server, dashboards and alerts read of a pod.
fn statistics() -> Check {
    Check::new("node-statistics", &[], async |place: Place| {
        let more =
            json!({"resources": {"limits": {"cpu": "100m"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
        let busy = with(shell("main", "head -c 300000 /dev/zero > /v/file; while :; do :; done"), more);
        let spec = with(on("node-1"), json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
        place.ready(&pod("measured", &[busy], spec)).await;
        let get = async |path: &str| place.get(&format!("/api/v1/nodes/node-1/proxy/{path}")).await;
        let summary = async || {
            let body = get("stats/summary").await.ok();
            let mut pods = body["pods"].as_array().into_iter().flatten();
            let found = pods.find(|one| {
                one["podRef"]["name"] == "measured" && one["podRef"]["namespace"] == place.namespace.as_str()
            });
            let own = found.ok_or_else(|| format!("the pod is not there: {body}"))?;
            let container = &own["containers"][0];
            let parts = [&container["rootfs"], &container["logs"], &own["ephemeral-storage"], &own["volume"][0]];
            let whole = parts.iter().all(|part| part["capacityBytes"].is_u64() && part["inodesFree"].is_u64());
            let used = [&own["network"]["rxBytes"], &container["cpu"]["usageCoreNanoSeconds"]];
            let counted = used.iter().all(|number| number.as_u64().is_some_and(|number| number > 0));
            if whole && counted { Ok(()) } else { Err(own.to_string()) }
        };
        place.eventually(summary).await;
        let of_pod = format!("namespace={:?},pod=\"measured\"", place.namespace);
        let pages = [
            ("metrics/cadvisor", "container_network_receive_bytes_total", "interface=\"eth0\""),
            ("metrics/cadvisor", "container_cpu_cfs_throttled_periods_total", "container=\"main\""),
            ("metrics/cadvisor", "container_memory_cache", "container=\"main\""),
            ("metrics/resource", "container_cpu_usage_seconds_total", "container=\"main\""),
            ("metrics/resource", "pod_memory_working_set_bytes", ""),
        ];
        for (page, family, label) in pages {
            let positive = async || {
                let page = get(page).await.text;
                let mut lines = page.lines().filter(|line| line.starts_with(&format!("{family}{{")));
                let own = lines.find(|line| line.contains(&of_pod) && line.contains(label));
                let value = own.and_then(|line| line.split_once("} ")?.1.split(' ').next()?.parse::<f64>().ok());
                if value.is_some_and(|value| value > 0.0) { Ok(()) } else { Err(format!("{family}: {own:?}")) }
            };
            place.eventually(positive).await;
        }
        place.delete(&place.path("pods/measured")).await.ok();
    })
}
