//! What the suite does not ask for and users do: sidecars, endpoints that are not ready or not on the node, and what a
//! node tells of itself.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::networking::{client, http_name, on};
use super::object::{IDLE, container, echo, phase, pod, restarts, shell, text, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![sidecars(), unready_addresses(), internal_traffic(), nodes()]
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
        let again =
            |pod: &Value| restarts(pod, "sidecar") == 1 && !container(pod, "sidecar")["state"]["running"].is_null();
        let found = place.until(&path, again).await;
        assert_eq!(phase(&found), "Running");
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
