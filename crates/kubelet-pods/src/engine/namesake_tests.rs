//! A pod that comes under the name of one that is gone, or about to go, has nothing of it but the name.

use std::time::Duration;

use node_api::cri::fake::Script;
use node_api::cri::{Code, CriError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::api_tests::{Bench, start};

impl Bench {
    /// Another pod in the place of the one named `web`.
    fn replace(&self, spec: Value) {
        self.server.remove("v1/pods", "default", "web");
        self.put_as("web", "second", spec);
    }

    fn waiting(&self) -> Value {
        self.own("web", "main")["state"]["waiting"].clone()
    }

    fn told_of_mounts(&self) -> usize {
        self.node.events.lock().iter().filter(|event| event.contains("FailedMount")).count()
    }
}

#[tokio::test(start_paused = true)]
async fn crashes_of_a_namesake_do_not_count() {
    let bench = start().await;
    bench.runtime.script("main", [Script::exits(Duration::from_secs(1), 1)]);
    bench.put("web", json!({"restartPolicy": "Always"}));
    bench.wait("crashed", |bench| bench.restarts("web") >= 4).await;
    bench.replace(json!({"restartPolicy": "Always"}));
    bench.wait("backs off", |bench| bench.waiting()["reason"] == "CrashLoopBackOff").await;
    let message = bench.waiting()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("back-off 10s "), "{message}");
    assert_eq!(bench.restarts("web"), 1);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_pulls_of_a_namesake_do_not_count() {
    let bench = start().await;
    let image = "docker.io/library/late:1";
    let spec = json!({"restartPolicy": "Always", "containers": [{"name": "main", "image": image}]});
    bench.runtime.set_pull_error(image, Some(CriError::rpc("pull_image", Code::NotFound, "no such image")));
    bench.put("web", spec.clone());
    bench.wait("backs off", |bench| bench.waiting()["reason"] == "ImagePullBackOff").await;
    sleep(Duration::from_secs(100)).await;
    bench.runtime.set_pull_error(image, None);
    bench.replace(spec);
    let began = Instant::now();
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_mounts_of_a_namesake_do_not_count() {
    let bench = start().await;
    *bench.node.mount_error.lock() = Some("no such volume".into());
    bench.put("web", json!({}));
    sleep(Duration::from_secs(100)).await;
    bench.replace(json!({}));
    let before = bench.told_of_mounts();
    sleep(Duration::from_secs(20)).await;
    let told = bench.told_of_mounts() - before;
    assert!((5..=7).contains(&told), "{told}");
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_namesake_is_not_ones_own() {
    let bench = start().await;
    let spec = json!({"restartPolicy": "Always", "activeDeadlineSeconds": 30});
    bench.put("web", spec.clone());
    bench.wait("ended", |bench| bench.phase("web") == "Failed").await;
    bench.replace(spec);
    let began = Instant::now();
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.wait("ended", |bench| bench.phase("web") == "Failed").await;
    assert!(began.elapsed() >= Duration::from_secs(29), "{:?}", began.elapsed());
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_namesake_is_not_ones_own() {
    let bench = start().await;
    bench.runtime.script("main", [Script { on_stop: None, ..Script::forever() }]);
    let spec = json!({"restartPolicy": "Always", "terminationGracePeriodSeconds": 30});
    bench.put("web", spec.clone());
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let first = bench.own("web", "main")["containerID"].clone();
    bench.replace(spec);
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        assert!(matches!(bench.phase("web").as_str(), "Pending" | "Running"), "{}", bench.phase("web"));
        assert_ne!(bench.own("web", "main")["containerID"], first);
    }
    assert_eq!((bench.phase("web"), bench.runtime.container_ids().len()), ("Running".into(), 1));
    assert_eq!(bench.engine.running_pods().await.len(), 1);
    bench.end().await;
}
