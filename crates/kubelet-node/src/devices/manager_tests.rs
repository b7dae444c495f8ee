//! Plugins of devices at real sockets, that behave and that do not.

use std::collections::VecDeque;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus};
use base::SystemClock;
use futures_util::stream::BoxStream;
use node_api::device_plugin::v1beta1::device_plugin_server::{DevicePlugin, DevicePluginServer};
use node_api::device_plugin::v1beta1::registration_client::RegistrationClient;
use node_api::device_plugin::v1beta1::*;
use node_api::tonic::{self, Request, Response, Status, transport::Server};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::{UnixListenerStream, WatchStream};

use super::super::{DeviceHandler, serve};
use super::*;
use crate::cpus::{CpuSettings, Cpus, Processors};
use crate::memory::{MemoryNodes, MemorySettings};
use crate::plugins::{PluginHandler as _, PluginInfo};
use crate::topology::fixtures::Counted as ResourcesCounted;
use crate::topology::{AdmitError, TopologyManager, TopologyParts, TopologySettings};

const NAME: &str = "example.com/gpu";

#[derive(Clone)]
struct Fake {
    devices: watch::Sender<Vec<(&'static str, &'static str)>>,
    options: DevicePluginOptions,
    /// What it prefers, whatever it is offered.
    preferred: Vec<String>,
    /// Errors of the next calls to allocate.
    refusals: Arc<Mutex<VecDeque<&'static str>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// Its list of devices ends with this.
    end: CancellationToken,
}

impl Fake {
    fn new(devices: &[(&'static str, &'static str)]) -> Self {
        Self {
            devices: watch::channel(devices.to_vec()).0,
            options: DevicePluginOptions::default(),
            preferred: Vec::new(),
            refusals: Arc::default(),
            asked: Arc::default(),
            end: CancellationToken::new(),
        }
    }
}

#[tonic::async_trait]
impl DevicePlugin for Fake {
    type ListAndWatchStream = BoxStream<'static, Result<ListAndWatchResponse, Status>>;

    async fn get_device_plugin_options(&self, _: Request<Empty>) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(self.options))
    }

    async fn list_and_watch(&self, _: Request<Empty>) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let list = |devices: Vec<(&str, &str)>| {
            let device = |(id, health): (&str, &str)| {
                let topology = Some(TopologyInfo { nodes: vec![NumaNode { id: 1 }] });
                Device { id: id.to_owned(), health: health.to_owned(), topology }
            };
            Ok(ListAndWatchResponse { devices: devices.into_iter().map(device).collect() })
        };
        Ok(Response::new(
            WatchStream::new(self.devices.subscribe()).map(list).take_until(self.end.clone().cancelled_owned()).boxed(),
        ))
    }

    async fn get_preferred_allocation(
        &self,
        _: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let one = ContainerPreferredAllocationResponse { device_ids: self.preferred.clone() };
        Ok(Response::new(PreferredAllocationResponse { container_responses: vec![one] }))
    }

    async fn allocate(&self, request: Request<AllocateRequest>) -> Result<Response<AllocateResponse>, Status> {
        let ids = request.into_inner().container_requests.remove(0).devices_ids.join(",");
        self.asked.lock().push(format!("allocate {ids}"));
        if let Some(why) = self.refusals.lock().pop_front() {
            return Err(Status::internal(why));
        }
        let one = ContainerAllocateResponse {
            envs: [("GPUS".to_owned(), ids)].into(),
            cdi_devices: vec![CdiDevice { name: "example.com/gpu=all".into() }],
            ..Default::default()
        };
        Ok(Response::new(AllocateResponse { container_responses: vec![one] }))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        self.asked.lock().push(format!("start {}", request.into_inner().devices_ids.join(",")));
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

#[derive(Default)]
struct Counted(Mutex<Vec<String>>);

impl DeviceCounts for Counted {
    fn registered(&self, resource: &str) {
        self.0.lock().push(format!("registered {resource}"));
    }

    fn allocated(&self, resource: &str, _: Duration) {
        self.0.lock().push(format!("allocated {resource}"));
    }
}

/// A manager that gives these devices and nothing else.
fn manager(directory: &Path, devices: Arc<Devices>) -> Arc<TopologyManager> {
    let counts = Arc::new(ResourcesCounted::default());
    TopologyManager::new(TopologyParts {
        settings: TopologySettings::default(),
        topology: sys::topology::Topology::default(),
        devices,
        cpus: Cpus::new(directory, CpuSettings::NONE, &Processors::default(), counts.clone()).unwrap(),
        memory: MemoryNodes::new(directory, &MemorySettings::default(), counts.clone()),
        pod_level: false,
        counts,
        clock: SystemClock::shared(),
    })
}

/// Whether a pod is given something that it had not.
async fn give(manager: &TopologyManager, pod: &Pod) -> Result<bool, AdmitError> {
    manager.allocate(pod).await.map(|before| before.is_some())
}

struct Bench {
    dir: tempfile::TempDir,
    manager: Arc<TopologyManager>,
    devices: Arc<Devices>,
    counted: Arc<Counted>,
    tasks: TaskGroup,
}

fn deps(counts: &Arc<Counted>, tasks: &TaskGroup) -> DevicesDeps {
    DevicesDeps { counts: counts.clone(), clock: SystemClock::shared(), tasks: tasks.clone(), extended: true }
}

impl Bench {
    fn new() -> Self {
        let (dir, counted, tasks) = (tempfile::tempdir().unwrap(), Arc::<Counted>::default(), TaskGroup::new("test"));
        let devices = Devices::new(dir.path(), deps(&counted, &tasks));
        let manager = manager(dir.path(), devices.clone());
        Self { dir, manager, devices, counted, tasks }
    }

    /// A plugin at a socket, until the group that is returned ends.
    fn start(&self, fake: &Fake, socket: &str) -> TaskGroup {
        let listener = UnixListener::bind(self.dir.path().join(socket)).unwrap();
        let (service, group) = (DevicePluginServer::new(fake.clone()), TaskGroup::new("plugin"));
        group.spawn_cancellable("plugin", async move {
            let served = Server::builder().add_service(service);
            drop(served.serve_with_incoming(UnixListenerStream::new(listener)).await);
        });
        group
    }

    /// A plugin that has registered and whose devices are known.
    async fn with(fake: &Fake) -> (Self, TaskGroup) {
        let bench = Self::new();
        let group = bench.start(fake, "gpu.sock");
        bench.devices.add_plugin(NAME, &bench.dir.path().join("gpu.sock")).await.unwrap();
        bench.sees(Amount { capacity: 2, allocatable: 2 }).await;
        (bench, group)
    }

    async fn sees(&self, expected: Amount) {
        let seen = async {
            while self.devices.amounts().get(NAME) != Some(&expected) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
        assert!(seen.is_ok(), "{expected:?} is not {:?}", self.devices.amounts());
    }

    /// The next kubelet at the same directory.
    fn restarted(&self) -> Arc<TopologyManager> {
        let next = Devices::new(self.dir.path(), deps(&self.counted, &self.tasks));
        let next = manager(self.dir.path(), next);
        next.restore().unwrap();
        next
    }
}

fn two() -> Fake {
    Fake::new(&[("0", "Healthy"), ("1", "Healthy")])
}

fn pod(uid: &str, containers: &[(&str, i64)]) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid = uid.into();
    for (name, count) in containers {
        let mut container = Container { name: (*name).into(), ..Container::default() };
        container.resources.limits.insert(NAME.into(), Quantity::parse(&count.to_string()).unwrap());
        let list = if name.starts_with("init") { &mut pod.spec.init_containers } else { &mut pod.spec.containers };
        list.push(container);
    }
    pod
}

#[tokio::test]
async fn containers_get_devices_and_what_they_need_for_them() {
    let fake = Fake { options: DevicePluginOptions { pre_start_required: true, ..Default::default() }, ..two() };
    let (bench, _plugin) = Bench::with(&fake).await;
    let asking = pod("u1", &[("main", 1)]);
    assert!(give(&bench.manager, &asking).await.unwrap());
    assert!(!give(&bench.manager, &asking).await.unwrap(), "once is enough");
    let inputs = bench.devices.inputs("u1", "main").await.unwrap();
    assert_eq!((inputs.env["GPUS"].as_str(), inputs.cdi_devices), ("0", vec!["example.com/gpu=all".to_owned()]));
    assert_eq!(*fake.asked.lock(), ["allocate 0", "start 0"]);
    let own = ContainerDevices { resource: NAME.into(), ids: vec!["0".into()], nodes: vec![1] };
    assert_eq!(bench.devices.of_container("u1", "main"), [own]);
    assert_eq!(bench.devices.allocatable()[0].ids, ["0", "1"]);
    assert_eq!(*bench.counted.0.lock(), [format!("registered {NAME}"), format!("allocated {NAME}")]);
    assert!(bench.devices.inputs("u1", "other").await.unwrap() == DeviceInputs::default());

    let next = bench.restarted();
    assert!(!give(&next, &asking).await.unwrap(), "what runs goes on while the plugin has not come back");
    assert_eq!(next.devices.inputs("u1", "main").await.unwrap().env["GPUS"], "0");
    let refused = give(&next, &pod("u2", &[("main", 1)])).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot allocate unregistered device example.com/gpu");
    bench.manager.keep(&BTreeSet::new());
    assert!(bench.restarted().devices.of_container("u1", "main").is_empty(), "who is gone has none any more");
}

#[tokio::test]
async fn who_is_refused_keeps_nothing() {
    let fake = two();
    let (bench, _plugin) = Bench::with(&fake).await;
    let refused = give(&bench.manager, &pod("u1", &[("a", 1), ("b", 2)])).await.unwrap_err();
    let text = "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1";
    assert_eq!(refused.to_string(), text);
    fake.refusals.lock().push_back("out of order");
    let refused = give(&bench.manager, &pod("u1", &[("a", 1)])).await.unwrap_err();
    assert_eq!(refused.to_string(), "rpc error: code = Internal desc = out of order");
    assert!(give(&bench.manager, &pod("u2", &[("a", 2)])).await.unwrap(), "all are free");
    bench.manager.keep(&BTreeSet::new());
    assert!(
        give(&bench.manager, &pod("u3", &[("init-a", 2), ("b", 1), ("c", 1)])).await.unwrap(),
        "used one after the other"
    );
    assert!(give(&bench.manager, &pod("u4", &[])).await.is_ok());
}

#[tokio::test]
async fn what_a_claim_serves_is_not_asked_of_plugins() {
    let fake = two();
    let (bench, _plugin) = Bench::with(&fake).await;
    let mut asking = pod("u1", &[("a", 1), ("b", 1)]);
    asking.status.extended_resource_claim_status = Some(PodExtendedResourceClaimStatus {
        request_mappings: vec![ContainerExtendedResourceRequest {
            container_name: "a".into(),
            resource_name: NAME.into(),
            request_name: "container-0-request-0".into(),
        }],
        resource_claim_name: "claim".into(),
    });
    assert!(give(&bench.manager, &asking).await.unwrap());
    assert_eq!(*fake.asked.lock(), ["allocate 0"], "only for the other container");
    assert!(bench.devices.of_container("u1", "a").is_empty());
    assert_eq!(bench.devices.of_container("u1", "b").len(), 1);
}

#[tokio::test]
async fn plugins_may_prefer_devices_and_cannot_prefer_others() {
    let cases: [(&[&str], &str); 3] = [(&["1"], "allocate 1"), (&["7"], "allocate 0"), (&["0", "1"], "allocate 0")];
    for (preferred, expected) in cases {
        let options = DevicePluginOptions { get_preferred_allocation_available: true, ..Default::default() };
        let preferred: Vec<String> = preferred.iter().map(ToString::to_string).collect();
        let fake = Fake { options, preferred: preferred.clone(), ..two() };
        let (bench, _plugin) = Bench::with(&fake).await;
        give(&bench.manager, &pod("u1", &[("main", 1)])).await.unwrap();
        assert_eq!(*fake.asked.lock(), [expected], "{preferred:?}");
    }
}

#[tokio::test]
async fn what_plugins_say_later_counts_and_a_plugin_that_ends_has_nothing_to_give() {
    let fake = two();
    let (bench, _plugin) = Bench::with(&fake).await;
    fake.devices.send_replace(vec![("0", "Healthy"), ("1", "Unhealthy"), ("2", "Healthy")]);
    bench.sees(Amount { capacity: 3, allocatable: 2 }).await;
    fake.end.cancel();
    bench.sees(Amount { capacity: 3, allocatable: 0 }).await;
    assert!(give(&bench.manager, &pod("u1", &[("main", 1)])).await.is_err());
    let _again = bench.start(&two(), "again.sock");
    bench.devices.add_plugin(NAME, &bench.dir.path().join("again.sock")).await.unwrap();
    bench.sees(Amount { capacity: 2, allocatable: 2 }).await;
}

#[tokio::test]
async fn registrations_are_checked() {
    let bench = Bench::new();
    std::fs::write(bench.dir.path().join("kept"), "").unwrap();
    drop(UnixListener::bind(bench.dir.path().join("stale.sock")).unwrap());
    let devices = Arc::clone(&bench.devices);
    let token = bench.tasks.token();
    bench.tasks.spawn("registry", async move { serve(devices, token).await.unwrap() });
    let own = bench.dir.path().join("kubelet.sock");
    while !own.exists() {
        tokio::task::yield_now().await;
    }
    assert!(bench.dir.path().join("DEPRECATION").exists() && bench.dir.path().join("kept").exists());
    assert!(!bench.dir.path().join("stale.sock").exists());
    let _plugin = bench.start(&two(), "gpu.sock");
    let request = |version: &str, resource: &str, endpoint: &str| RegisterRequest {
        version: version.into(),
        endpoint: endpoint.into(),
        resource_name: resource.into(),
        options: None,
    };
    let cases = [
        (
            request("v1alpha", NAME, "gpu.sock"),
            "requested API version \"v1alpha\" is not supported by kubelet. Supported version is [\"v1beta1\"]",
        ),
        (request("v1beta1", "cpu", "gpu.sock"), "the ResourceName \"cpu\" is invalid"),
        (
            request("v1beta1", NAME, "../gpu.sock"),
            "failed to dial device plugin: the endpoint \"../gpu.sock\" is invalid",
        ),
        (request("v1beta1", NAME, "none.sock"), "failed to dial device plugin: "),
        (request("v1beta1", NAME, "gpu.sock"), ""),
    ];
    for (request, expected) in cases {
        let channel = tonic::transport::Endpoint::try_from(format!("unix://{}", own.display())).unwrap();
        let answer = RegistrationClient::new(channel.connect_lazy()).register(request.clone()).await;
        let said = answer.err().map(|status| status.message().to_owned()).unwrap_or_default();
        assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{request:?}: {said}");
    }
    bench.sees(Amount { capacity: 2, allocatable: 2 }).await;
    let plugin = |name: &str, versions: &[&str]| PluginInfo {
        name: name.into(),
        supported_versions: versions.iter().map(ToString::to_string).collect(),
        ..PluginInfo::default()
    };
    let handler = DeviceHandler(Arc::clone(&bench.devices));
    let refused = |plugin: &PluginInfo| handler.validate(plugin).unwrap_err().to_string();
    let text = "manager version, v1beta1, is not among plugin supported versions [v1]";
    assert_eq!(refused(&plugin(NAME, &["v1"])), text);
    let text = "invalid name of device plugin socket: the ResourceName \"gpu\" is invalid";
    assert_eq!(refused(&plugin("gpu", &["v1beta1"])), text);
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}
