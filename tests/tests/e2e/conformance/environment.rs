//! Environment variables: from ConfigMaps and Secrets, from fields and resources, of Services, and `$(VAR)`.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::rows::{self, Expect, Row, is, lines};

/// Characters that names may have since they are no longer held to identifiers.
const PREFIXES: &[&str] = &["p-", "1.", "$_-~ ! ", "#"];

pub(crate) fn checks() -> Vec<Check> {
    let rows = [from_objects(), from_fields(), from_resources(), expansion()].into_iter().flatten().collect();
    vec![rows::check("environment", json!({}), rows, prepare), services()]
}

async fn prepare(place: Place) {
    let data = json!({"data_1": "value-1", "data_2": "value-2"});
    place.create("configmaps", &json!({"metadata": {"name": "config"}, "data": data})).await.ok();
    place.create("secrets", &json!({"metadata": {"name": "secret"}, "stringData": data})).await.ok();
}

fn from_objects() -> Vec<Row> {
    let config = json!({"configMapRef": {"name": "config"}});
    let secret = json!({"secretRef": {"name": "secret"}});
    let key = |kind: &str, object: &str| json!({"env": [{"name": "DATA", "valueFrom": {kind: {"name": object, "key": "data_1"}}}]});
    let all = |item: &str, source: &Value| {
        let mut prefixed = source.clone();
        prefixed["prefix"] = json!("p_");
        let expected = lines(&["data_1=value-1", "data_2=value-2", "p_data_1=value-1", "p_data_2=value-2"]);
        Row::command(item, &["env"], json!({"envFrom": [source, prefixed]}), expected)
    };
    let odd = |item: &str, source: &Value| {
        let sources: Vec<Value> = PREFIXES
            .iter()
            .map(|prefix| {
                let mut source = source.clone();
                source["prefix"] = json!(prefix);
                source
            })
            .collect();
        let expected = PREFIXES.iter().map(|prefix| format!("{prefix}data_1=value-1")).collect();
        Row::command(item, &["env"], json!({"envFrom": sources}), Expect::Lines(expected))
    };
    vec![
        Row::script(
            "ConfigMap should be consumable via environment variable",
            "echo $DATA",
            key("configMapKeyRef", "config"),
            is("value-1"),
        ),
        Row::script(
            "Secrets should be consumable from pods in env vars",
            "echo $DATA",
            key("secretKeyRef", "secret"),
            is("value-1"),
        ),
        all("ConfigMap should be consumable via the environment", &config),
        all("Secrets should be consumable via the environment", &secret),
        odd("ConfigMap should be consumable as environment variable names with various prefixes", &config),
        odd("Secrets should be consumable as environment variable names variable names with various prefixes", &secret),
    ]
}

fn from_fields() -> Vec<Row> {
    let fields = |item: &str, paths: &[&str], pointers: &'static [&'static str]| {
        let env: Vec<Value> = paths
            .iter()
            .enumerate()
            .map(|(n, path)| json!({"name": format!("F{n}"), "valueFrom": {"fieldRef": {"fieldPath": path}}}))
            .collect();
        let script: Vec<String> = (0..paths.len()).map(|n| format!("echo $F{n}")).collect();
        Row::script(item, &script.join("; "), json!({"env": env}), Expect::Fields(pointers))
    };
    vec![
        fields(
            "Downward API should provide pod name, namespace and IP address as env vars",
            &["metadata.name", "metadata.namespace", "status.podIP"],
            &["/metadata/name", "/metadata/namespace", "/status/podIP"],
        ),
        fields("Downward API should provide host IP as an env var", &["status.hostIP"], &["/status/hostIP"]),
        fields("Downward API should provide hostIPs as an env var", &["status.hostIPs"], &["/status/hostIPs/0/ip"]),
        fields("Downward API should provide pod UID as env vars", &["metadata.uid"], &["/metadata/uid"]),
    ]
}

fn from_resources() -> Vec<Row> {
    let variable = |resource: &str| json!({"name": resource.replace('.', "_"), "valueFrom": {"resourceFieldRef": {"resource": resource}}});
    let own = json!({
        "resources": {"requests": {"cpu": "25m", "memory": "32Mi"}, "limits": {"cpu": "1250m", "memory": "64Mi"}},
        "env": (["limits.cpu", "limits.memory", "requests.cpu", "requests.memory"].map(variable)),
    });
    vec![
        Row::script(
            "Downward API should provide container's limits.cpu/memory and requests.cpu/memory as env vars",
            "echo $limits_cpu $limits_memory $requests_cpu $requests_memory",
            own,
            is("2 67108864 1 33554432"),
        ),
        Row::script(
            "Downward API should provide default limits.cpu/memory from node allocatable",
            "echo $limits_cpu; echo $limits_memory",
            json!({"env": (["limits.cpu", "limits.memory"].map(variable))}),
            Expect::Allocatable(&["cpu", "memory"]),
        ),
    ]
}

fn expansion() -> Vec<Row> {
    let env = json!({"env": [
        {"name": "FOO", "value": "foo-value"},
        {"name": "BAR", "value": "bar-value"},
        {"name": "FOOBAR", "value": "$(FOO);;$(BAR);;$(ABSENT);;$$(FOO)"},
    ]});
    vec![
        Row::command(
            "Variable Expansion should allow composing env vars into new env vars",
            &["env"],
            env.clone(),
            lines(&["FOOBAR=foo-value;;bar-value;;$(ABSENT);;$(FOO)"]),
        ),
        Row::command(
            "Variable Expansion should allow substituting values in a container's command",
            &["sh", "-c", "FOO=wrong echo \"$(FOO) $$(echo own)\""],
            env.clone(),
            is("foo-value own"),
        ),
        Row::command(
            "Variable Expansion should allow substituting values in a container's args",
            &["sh", "-c"],
            crate::conformance::object::with(env, json!({"args": ["FOO=wrong echo \"$(FOO)\""]})),
            is("foo-value"),
        ),
    ]
}

fn services() -> Check {
    Check::new(
        "service-variables",
        &["Pods should contain environment variables for services"],
        async |place: Place| {
            let service = json!({"metadata": {"name": "foo-service"},
            "spec": {"selector": {"name": "nobody"}, "ports": [{"port": 8765, "targetPort": 8080}]}});
            let service = place.create("services", &service).await.ok();
            let ip = super::object::text(&service["spec"]["clusterIP"]).to_owned();
            let wanted = [
                format!("FOO_SERVICE_SERVICE_HOST={ip}"),
                "FOO_SERVICE_SERVICE_PORT=8765".to_owned(),
                format!("FOO_SERVICE_PORT=tcp://{ip}:8765"),
                format!("FOO_SERVICE_PORT_8765_TCP=tcp://{ip}:8765"),
                "FOO_SERVICE_PORT_8765_TCP_PROTO=tcp".to_owned(),
                "FOO_SERVICE_PORT_8765_TCP_PORT=8765".to_owned(),
                format!("FOO_SERVICE_PORT_8765_TCP_ADDR={ip}"),
            ];
            // A node may hear of the Service after it heard of the pod.
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let container = json!({"name": "main", "image": super::object::BUSYBOX, "command": ["env"]});
            let pod = super::object::pod("service-variables", &[container], json!({"restartPolicy": "Never"}));
            let (_, log) = place.result(&pod, "main").await;
            let missing: Vec<_> = wanted.iter().filter(|line| !log.lines().any(|have| have == *line)).collect();
            assert!(missing.is_empty(), "{missing:?} are not in {log}");
        },
    )
}
