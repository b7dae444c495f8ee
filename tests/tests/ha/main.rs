//! Two of everything over one store, on paused time: what one API server writes the other shows at once, nothing is
//! given twice, one of two controller managers works and its successor goes on, and a server that is cut off from the
//! store hurts nobody but those who ask it.

mod allocation;
mod cut_off;
mod leaders;
mod quota;
mod reads;

use std::sync::Arc;
use std::time::Duration;

use testing::{Cluster, RealEtcd, Shape, Store};
use tokio::time::Instant;

/// Plays a test over memory and over an etcd of its own.
#[expect(clippy::print_stdout, reason = "a failed test shows on which store")]
fn doubled(test: impl AsyncFn(&Cluster)) {
    let etcd = RealEtcd::alone().expect("a runtime for etcd").map(Store::Etcd);
    for store in [Some(Store::Memory), etcd].into_iter().flatten() {
        println!("on {store}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let cluster = Cluster::over(&store, Shape::DOUBLE, 1, |_| {}).await.expect("the cluster starts");
            test(&cluster).await;
            cluster.shutdown().await;
        });
    }
}

/// Waits until a condition holds.
async fn until(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Runs the same many times at once.
async fn at_once<T>(work: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(work).await
}

/// A Deployment of pods that do nothing.
fn deployment(name: &str, replicas: i32) -> api_types::apps_v1::Deployment {
    let mut deployment = api_types::apps_v1::Deployment::default();
    deployment.metadata.name = name.to_owned();
    deployment.spec.replicas = Some(replicas);
    let labels = std::collections::BTreeMap::from([("app".to_owned(), name.to_owned())]);
    deployment.spec.selector.get_or_insert_default().match_labels = labels.clone();
    deployment.spec.template.metadata.labels = labels;
    deployment.spec.template.spec.containers.push(api_types::core_v1::Container {
        name: "main".into(),
        image: "registry.example/web:1".into(),
        ..Default::default()
    });
    deployment
}

/// Clients of both servers.
fn both(cluster: &Cluster) -> [Arc<client::Client>; 2] {
    [0, 1].map(|number| Arc::new(cluster.admin_of(number).expect("two servers")))
}
