//! Hooks around a container's life: what is called after its start and before its end, seen by a server.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, echo, pod, shell, text, with};

const ITEMS: &[&str] = &[
    "Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart exec hook properly",
    "Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly",
    "Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop exec hook properly",
    "Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly",
    "PreStop should call prestop when killing a pod",
];

pub(crate) fn checks() -> Vec<Check> {
    vec![Check::new("lifecycle-hooks", ITEMS, hooks)]
}

async fn hooks(place: Place) {
    let server = place.ready(&pod("server", &[echo("main", 8080)], json!({}))).await;
    let ip = text(&server["status"]["podIP"]).to_owned();
    let exec =
        |what: &str| json!({"exec": {"command": ["sh", "-c", format!("timeout 5 wget -qO- http://{ip}:8080/{what}")]}});
    let http = |what: &str| {
        json!({"httpGet": {"host": ip, "port": 8080, "path": format!("/{what}"),
        "httpHeaders": [{"name": "Accept", "value": "a"}]}})
    };
    let container =
        |name: &str, hook: &str, action: Value| with(shell(name, IDLE), json!({"lifecycle": {hook: action}}));
    let containers = [
        container("exec-start", "postStart", exec("exec-start")),
        container("http-start", "postStart", http("http-start")),
        container("exec-stop", "preStop", exec("exec-stop")),
        container("http-stop", "preStop", http("http-stop")),
    ];
    place.ready(&pod("hooks", &containers, json!({"terminationGracePeriodSeconds": 15}))).await;
    let seen = |log: &str, what: &str| log.contains(&format!("GET /{what} 200"));
    let log = place.log_until("server", "main", |log| seen(log, "exec-start") && seen(log, "http-start")).await;
    assert!(!seen(&log, "exec-stop") && !seen(&log, "http-stop"), "{log}");
    let path = place.path("pods/hooks");
    place.delete(&path).await.ok();
    place.log_until("server", "main", |log| seen(log, "exec-stop") && seen(log, "http-stop")).await;
    place.gone(&path).await;
}
