//! Running containers follow the processors that they may use.

use std::time::Duration;

use super::api_tests::{Bench, pod, start};
use super::cpu_sets::Told;

impl Bench {
    /// How often the runtime was told of processors in one pass.
    async fn told(&self, told: &mut Told) -> usize {
        drop(self.runtime.take_calls());
        self.engine.inner.keep_cpu_sets_once(told).await;
        self.runtime.take_calls().iter().filter(|call| call.operation == "update_container").count()
    }
}

#[tokio::test(start_paused = true)]
async fn the_runtime_is_told_when_the_processors_change() {
    let bench = start().await;
    bench.server.put("v1/pods", pod("web", "node1"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let mut told = Told::new();
    assert_eq!(bench.told(&mut told).await, 0, "nothing is said about processors");
    *bench.node.cpu_set.lock() = Some("0-3".to_owned());
    assert_eq!((bench.told(&mut told).await, bench.told(&mut told).await), (1, 0), "once is enough");
    *bench.node.cpu_set.lock() = Some("1-3".to_owned());
    assert_eq!(bench.told(&mut told).await, 1);
    assert_eq!(told.values().collect::<Vec<_>>(), ["1-3"]);
    let failure = node_api::cri::CriError::rpc("update_container", node_api::cri::Code::Unknown, "no");
    bench.runtime.fail_next("update_container", failure);
    *bench.node.cpu_set.lock() = Some("2".to_owned());
    assert_eq!((bench.told(&mut told).await, bench.told(&mut told).await), (1, 1), "it is asked again");
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}
