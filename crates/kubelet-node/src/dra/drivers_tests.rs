//! Drivers that come and go at real sockets.

use base::Rng;
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
        let drivers = DraDrivers::new(DriverDeps {
            client: server.client(),
            node_name: "node1".into(),
            observer: None,
            healths: None,
            rng: Rng::seeded(1),
            tasks: tasks.clone(),
        });
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

#[tokio::test(start_paused = true)]
async fn what_a_driver_published_goes_when_it_does_not_come_back() {
    let (tasks, process) = (TaskGroup::new("test"), TaskGroup::new("driver"));
    let bench = Bench::new(&tasks);
    bench.drivers.start();
    let driver = FakeDriver::default();
    driver.serve(Path::new(&bench.endpoint("a")), DraVersion::V1, &process).unwrap();
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
    driver.serve(Path::new(&bench.endpoint("a")), DraVersion::V1, &again).unwrap();
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
    let (old, new) = (FakeDriver::default(), FakeDriver::default());
    old.serve(Path::new(&bench.endpoint("old")), DraVersion::V1, &tasks).unwrap();
    new.serve(Path::new(&bench.endpoint("new")), DraVersion::V1, &process).unwrap();
    bench.drivers.add("gpu", &bench.endpoint("old"), DraVersion::V1).unwrap();
    bench.drivers.add("gpu", &bench.endpoint("new"), DraVersion::V1).unwrap();
    let error = bench.drivers.add("gpu", &bench.endpoint("new"), DraVersion::V1).unwrap_err().to_string();
    assert_eq!(error, format!("endpoint {} already registered for DRA driver plugin gpu", bench.endpoint("new")));
    bench.until_connected(&[true, true]).await;
    let claim = |name: &str| {
        vec![node_api::dra::v1::Claim { namespace: "ns".into(), uid: name.to_owned(), name: name.to_owned() }]
    };
    bench.drivers.client("gpu").unwrap().prepare(claim("1")).await.unwrap();
    process.shutdown(Duration::from_secs(1)).await;
    bench.until_connected(&[true, false]).await;
    bench.drivers.client("gpu").unwrap().prepare(claim("2")).await.unwrap();
    assert_eq!((new.asked(), old.asked()), (vec!["prepare ns/1".to_owned()], vec!["prepare ns/2".to_owned()]));
    tasks.shutdown(Duration::from_secs(1)).await;
}
