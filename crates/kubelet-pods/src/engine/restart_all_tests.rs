//! A container whose end has all of its pod begin anew.

use std::time::Duration;

use node_api::cri::fake::Script;
use serde_json::json;

use super::api_tests::{Bench, start};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn all_containers_begin_anew_in_the_same_sandbox() {
    let bench = start().await;
    bench.runtime.script("init", [Script::exits(SECOND, 0), Script::exits(SECOND, 0)]);
    bench.runtime.script("main", [Script::exits(SECOND * 30, 42), Script::forever()]);
    let rule = json!({"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}});
    let image = "docker.io/library/app:1";
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "init", "image": image}],
        "containers": [
            {"name": "main", "image": image, "restartPolicy": "Never", "restartPolicyRules": [rule]},
            {"name": "other", "image": image},
        ],
    });
    bench.put("web", spec);
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let (sandboxes, other) = (bench.runtime.sandbox_ids(), bench.own("web", "other")["containerID"].clone());
    assert_eq!(bench.is_on("web", "AllContainersRestarting"), "False");
    let anew = |bench: &Bench| {
        ["main", "other"].iter().all(|name| {
            let own = bench.own("web", name);
            own["restartCount"] == 1 && own["state"]["running"].is_object()
        })
    };
    bench.wait("anew", anew).await;
    assert_eq!(bench.runtime.sandbox_ids(), sandboxes);
    assert_ne!(bench.own("web", "other")["containerID"], other);
    assert_eq!(bench.own("web", "init")["restartCount"], 1, "init containers, too");
    assert_eq!((bench.is_on("web", "AllContainersRestarting"), bench.phase("web")), ("False".into(), "Running".into()));
    bench.end().await;
}
