//! Drivers that come and go at real sockets.

use client::fake::FakeServer;
use node_api::dra::fake::FakeDriver;

use super::*;

struct Bench {
    dir: tempfile::TempDir,
    server: FakeServer,
    drivers: Arc<DraDrivers>,
}

impl Bench {
    fn new(tasks: &TaskGroup) -> Self {
        let (dir, server) = (tempfile::tempdir().unwrap(), FakeServer::new());
        let drivers = super::super::fake::drivers_of(server.client(), "node1", tasks);
        Self { dir, server, drivers }
    }

    fn endpoint(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn removals(&self) -> Vec<String> {
        self.server.requests().into_iter().filter(|request| request.starts_with("DELETE")).collect()
    }

    fn connected(&self) -> Vec<bool> {
        let drivers = self.drivers.drivers.lock();
        drivers.values().flat_map(|driver| &driver.instances).map(|instance| instance.connected).collect()
    }

    /// Lets tasks and sockets work, without time going by but for a little.
    async fn until_connected(&self, expected: &[bool]) {
        for _ in 0..2000 {
            if self.connected() == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{:?} is not {expected:?}", self.connected());
    }
}

/// A process that listens at a socket and says nothing; its connections end with it.
fn listen(socket: &str, process: &TaskGroup) {
    let listener = tokio::net::UnixListener::bind(socket).unwrap();
    process.spawn_cancellable("driver", async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            open.push(connection);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn what_a_driver_published_goes_when_it_does_not_come_back() {
    let (tasks, process) = (TaskGroup::new("test"), TaskGroup::new("driver"));
    let bench = Bench::new(&tasks);
    bench.drivers.start();
    listen(&bench.endpoint("a"), &process);
    bench.drivers.add("gpu", &bench.endpoint("a"), DraVersion::V1).unwrap();
    bench.until_connected(&[true]).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(bench.removals().len(), 1, "those of the node once, at the start: {:?}", bench.removals());
    assert!(bench.removals()[0].contains("node1") && !bench.removals()[0].contains("spec.driver"));

    process.shutdown(Duration::from_secs(1)).await;
    bench.until_connected(&[false]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.removals().len(), 1, "it may come back");
    let again = TaskGroup::new("again");
    std::fs::remove_file(bench.endpoint("a")).unwrap();
    listen(&bench.endpoint("a"), &again);
    bench.until_connected(&[true]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.removals().len(), 1, "it has");

    bench.drivers.remove("gpu", &bench.endpoint("a"));
    assert_eq!(bench.drivers.client("gpu").map(drop).unwrap_err().to_string(), "DRA driver gpu is not registered");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(bench.removals().len(), 2);
    assert!(bench.removals()[1].contains("spec.driver"), "{:?}", bench.removals());
    assert!(bench.drivers.drivers.lock().is_empty());
    again.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn of_two_instances_the_newest_that_is_there_is_asked() {
    let (tasks, process) = (TaskGroup::new("test"), TaskGroup::new("driver"));
    let bench = Bench::new(&tasks);
    let old = FakeDriver::default();
    old.serve(Path::new(&bench.endpoint("old")), DraVersion::V1, &tasks).unwrap();
    listen(&bench.endpoint("new"), &process);
    bench.drivers.add("gpu", &bench.endpoint("old"), DraVersion::V1).unwrap();
    bench.drivers.add("gpu", &bench.endpoint("new"), DraVersion::V1).unwrap();
    let error = bench.drivers.add("gpu", &bench.endpoint("new"), DraVersion::V1).unwrap_err().to_string();
    assert_eq!(error, format!("endpoint {} already registered for DRA driver plugin gpu", bench.endpoint("new")));
    bench.until_connected(&[true, true]).await;
    let claim = || vec![node_api::dra::v1::Claim { namespace: "ns".into(), uid: "u".into(), name: "c".into() }];
    let unanswered = bench.drivers.client("gpu").unwrap();
    let asked = tokio::time::timeout(Duration::from_millis(300), unanswered.prepare(claim()));
    assert!(asked.await.is_err() && old.asked().is_empty(), "the new one is asked, which says nothing");
    process.shutdown(Duration::from_secs(1)).await;
    bench.until_connected(&[true, false]).await;
    bench.drivers.client("gpu").unwrap().prepare(claim()).await.unwrap();
    assert_eq!(old.asked(), ["prepare ns/c"]);
    tasks.shutdown(Duration::from_secs(1)).await;
}
