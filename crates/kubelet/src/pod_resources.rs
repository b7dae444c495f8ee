//! The pod resources API: at a socket of its own, for whoever watches over devices.

use std::path::Path;
use std::sync::Arc;

use api_types::core_v1::{Container, Pod};
use base::{CancellationToken, SharedClock};
use client::TokenBucket;
use component_base::metrics::Counters;
use kubelet_node::devices;
use kubelet_node::dra::{ClaimDevice, ContainerClaim, DynamicResources};
use kubelet_node::memory::Block;
use kubelet_node::topology::TopologyManager;
use node_api::pod_resources::v1::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, CdiDevice, ClaimResource, ContainerDevices,
    ContainerMemory, ContainerResources, DynamicResource, GetPodResourcesRequest, GetPodResourcesResponse,
    ListPodResourcesRequest, ListPodResourcesResponse, NumaNode, PodResources, TopologyInfo,
};
use node_api::pod_resources::{self, PodResourcesLister};
use node_api::tonic::{self, Request, Response, Status};
use tokio::net::UnixListener;

use crate::metrics::KubeletMetrics;

/// Requests a second, and how many at once, to each of the kubelet's own sockets.
pub(crate) const RATE: f64 = 100.0;
pub(crate) const BURST: u32 = 10;
const VERSION: &str = "v1";

/// The pods that take up the node's resources.
pub(crate) type ActivePods = Box<dyn Fn() -> Vec<Arc<Pod>> + Send + Sync>;

/// Who answers.
pub(crate) struct Lister {
    pub(crate) pods: ActivePods,
    pub(crate) topology: Arc<TopologyManager>,
    /// None without an API server.
    pub(crate) claims: Option<Arc<DynamicResources>>,
    pub(crate) metrics: Arc<KubeletMetrics>,
    pub(crate) clock: SharedClock,
    limit: TokenBucket,
}

impl Lister {
    pub(crate) fn new(
        pods: ActivePods,
        topology: Arc<TopologyManager>,
        claims: Option<Arc<DynamicResources>>,
        metrics: Arc<KubeletMetrics>,
        clock: SharedClock,
    ) -> Self {
        let limit = TokenBucket::new(RATE, BURST, clock.monotonic());
        Self { pods, topology, claims, metrics, clock, limit }
    }

    fn admit(&self, asked: &Counters, failed: &Counters) -> Result<(), Status> {
        self.metrics.pod_resources.with(&[VERSION]).inc();
        asked.with(&[VERSION]).inc();
        if self.limit.try_take(self.clock.monotonic()) {
            return Ok(());
        }
        failed.with(&[VERSION]).inc();
        Err(Status::resource_exhausted("rejected by rate limit"))
    }

    fn of_pod(&self, pod: &Pod) -> PodResources {
        let sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let containers = pod.spec.init_containers.iter().filter(sidecar).chain(&pod.spec.containers);
        let resources = containers.map(|container| {
            let (uid, name) = (&pod.metadata.uid, &container.name);
            let topology = &self.topology;
            let claims = self.claims.as_ref().map(|claims| claims.of_container(pod, container)).unwrap_or_default();
            ContainerResources {
                name: name.clone(),
                devices: topology.devices.of_container(uid, name).into_iter().map(message).collect(),
                cpu_ids: topology.cpus.exclusive(uid, name).iter().map(i64::from).collect(),
                memory: topology.memory.blocks(uid, name).into_iter().map(memory).collect(),
                dynamic_resources: claims.into_iter().map(dynamic).collect(),
            }
        });
        PodResources {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            containers: resources.collect(),
        }
    }
}

fn message(devices: devices::ContainerDevices) -> ContainerDevices {
    ContainerDevices { resource_name: devices.resource, device_ids: devices.ids, topology: near(devices.nodes) }
}

fn memory(block: Block) -> ContainerMemory {
    let topology = near(block.nodes.iter().map(i64::from).collect());
    ContainerMemory { memory_type: block.kind, size: block.bytes, topology }
}

/// Nodes of memory, where there are any.
fn near(nodes: Vec<i64>) -> Option<TopologyInfo> {
    let nodes: Vec<NumaNode> = nodes.into_iter().map(|id| NumaNode { id }).collect();
    (!nodes.is_empty()).then_some(TopologyInfo { nodes })
}

fn dynamic(claim: ContainerClaim) -> DynamicResource {
    let resource = |device: ClaimDevice| ClaimResource {
        cdi_devices: device.cdi_ids.into_iter().map(|name| CdiDevice { name }).collect(),
        driver_name: device.driver,
        pool_name: device.pool,
        device_name: device.device,
        share_id: device.share_id,
    };
    DynamicResource {
        claim_name: claim.claim,
        claim_namespace: claim.namespace,
        claim_resources: claim.devices.into_iter().map(resource).collect(),
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Lister {
    async fn list(&self, _: Request<ListPodResourcesRequest>) -> Result<Response<ListPodResourcesResponse>, Status> {
        self.admit(&self.metrics.pod_resources_list, &self.metrics.pod_resources_list_errors)?;
        let pod_resources = (self.pods)().iter().map(|pod| self.of_pod(pod)).collect();
        Ok(Response::new(ListPodResourcesResponse { pod_resources }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        let metrics = &self.metrics;
        self.admit(&metrics.pod_resources_allocatable, &metrics.pod_resources_allocatable_errors)?;
        let topology = &self.topology;
        Ok(Response::new(AllocatableResourcesResponse {
            devices: topology.devices.allocatable().into_iter().map(message).collect(),
            cpu_ids: topology.cpus.allocatable().iter().map(i64::from).collect(),
            memory: topology.memory.allocatable().into_iter().map(memory).collect(),
        }))
    }

    async fn get(&self, request: Request<GetPodResourcesRequest>) -> Result<Response<GetPodResourcesResponse>, Status> {
        self.admit(&self.metrics.pod_resources_get, &self.metrics.pod_resources_get_errors)?;
        let GetPodResourcesRequest { pod_name, pod_namespace } = request.into_inner();
        let pods = (self.pods)();
        let found = pods.iter().find(|pod| pod.metadata.name == pod_name && pod.metadata.namespace == pod_namespace);
        let Some(pod) = found else {
            self.metrics.pod_resources_get_errors.with(&[VERSION]).inc();
            return Err(Status::unknown(format!("pod {pod_name} in namespace {pod_namespace} not found")));
        };
        Ok(Response::new(GetPodResourcesResponse { pod_resources: Some(self.of_pod(pod)) }))
    }
}

/// Answers at the socket of this API below the root directory until the token is cancelled.
///
/// # Errors
/// The socket cannot be made, or the server fails.
pub(crate) async fn serve(root: &Path, lister: Lister, token: CancellationToken) -> std::io::Result<()> {
    let listener = listen(&root.join("pod-resources/kubelet.sock"))?;
    pod_resources::serve(listener, lister, token).await.map_err(std::io::Error::other)
}

/// Makes a socket, also where an earlier kubelet has left one.
pub(crate) fn listen(socket: &Path) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(socket)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use api_machinery::quantity::Quantity;
    use base::{Clock, SystemClock, TaskGroup};
    use kubelet_node::cpus::{CpuOptions, CpuPolicy, CpuSettings, Cpus, Processors};
    use kubelet_node::devices::{Devices, DevicesDeps};
    use kubelet_node::memory::{MemoryNodes, MemorySettings};
    use kubelet_node::topology::{TopologyParts, TopologySettings};
    use node_api::pod_resources::v1::pod_resources_lister_client::PodResourcesListerClient;
    use sys::topology::{MemoryNode, Processor, Topology};
    use tokio::time::Instant;

    use super::*;

    /// No time passes, so that no question is allowed again.
    struct Still(Instant);

    impl Clock for Still {
        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Instant {
            self.0
        }
    }

    fn pod() -> Arc<Pod> {
        let mut pod = Pod::default();
        (pod.metadata.name, pod.metadata.namespace) = ("web".into(), "ns".into());
        let container = |name: &str, policy: Option<&str>| Container {
            name: name.into(),
            restart_policy: policy.map(str::to_owned),
            ..Container::default()
        };
        pod.spec.init_containers = vec![container("init", None), container("sidecar", Some("Always"))];
        pod.spec.containers = vec![container("main", None)];
        let amount = |text: &str| Quantity::parse(text).unwrap();
        for (container, cpu) in
            pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers).zip(["500m", "500m", "2"])
        {
            container.resources.limits = [("cpu".into(), amount(cpu)), ("memory".into(), amount("1Mi"))].into();
            container.resources.requests = container.resources.limits.clone();
        }
        Arc::new(pod)
    }

    /// A machine of four processors, of which one is kept and the pod has two.
    async fn processors_for(
        pod: &Pod,
        root: &Path,
        devices: Arc<Devices>,
        metrics: &Arc<KubeletMetrics>,
        clock: &SharedClock,
    ) -> Arc<TopologyManager> {
        let place = |cpu: u32| (cpu, Processor { core: cpu, socket: 0, node: 0, cache: 0 });
        let topology = Topology { processors: (0..4).map(place).collect(), nodes: [(0, MemoryNode::default())].into() };
        let policy = CpuPolicy::Static(CpuOptions::default());
        let settings = CpuSettings { policy, reserved_milli: 1000, reserved: None, pod_level: false };
        let manager = TopologyManager::new(TopologyParts {
            settings: TopologySettings::default(),
            cpus: Cpus::new(root, settings, &Processors::new(&topology), metrics.clone()).unwrap(),
            memory: MemoryNodes::new(root, &MemorySettings::default(), metrics.clone()),
            pod_level: false,
            topology,
            devices,
            counts: metrics.clone(),
            clock: clock.clone(),
        });
        manager.allocate(pod).await.unwrap();
        manager
    }

    #[tokio::test]
    async fn clients_see_pods_and_too_many_questions_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("pod-resources")).unwrap();
        std::fs::write(dir.path().join("pod-resources/kubelet.sock"), "stale").unwrap();
        let (tasks, metrics) = (TaskGroup::new("test"), KubeletMetrics::unseen());
        let clock: SharedClock = Arc::new(Still(SystemClock.monotonic()));
        let (counts, extended) = (metrics.clone(), true);
        let deps = DevicesDeps { counts, clock: clock.clone(), tasks: tasks.clone(), extended };
        let devices = Devices::new(dir.path(), deps);
        let topology = processors_for(&pod(), dir.path(), devices, &metrics, &clock).await;
        let lister = Lister::new(Box::new(|| vec![pod()]), topology, None, metrics, clock);
        let (root, token) = (dir.path().to_owned(), tasks.token());
        tasks.spawn("server", async move { serve(&root, lister, token).await.unwrap() });
        let url = format!("unix://{}/pod-resources/kubelet.sock", dir.path().display());
        let channel = tonic::transport::Endpoint::try_from(url).unwrap();
        let channel = loop {
            match channel.connect().await {
                Ok(channel) => break channel,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let mut client = PodResourcesListerClient::new(channel);
        let listed = client.list(ListPodResourcesRequest {}).await.unwrap().into_inner().pod_resources;
        let names: Vec<&str> = listed[0].containers.iter().map(|container| container.name.as_str()).collect();
        assert_eq!((listed[0].name.as_str(), names), ("web", vec!["sidecar", "main"]));
        let get = |name: &str| GetPodResourcesRequest { pod_name: name.into(), pod_namespace: "ns".into() };
        assert!(client.get(get("web")).await.unwrap().into_inner().pod_resources.is_some());
        let missing = client.get(get("none")).await.unwrap_err();
        assert_eq!(missing.message(), "pod none in namespace ns not found");
        assert_eq!(listed[0].containers[1].cpu_ids, [1, 2]);
        let all = client.get_allocatable_resources(AllocatableResourcesRequest {}).await.unwrap().into_inner();
        assert_eq!(all.cpu_ids, [1, 2, 3]);
        let mut refused = None;
        for _ in 0..100 {
            refused = refused.or(client.list(ListPodResourcesRequest {}).await.err());
        }
        assert_eq!(refused.unwrap().message(), "rejected by rate limit");
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}
