//! Probes: what keeps passing changes nothing, what fails restarts containers or keeps them out of service.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, condition_of, container, echo, is_true, pod, restarts, shell, text, with};

/// How long nothing may happen to what is healthy.
const QUIET_SECONDS: u64 = 12;
const INITIAL_DELAY_SECONDS: i64 = 6;

pub(crate) fn checks() -> Vec<Check> {
    vec![healthy(), unhealthy(), again_and_again(), readiness()]
}

fn liveness(container: Value, action: Value) -> Value {
    let often = json!({"periodSeconds": 1, "failureThreshold": 1, "initialDelaySeconds": 1, "timeoutSeconds": 5});
    with(container, json!({"livenessProbe": with(often, action)}))
}

fn http(port: u16) -> Value {
    json!({"httpGet": {"path": "/healthz", "port": port}})
}

fn healthy() -> Check {
    const ITEMS: &[&str] = &[
        "Probing container should *not* be restarted with a /healthz http liveness probe",
        "Probing container should *not* be restarted with a exec \"cat /tmp/health\" liveness probe",
        "Probing container should *not* be restarted with a tcp:8080 liveness probe",
        "Probing container should *not* be restarted with a GRPC liveness probe",
    ];
    Check::new("passing-liveness", ITEMS, async |place: Place| {
        let cat = json!({"exec": {"command": ["cat", "/tmp/health"]}});
        let containers = [
            liveness(echo("http", 8081), http(8081)),
            liveness(echo("tcp", 8080), json!({"tcpSocket": {"port": 8080}})),
            liveness(shell("exec", &format!("echo ok > /tmp/health; {IDLE}")), cat),
            liveness(echo("grpc", 8082), json!({"grpc": {"port": 8082, "service": ""}})),
        ];
        place.ready(&pod("healthy", &containers, json!({}))).await;
        let none = |pod: &Value| ["http", "tcp", "exec", "grpc"].iter().all(|name| restarts(pod, name) == 0);
        place.stays(&place.path("pods/healthy"), QUIET_SECONDS, none).await;
        place.delete(&place.path("pods/healthy")).await.ok();
    })
}

fn unhealthy() -> Check {
    const ITEMS: &[&str] = &[
        "Probing container should be restarted with a /healthz http liveness probe",
        "Probing container should be restarted with a exec \"cat /tmp/health\" liveness probe",
        "Probing container should be restarted with a GRPC liveness probe",
    ];
    Check::new("failing-liveness", ITEMS, async |place: Place| {
        let fails = json!(["sh", "-c", "(sleep 3; timeout 5 wget -qO- http://127.0.0.1:8081/fail) & exec /echoserver"]);
        let cat = json!({"exec": {"command": ["cat", "/tmp/health"]}});
        let vanishing = format!("echo ok > /tmp/health; sleep 3; rm /tmp/health; {IDLE}");
        let containers = [
            liveness(with(echo("http", 8081), json!({"command": fails})), http(8081)),
            liveness(shell("exec", &vanishing), cat),
            liveness(echo("grpc", 8082), json!({"grpc": {"port": 2333}})),
        ];
        place.create("pods", &pod("unhealthy", &containers, json!({}))).await.ok();
        let all = |pod: &Value| ["http", "exec", "grpc"].iter().all(|name| restarts(pod, name) >= 1);
        place.until(&place.path("pods/unhealthy"), all).await;
        place.delete(&place.path("pods/unhealthy")).await.ok();
    })
}

/// The suite waits for five restarts, most of the time for the growing back-off; two show as much.
fn again_and_again() -> Check {
    const ITEM: &str = "Probing container should have monotonically increasing restart count";
    Check::new("restart-counts", &[ITEM], async |place: Place| {
        let always = liveness(shell("main", IDLE), json!({"exec": {"command": ["false"]}}));
        place.create("pods", &pod("again", &[always], json!({}))).await.ok();
        let mut last = 0;
        while last < 2 {
            let pod = place.until(&place.path("pods/again"), |pod| restarts(pod, "main") != last).await;
            let count = restarts(&pod, "main");
            assert!(count > last, "{last} became {count}");
            last = count;
        }
        place.delete(&place.path("pods/again")).await.ok();
    })
}

fn readiness() -> Check {
    const ITEMS: &[&str] = &[
        "Probing container with readiness probe should not be ready before initial delay and never restart",
        "Probing container with readiness probe that fails should never be ready and never restart",
    ];
    Check::new("readiness", ITEMS, async |place: Place| {
        let probe = |container: Value, action: Value| with(container, json!({"readinessProbe": action}));
        let delayed = with(http(8080), json!({"initialDelaySeconds": INITIAL_DELAY_SECONDS, "periodSeconds": 2}));
        let never = json!({"exec": {"command": ["false"]}, "periodSeconds": 1});
        place.create("pods", &pod("delayed", &[probe(echo("main", 8080), delayed)], json!({}))).await.ok();
        place.create("pods", &pod("unready", &[probe(shell("main", IDLE), never)], json!({}))).await.ok();
        let ready = place.until(&place.path("pods/delayed"), |pod| is_true(pod, "Ready")).await;
        let started = instant(&container(&ready, "main")["state"]["running"]["startedAt"]);
        let since = instant(&condition_of(&ready, "Ready")["lastTransitionTime"]);
        // Both are in whole seconds.
        assert!(since - started >= INITIAL_DELAY_SECONDS - 1, "ready after {} s", since - started);
        assert_eq!(restarts(&ready, "main"), 0);
        place.until(&place.path("pods/unready"), |pod| !container(pod, "main")["state"]["running"].is_null()).await;
        let kept_out = |pod: &Value| !is_true(pod, "Ready") && restarts(pod, "main") == 0;
        place.stays(&place.path("pods/unready"), QUIET_SECONDS, kept_out).await;
        for name in ["delayed", "unready"] {
            place.delete(&place.path(&format!("pods/{name}"))).await.ok();
        }
    })
}

/// Seconds of a point in time as objects write it.
fn instant(value: &Value) -> i64 {
    let time = api_machinery::time::Time::parse(text(value)).expect("a point in time");
    time.unix_seconds().unwrap_or_default()
}
