//! How many volumes of a driver fit the node: asked anew, now and then and when there were too many, of drivers that want it
//! so (KEP-4876).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::storage_v1::CSIDriver;
use client::Informer;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{CsiNodes, Drivers};
use crate::interfaces::SideError;

/// The drivers' counts.
pub struct Counts {
    drivers: Arc<Drivers>,
    nodes: Arc<CsiNodes>,
    objects: Informer<CSIDriver>,
    /// Drivers that are to be asked at once.
    asked: Mutex<BTreeSet<String>>,
    /// Somebody is to be asked at once, or a driver wants something else.
    changed: Arc<Notify>,
}

impl Counts {
    pub fn new(drivers: Arc<Drivers>, nodes: Arc<CsiNodes>, objects: Informer<CSIDriver>) -> Arc<Self> {
        let changed = Arc::new(Notify::new());
        let told = Arc::clone(&changed);
        objects.subscribe(move |_| told.notify_one());
        Arc::new(Self { drivers, nodes, objects, asked: Mutex::default(), changed })
    }

    /// Has a driver asked soon, if it wants to be asked at all.
    pub fn ask(&self, driver: &str) {
        self.asked.lock().insert(driver.to_owned());
        self.changed.notify_one();
    }

    /// Keeps the counts up to date.
    pub async fn run(self: Arc<Self>) {
        let (mut schedule, mut asking) = (Schedule::default(), FuturesUnordered::new());
        loop {
            schedule.follow(self.wanted(), std::mem::take(&mut self.asked.lock()), Instant::now());
            for driver in schedule.take_due(Instant::now()) {
                asking.push(self.update(driver));
            }
            let next = schedule.next();
            let rest = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = self.drivers.changed() => {}
                () = rest => {}
                Some(driver) = asking.next() => schedule.answered(&driver, Instant::now()),
            }
        }
    }

    /// The drivers that are here and want to be asked, and how often.
    fn wanted(&self) -> BTreeMap<String, Duration> {
        let period = |name: &str| {
            let seconds = self.objects.find("", name)?.spec.node_allocatable_update_period_seconds?;
            u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
        };
        self.drivers.names().into_iter().filter_map(|name| Some((name.clone(), period(&name)?))).collect()
    }

    /// Asks one driver, and tells the API what it says.
    async fn update(&self, driver: String) -> String {
        if let Err(error) = self.try_update(&driver).await {
            tracing::warn!(driver, %error, "Asking a driver how many volumes fit the node failed");
        }
        driver
    }

    async fn try_update(&self, driver: &str) -> Result<(), SideError> {
        let client = self.drivers.client(driver).map_err(|error| SideError(error.to_string()))?;
        let info = client.info().await.map_err(|error| SideError(error.to_string()))?;
        let told = self.nodes.recount(driver, info.max_volumes_per_node).await;
        told.map_err(|error| SideError::new(error.to_string()))
    }
}

/// When which driver is asked.
#[derive(Debug, Default)]
struct Schedule(BTreeMap<String, Turn>);

#[derive(Debug)]
struct Turn {
    period: Duration,
    /// None while it is being asked.
    due: Option<Instant>,
}

impl Schedule {
    /// Takes what drivers want now. One that has just come has told its count, so that its period begins then; another
    /// period begins anew.
    fn follow(&mut self, wanted: BTreeMap<String, Duration>, asked: BTreeSet<String>, now: Instant) {
        self.0.retain(|driver, turn| wanted.get(driver) == Some(&turn.period));
        for (driver, period) in wanted {
            self.0.entry(driver).or_insert(Turn { period, due: Some(now + period) });
        }
        for (driver, turn) in &mut self.0 {
            if asked.contains(driver) {
                turn.due = turn.due.map(|_| now);
            }
        }
    }

    /// Those whose turn it is; they are being asked from now on.
    fn take_due(&mut self, now: Instant) -> Vec<String> {
        let due = self.0.iter_mut().filter(|(_, turn)| turn.due.is_some_and(|due| due <= now));
        due.map(|(driver, turn)| {
            turn.due = None;
            driver.clone()
        })
        .collect()
    }

    fn answered(&mut self, driver: &str, now: Instant) {
        if let Some(turn) = self.0.get_mut(driver) {
            turn.due = Some(now + turn.period);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.0.values().filter_map(|turn| turn.due).min()
    }
}

#[cfg(test)]
mod tests {
    use base::{CancellationToken, TaskGroup};
    use client::fake::FakeServer;
    use client::{InformerOptions, Informers};
    use node_api::csi::fake::FakeDriver;
    use node_api::csi::v1::NodeGetInfoResponse;
    use serde_json::{Value, json};

    use super::*;

    fn wanted(periods: &[(&str, u64)]) -> BTreeMap<String, Duration> {
        periods.iter().map(|(name, seconds)| ((*name).to_owned(), Duration::from_secs(*seconds))).collect()
    }

    #[test]
    fn drivers_are_asked_as_often_as_they_want() {
        let (start, none) = (Instant::now(), BTreeSet::new);
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&[("a", 10), ("b", 30)]), none(), start);
        assert_eq!((schedule.take_due(at(9)), schedule.next()), (vec![], Some(at(10))));
        assert_eq!(schedule.take_due(at(10)), ["a"]);
        schedule.follow(wanted(&[("a", 10), ("b", 30)]), ["a".to_owned()].into(), at(11));
        assert!(schedule.take_due(at(25)).is_empty(), "nobody is asked twice at a time");
        schedule.answered("a", at(25));
        assert_eq!(schedule.next(), Some(at(30)));
        schedule.follow(wanted(&[("a", 10), ("b", 30)]), ["a".to_owned(), "c".to_owned()].into(), at(26));
        assert_eq!(schedule.take_due(at(26)), ["a"], "somebody needs to know at once");
        schedule.answered("a", at(26));
        schedule.follow(wanted(&[("a", 20)]), none(), at(27));
        assert_eq!(schedule.next(), Some(at(47)), "another period, and one driver is gone");
        schedule.answered("b", at(27));
        assert_eq!(schedule.next(), Some(at(47)));
    }

    #[tokio::test]
    async fn what_a_driver_says_is_told_to_the_api() {
        let (server, token) = (FakeServer::new(), CancellationToken::new());
        server.put("v1/nodes", json!({"metadata": {"name": "n1", "uid": "u1"}}));
        let spec = json!({"nodeAllocatableUpdatePeriodSeconds": 1000});
        server.put("storage.k8s.io/v1/csidrivers", json!({"metadata": {"name": "d.example.com"}, "spec": spec}));
        server.put("storage.k8s.io/v1/csidrivers", json!({"metadata": {"name": "e.example.com"}, "spec": {}}));
        let entry =
            |name: &str| json!({"name": name, "nodeID": "n", "topologyKeys": null, "allocatable": {"count": 5}});
        let drivers = json!([entry("d.example.com"), entry("e.example.com")]);
        let node = json!({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}});
        server.put("storage.k8s.io/v1/csinodes", node);
        let (driver, dir) = (FakeDriver::default(), tempfile::tempdir().unwrap());
        let info = |count| NodeGetInfoResponse {
            node_id: "n".into(),
            max_volumes_per_node: count,
            ..NodeGetInfoResponse::default()
        };
        driver.set_info(info(3));
        let served = driver.clone().serve(&dir.path().join("d.sock"), token.clone()).unwrap();
        let tasks = TaskGroup::new("driver");
        tasks.spawn("driver", async move { served.await.unwrap() });
        let drivers = Drivers::new(None);
        let informers = Informers::new(&server.client(), InformerOptions::default());
        let objects = informers.of::<CSIDriver>();
        let nodes = Arc::new(CsiNodes::new(&server.client(), "n1"));
        let counts = Counts::new(Arc::clone(&drivers), nodes, objects);
        informers.start();
        informers.wait_synced().await;
        tasks.spawn_cancellable("counts", Arc::clone(&counts).run());
        drivers.put_for_test("d.example.com", &dir.path().join("d.sock"));
        drivers.put_for_test("e.example.com", &dir.path().join("d.sock"));
        let told = || -> Vec<Value> {
            let node = server.objects("storage.k8s.io/v1/csinodes").remove(0);
            node["spec"]["drivers"].as_array().unwrap().iter().map(|own| own["allocatable"]["count"].clone()).collect()
        };
        for expected in [3, 4] {
            driver.set_info(info(expected));
            counts.ask("d.example.com");
            counts.ask("e.example.com");
            while told()[0] != expected {
                tokio::task::yield_now().await;
            }
            assert_eq!(told()[1], 5, "this driver does not want to be asked");
        }
        token.cancel();
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}
