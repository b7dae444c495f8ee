//! Claims in an API of this process, and drivers at real sockets.

use api_machinery::object::from_value;
use api_types::core_v1::constants::resource_health_status::{UNHEALTHY, UNKNOWN};
use base::{Rng, SystemClock, TaskGroup};
use client::fake::FakeServer;
use node_api::dra::DraVersion;
use node_api::dra::fake::{FakeDriver, POOL};
use node_api::dra::health::{DeviceHealth, DeviceIdentifier, HealthStatus};
use serde_json::{Value, json};

use super::super::{DraHandler, DriverDeps};
use super::*;
use crate::plugins::{PluginHandler as _, PluginInfo};

const DRIVER: &str = "gpu.example.com";
const CLAIMS: &str = "resource.k8s.io/v1/resourceclaims";

/// Keeps what was counted.
#[derive(Default)]
struct Counted {
    operations: Mutex<Vec<String>>,
    in_use: Mutex<BTreeMap<String, usize>>,
}

impl DynamicResourcesObserver for Counted {
    fn operated(&self, operation: &'static str, failed: bool, _: Duration) {
        self.operations.lock().push(format!("{operation} {failed}"));
    }

    fn in_use(&self, driver: &str, claims: Option<usize>) {
        match claims {
            Some(claims) => drop(self.in_use.lock().insert(driver.to_owned(), claims)),
            None => drop(self.in_use.lock().remove(driver)),
        }
    }
}

struct Bench {
    dir: tempfile::TempDir,
    server: FakeServer,
    drivers: Arc<DraDrivers>,
    healths: Arc<Healths>,
    counted: Arc<Counted>,
    claims: Arc<DynamicResources>,
    driver: FakeDriver,
    tasks: TaskGroup,
}

fn made(
    root: &Path,
    server: &FakeServer,
    drivers: &Arc<DraDrivers>,
    healths: &Arc<Healths>,
    counted: &Arc<Counted>,
) -> Arc<DynamicResources> {
    let deps = DynamicResourcesDeps {
        client: server.client(),
        drivers: drivers.clone(),
        healths: Some(healths.clone()),
        observer: counted.clone(),
        clock: SystemClock::shared(),
        extended: true,
        whose: Whose::OwnOrGroups,
        health_messages: true,
    };
    DynamicResources::new(root, deps).unwrap()
}

impl Bench {
    /// A node without a driver.
    fn bare() -> Self {
        let (dir, server, tasks) = (tempfile::tempdir().unwrap(), FakeServer::new(), TaskGroup::new("test"));
        let healths = Arc::new(Healths::new(dir.path(), SystemClock::shared()));
        let drivers = DraDrivers::new(DriverDeps {
            client: server.client(),
            node_name: "node1".into(),
            observer: None,
            healths: Some(healths.clone()),
            rng: Rng::seeded(1),
            tasks: tasks.clone(),
        });
        let counted = Arc::<Counted>::default();
        let claims = made(dir.path(), &server, &drivers, &healths, &counted);
        Self { dir, server, drivers, healths, counted, claims, driver: FakeDriver::default(), tasks }
    }

    /// A node whose driver is registered.
    async fn new() -> Self {
        let bench = Self::bare();
        bench.register(DRIVER, &bench.driver, DraVersion::V1).await;
        bench
    }

    async fn register(&self, name: &str, driver: &FakeDriver, version: DraVersion) {
        let socket = self.dir.path().join(format!("{name}.sock"));
        driver.serve(&socket, version, &self.tasks).unwrap();
        let plugin = PluginInfo {
            r#type: "DRAPlugin".into(),
            name: name.to_owned(),
            endpoint: socket.display().to_string(),
            supported_versions: vec![version.service().to_owned()],
        };
        let handler = DraHandler(self.drivers.clone());
        handler.validate(&plugin).unwrap();
        handler.register(&plugin).await.unwrap();
        assert!(handler.register(&plugin).await.unwrap_err().to_string().contains("already registered"));
    }

    /// A claim that pods of these uids may use.
    fn claim(&self, name: &str, drivers: &[&str], users: &[&str]) {
        let results: Vec<Value> = drivers
            .iter()
            .map(|driver| json!({"request": "gpu", "driver": driver, "pool": POOL, "device": format!("gpu-{name}")}))
            .collect();
        let users: Vec<Value> = users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}")},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
        });
        self.server.put(CLAIMS, claim);
    }

    /// The kubelet is started anew.
    fn restarted(&self) -> Arc<DynamicResources> {
        made(self.dir.path(), &self.server, &self.drivers, &self.healths, &self.counted)
    }
}

/// A pod with a container that refers to all of these claims.
fn pod(uid: &str, claims: &[&str]) -> Pod {
    let entries: Vec<Value> =
        claims.iter().map(|name| json!({"name": format!("e-{name}"), "resourceClaimName": name})).collect();
    let uses: Vec<Value> = claims.iter().map(|name| json!({"name": format!("e-{name}")})).collect();
    let pod = json!({
        "metadata": {"name": uid, "namespace": "ns", "uid": uid},
        "spec": {"resourceClaims": entries, "containers": [{"name": "main", "resources": {"claims": uses}}]},
    });
    from_value(&pod).unwrap()
}

fn cdi(claims: &DynamicResources, pod: &Pod) -> Result<Vec<String>, String> {
    claims.cdi_devices(pod, &pod.spec.containers[0]).map_err(|error| error.to_string())
}

#[tokio::test]
async fn claims_are_ready_while_some_pod_uses_them() {
    let bench = Bench::new().await;
    bench.claim("shared", &[DRIVER], &["p1", "p2"]);
    bench.claim("own", &[DRIVER], &["p1"]);
    let (first, second) = (pod("p1", &["shared", "own"]), pod("p2", &["shared"]));
    assert!(
        cdi(&bench.claims, &first)
            .unwrap_err()
            .starts_with("unable to get claim info for claim shared in namespace ns")
    );
    bench.claims.prepare(&first).await.unwrap();
    bench.claims.prepare(&second).await.unwrap();
    bench.claims.prepare(&first).await.unwrap();
    assert_eq!(bench.driver.asked(), ["prepare ns/shared", "prepare ns/own"], "each once");
    assert_eq!(cdi(&bench.claims, &first), Ok(vec![FakeDriver::cdi_id("shared"), FakeDriver::cdi_id("own")]));
    let given = bench.claims.of_container(&second, &second.spec.containers[0]);
    assert_eq!((given[0].claim.as_str(), given[0].devices[0].device.as_str()), ("shared", "gpu-shared"));
    assert_eq!(*bench.counted.in_use.lock(), [(DRIVER.to_owned(), 2), ("<any>".to_owned(), 2)].into());

    bench.claims.unprepare("p1").await.unwrap();
    assert_eq!(bench.driver.ready(), ["ns/shared"], "another pod uses it");
    bench.claims.keep(|| ["p2".to_owned()].into()).await;
    assert_eq!(bench.driver.ready(), ["ns/shared"]);
    bench.claims.keep(BTreeSet::new).await;
    assert!(bench.driver.ready().is_empty());
    let asked = bench.driver.asked().len();
    bench.claims.unprepare("p2").await.unwrap();
    assert_eq!(bench.driver.asked().len(), asked, "nobody uses anything");
    assert_eq!(*bench.counted.in_use.lock(), [("<any>".to_owned(), 0)].into());
    assert_eq!(bench.counted.operations.lock()[..2], ["PrepareResources false", "PrepareResources false"]);
}

#[tokio::test]
async fn a_kubelet_that_was_started_anew_knows_what_is_in_use() {
    let bench = Bench::new().await;
    bench.claim("c", &[DRIVER], &["p1"]);
    let first = pod("p1", &["c"]);
    bench.claims.prepare(&first).await.unwrap();
    let again = bench.restarted();
    assert_eq!(cdi(&again, &first), Ok(vec![FakeDriver::cdi_id("c")]), "containers of the same sandbox have it");
    again.unprepare("p1").await.unwrap();
    assert_eq!(bench.driver.asked(), ["prepare ns/c", "unprepare ns/c"]);
    assert!(bench.restarted().infos.lock().0.is_empty());
}

#[tokio::test]
async fn pods_get_no_more_than_they_may_use() {
    let bench = Bench::new().await;
    bench.claim("others", &[DRIVER], &["p9"]);
    bench.claim("elsewhere", &["nic.example.com"], &["p1"]);
    bench.claim("good", &[DRIVER], &["p1"]);
    let mut bare = json!({"metadata": {"name": "bare", "namespace": "ns", "uid": "uid-bare"}, "status": {}});
    bare["status"]["reservedFor"] = json!([{"resource": "pods", "name": "p1", "uid": "p1"}]);
    bench.server.put(CLAIMS, bare);
    let mut templated = pod("p1", &[]);
    templated.spec.resource_claims = vec![from_value(&json!({"name": "e", "resourceClaimTemplateName": "t"})).unwrap()];
    let mut foreign = templated.clone();
    foreign.status.resource_claim_statuses =
        vec![from_value(&json!({"name": "e", "resourceClaimName": "good"})).unwrap()];
    for (pod, expected) in [
        (
            pod("p1", &["good", "others"]),
            "prepare dynamic resources: pod p1 (p1) is not allowed to use ResourceClaim others (uid-others)",
        ),
        (pod("p1", &["good", "elsewhere"]), "prepare dynamic resources: DRA driver nic.example.com is not registered"),
        (pod("p1", &["bare"]), "prepare dynamic resources: claim ns/bare: not allocated"),
        (pod("p1", &["missing"]), "prepare dynamic resources: fetch ResourceClaim missing: "),
        (templated, "prepare dynamic resources: prepare resource claim: pod \"ns/p1\": ResourceClaim not created yet"),
        (foreign, "prepare dynamic resources: ResourceClaim ns/good was not created for Pod ns/p1 (Pod is not owner)"),
    ] {
        let error = bench.claims.prepare(&pod).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(bench.driver.asked().is_empty() && bench.claims.infos.lock().0.is_empty(), "nothing is noted of them");
}

#[tokio::test]
async fn pods_may_use_the_claims_of_their_group() {
    let bench = Bench::new().await;
    bench.claim("made", &[DRIVER], &[]);
    let mut claim = bench.server.objects(CLAIMS).remove(0);
    claim["status"]["reservedFor"] =
        json!([{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}]);
    claim["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "g", "uid": "uid-g", "controller": true}]);
    bench.server.put(CLAIMS, claim);
    let member = |uid: &str, group: &str| -> Pod {
        let entry = json!({"name": "e", "resourceClaimTemplateName": "t"});
        from_value(&json!({
            "metadata": {"name": uid, "namespace": "ns", "uid": uid},
            "spec": {"resourceClaims": [entry], "schedulingGroup": {"podGroupName": group}},
            "status": {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": "made"}]},
        }))
        .unwrap()
    };
    bench.claims.prepare(&member("p1", "g")).await.unwrap();
    bench.claims.prepare(&member("p2", "g")).await.unwrap();
    assert_eq!(bench.driver.asked(), ["prepare ns/made"], "once for both");
    let told = async |claims: &DynamicResources, group: &str| {
        claims.prepare(&member("p3", group)).await.unwrap_err().to_string()
    };
    let not_own = "prepare dynamic resources: ResourceClaim ns/made was not created for Pod ns/p3";
    let neither = format!("{not_own} (neither Pod nor PodGroup h is the owner)");
    assert_eq!(told(&bench.claims, "h").await, neither);
    let mut without = bench.restarted();
    Arc::get_mut(&mut without).unwrap().deps.whose = Whose::Own;
    assert_eq!(told(&without, "g").await, format!("{not_own} (Pod is not owner)"), "groups share no claims");
    bench.claims.unprepare("p1").await.unwrap();
    assert_eq!(bench.driver.ready(), ["ns/made"], "the other uses it");
    bench.claims.unprepare("p2").await.unwrap();
    assert!(bench.driver.ready().is_empty());
}

#[tokio::test]
async fn what_a_driver_refuses_is_told_and_tried_again_and_spoils_nothing() {
    let bench = Bench::new().await;
    bench.claim("good", &[DRIVER], &["p1"]);
    bench.claim("bad", &[DRIVER], &["p1"]);
    let both = pod("p1", &["good", "bad"]);
    bench.driver.refuse("bad", Some("broken"));
    let told = async |expected: &str| {
        let error = bench.claims.prepare(&both).await.unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    told("prepare dynamic resources: NodePrepareResources failed for ResourceClaim bad: broken").await;
    let only_good = pod("p1", &["good"]);
    assert_eq!(cdi(&bench.restarted(), &only_good), Ok(vec![FakeDriver::cdi_id("good")]), "it is on disk");
    bench.driver.skip(true);
    told("prepare dynamic resources: NodePrepareResources skipped 2 ResourceClaims").await;
    bench.driver.skip(false);
    bench.driver.refuse("bad", None);
    bench.claims.prepare(&both).await.unwrap();
    assert_eq!(cdi(&bench.claims, &both).unwrap().len(), 2, "nothing is listed twice");

    bench.driver.refuse("bad", Some("busy"));
    let error = bench.claims.unprepare("p1").await.unwrap_err().to_string();
    assert_eq!(error, "unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim bad: busy");
    assert!(bench.claims.infos.lock().pods().contains("p1"), "it is not over yet");
    bench.driver.refuse("bad", None);
    bench.claims.prepare(&both).await.unwrap();
    assert_eq!(bench.driver.ready().len(), 2, "what was let go of is made ready again");
    bench.claims.unprepare("p1").await.unwrap();
    assert!(bench.driver.ready().is_empty());
}

#[tokio::test]
async fn a_driver_that_hangs_holds_up_its_own_claims_only() {
    let bench = Bench::new().await;
    let other = FakeDriver::default();
    bench.register("nic.example.com", &other, DraVersion::V1beta1).await;
    bench.claim("slow", &[DRIVER], &["p1"]);
    bench.claim("quick", &["nic.example.com"], &["p2"]);
    bench.driver.hang(true);
    let (slow, quick) = (pod("p1", &["slow"]), pod("p2", &["quick"]));
    let patience = Duration::from_millis(300);
    // As a worker that is interrupted: nothing is left locked.
    assert!(tokio::time::timeout(patience, bench.claims.prepare(&slow)).await.is_err());
    assert!(bench.claims.infos.lock().pods().contains("p1"), "the driver may be doing it");
    bench.claims.prepare(&quick).await.unwrap();
    bench.driver.hang(false);
    bench.claims.unprepare("p1").await.unwrap();
    assert_eq!(bench.driver.asked(), ["prepare ns/slow", "unprepare ns/slow"]);
}

#[tokio::test]
async fn containers_have_the_requests_that_they_refer_to_and_extended_resources() {
    let bench = Bench::new().await;
    bench.claim("c", &[DRIVER], &["p1"]);
    bench.claim("extended", &[DRIVER], &["p1"]);
    let mut own = pod("p1", &["c"]);
    own.status.extended_resource_claim_status = Some(
        from_value(&json!({"resourceClaimName": "extended", "requestMappings": [
            {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}]}))
        .unwrap(),
    );
    bench.claims.prepare(&own).await.unwrap();
    let all = vec![FakeDriver::cdi_id("c"), FakeDriver::cdi_id("extended")];
    assert_eq!(cdi(&bench.claims, &own), Ok(all));
    own.spec.containers[0].resources.claims[0].request = "nic".into();
    assert_eq!(cdi(&bench.claims, &own), Ok(vec![FakeDriver::cdi_id("extended")]));
    own.spec.containers[0].name = "other".into();
    own.spec.containers[0].resources.claims.clear();
    assert_eq!(cdi(&bench.claims, &own), Ok(Vec::new()));
    assert!(bench.claims.wants(&Pod { spec: Default::default(), ..own }));
}

#[tokio::test]
async fn pods_hear_how_their_devices_are() {
    let bench = Bench::new().await;
    bench.claim("c", &[DRIVER], &["p1"]);
    let own = pod("p1", &["c"]);
    bench.claims.prepare(&own).await.unwrap();
    let health = || bench.claims.health(&own, &own.spec.containers[0]);
    assert_eq!((health()[0].name.as_str(), health()[0].resources[0].health.as_str()), ("claim:e-c", UNKNOWN));
    assert_eq!(health()[0].resources[0].resource_id, FakeDriver::cdi_id("c"));
    bench.driver.tell_health(vec![DeviceHealth {
        device: Some(DeviceIdentifier { pool_name: POOL.into(), device_name: "gpu-c".into() }),
        health: HealthStatus::Unhealthy.into(),
        message: "too hot".into(),
        ..DeviceHealth::default()
    }]);
    let told = tokio::time::timeout(Duration::from_secs(20), bench.claims.health_changed()).await;
    assert_eq!(told.unwrap(), ["p1".to_owned()].into());
    let now = health().remove(0).resources.remove(0);
    assert_eq!((now.health.as_str(), now.message.as_deref()), (UNHEALTHY, Some("too hot")));
}
