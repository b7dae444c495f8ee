//! What an engine records of its work. The collector is a real server, so that time is real here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::{Direct, Rng, SystemClock, TaskGroup, TokioClock};
use node_api::cri::Images as _;
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::ImageSpec;
use tracing_otlp::collector::Collector;
use tracing_otlp::{Resource, Tracer, TracingSettings};

use super::EngineDeps;
use super::test_node::{TestNode, parts, settings, started};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {terminationGracePeriodSeconds: 1, \
                   containers: [{name: main, image: 'docker.io/library/app:1'}]}\n";

#[tokio::test]
async fn every_step_of_a_pod_is_a_trace() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("manifests")).unwrap();
    std::fs::write(root.path().join("manifests/web.yaml"), POD).unwrap();
    let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
    let collector = Collector::start(&tasks).await.unwrap();
    let tracing = TracingSettings { endpoint: Some(collector.endpoint()), sampling_rate_per_million: Some(1_000_000) };
    let resource = Resource { service: "kubelet".into(), instance: String::new(), host: "node1".into() };
    let (wall, rng) = (SystemClock::shared(), Rng::seeded(1));
    let tracer = Tracer::start(&tracing, resource, &wall, &rng, &tasks, &Direct::shared()).unwrap();
    let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
    let image = ImageSpec { image: "docker.io/library/app:1".into(), ..Default::default() };
    runtime.pull_image(image, None, None).await.unwrap();
    let (node, shared) = (Arc::new(TestNode::default()), Arc::new(runtime));
    let parts = parts(settings(root.path()), &node, None, (shared.clone(), shared), clock, &tasks);
    let engine = started(EngineDeps { tracer: Some(tracer.clone()), ..parts });

    let until = async |reached: &dyn Fn() -> bool| {
        for _ in 0..1000 {
            if reached() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never: {:#?}", engine.pods());
    };
    until(&|| engine.pods().first().is_some_and(|pod| pod.status.phase == "Running")).await;
    let uid = engine.pods()[0].metadata.uid.clone();
    std::fs::remove_file(root.path().join("manifests/web.yaml")).unwrap();
    until(&|| engine.inner.workers.is_finished(&uid)).await;
    tracer.shut_down(Duration::from_secs(5)).await;

    let spans = collector.spans();
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let (first, ending) = (of("syncPod"), of("syncTerminatingPod"));
    assert_eq!(first.attributes["k8s.pod"], "default/web-node1");
    assert_eq!(first.attributes["k8s.pod.name"], "web-node1");
    assert_eq!(first.attributes["k8s.namespace.name"], "default");
    assert_eq!((&first.attributes["k8s.pod.uid"], first.attributes["k8s.pod.update_type"].as_str()), (&uid, "create"));
    assert_eq!(ending.attributes["k8s.pod.update_type"], "kill");
    assert_eq!(of("syncTerminatedPod").resource["host.name"], "node1");
    let traces: BTreeSet<&str> = spans.iter().map(|span| span.trace.as_str()).collect();
    assert!(traces.len() >= 3 && spans.iter().all(|span| span.kind == 1), "{spans:?}");
    tasks.shutdown(Duration::from_secs(5)).await;
}
