//! Ephemeral containers, added to pods that run.

use serde_json::json;

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, container, pause, pod, shell, with};

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "Ephemeral Containers will start an ephemeral container in an existing pod",
        "Ephemeral Containers should update the ephemeral containers in an existing pod",
    ];
    vec![Check::new("ephemeral-containers", ITEMS, ephemeral)]
}

async fn ephemeral(place: Place) {
    place.ready(&pod("target", &[pause("main")], json!({}))).await;
    let path = place.path("pods/target/ephemeralcontainers");
    let first = with(shell("debugger", &format!("echo started; {IDLE}")), json!({"targetContainerName": "main"}));
    place.strategic(&path, &json!({"spec": {"ephemeralContainers": [first]}})).await.ok();
    let running =
        |name: &'static str| move |pod: &serde_json::Value| !container(pod, name)["state"]["running"].is_null();
    place.until(&place.path("pods/target"), running("debugger")).await;
    place.log_until("target", "debugger", |log| log.trim() == "started").await;
    // The processes of the target are its own as well.
    let processes = place.exec("target", "debugger", "echo marco; cat /proc/1/comm").await;
    assert_eq!(processes, "marco\npause");

    let mut whole = place.get(&path).await.ok();
    let second = shell("debugger-2", &format!("echo polo; {IDLE}"));
    if let Some(list) = whole["spec"]["ephemeralContainers"].as_array_mut() {
        list.push(second);
    }
    // The kubelet may have written the status meanwhile.
    whole["metadata"]["resourceVersion"] = json!(null);
    place.replace(&path, &whole).await.ok();
    let pod = place.until(&place.path("pods/target"), running("debugger-2")).await;
    assert_eq!(pod["spec"]["ephemeralContainers"].as_array().map(Vec::len), Some(2), "{pod}");
    place.log_until("target", "debugger-2", |log| log.trim() == "polo").await;
    place.delete(&place.path("pods/target")).await.ok();
}
