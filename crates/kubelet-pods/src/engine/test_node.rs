//! A node side for tests: no volumes, plain environments, a node with room, and everything it is told is kept.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, Node, ObjectReference, Pod, Secret};
use async_trait::async_trait;
use base::{Rng, SharedClock, TaskGroup};
use kubelet_node::dra::DynamicResources;
use kubelet_node::topology::TopologyManager;
use node_api::cri::v1::LinuxContainerResources;
use node_api::cri::{Images, Runtime};
use parking_lot::Mutex;
use sys::proc::ProcessorTime;

use super::{EngineDeps, PodEngine};
use crate::interfaces::{
    ContainerFacts, ContainerInputs, ContainerSetup, Events, Level, MountError, NodeSide, NodeView, PodCgroups,
    PodSettings, SandboxResources, SandboxSetup, SideError, Volumes,
};
use crate::runtime::starts::{Processors, Starts};

/// What the engine asked for and told.
#[derive(Default)]
pub struct TestNode {
    pub topology: Mutex<Option<Arc<TopologyManager>>>,
    pub events: Mutex<Vec<String>>,
    pub unmounted: Mutex<Vec<String>>,
    pub config_error: Mutex<Option<String>>,
    pub mount_error: Mutex<Option<String>>,
    /// Volumes never come, and this is why.
    pub volume_limit: Mutex<Option<String>>,
    pub sandbox_error: Mutex<Option<String>>,
    pub unmount_error: Mutex<Option<String>>,
    /// The processors that all containers run on.
    pub cpu_set: Mutex<Option<String>>,
    /// The pods whose groups were removed.
    pub removed_groups: Mutex<Vec<String>>,
    /// The memory limits that pods' groups were given.
    pub group_limits: Mutex<Vec<i64>>,
    /// The claims of pods, for engines that are made from now on.
    pub claims: Mutex<Option<Arc<DynamicResources>>>,
}

#[async_trait]
impl Volumes for TestNode {
    async fn mount(&self, _pod: &Pod) -> Result<(), MountError> {
        if self.volume_limit.lock().is_some() {
            std::future::pending::<()>().await;
        }
        self.mount_error.lock().clone().map_or(Ok(()), |text| Err(MountError::Volumes(vec![text.as_str().into()])))
    }

    async fn unmount(&self, uid: &str) -> Result<(), SideError> {
        self.unmounted.lock().push(uid.to_owned());
        self.unmount_error.lock().clone().map_or(Ok(()), |text| Err(SideError::new(text)))
    }

    async fn clean_orphans(&self, _keep: &BTreeSet<String>) {}

    async fn at_limit(&self, _pod: &Pod) -> Option<String> {
        self.volume_limit.lock().clone()
    }

    fn supplemental_groups(&self, _pod: &Pod) -> Vec<i64> {
        Vec::new()
    }
}

#[async_trait]
impl ContainerSetup for TestNode {
    async fn sandbox(&self, pod: &Pod) -> Result<SandboxSetup, SideError> {
        if let Some(text) = &*self.sandbox_error.lock() {
            return Err(SideError::new(text.clone()));
        }
        let resources = self.sandbox_resources(pod);
        Ok(SandboxSetup { hostname: pod.metadata.name.clone(), resources, ..SandboxSetup::default() })
    }

    async fn container(
        &self,
        pod: &Pod,
        container: &Container,
        _: &ContainerFacts,
    ) -> Result<ContainerInputs, SideError> {
        if let Some(text) = &*self.config_error.lock() {
            return Err(SideError::new(text.clone()));
        }
        let env: BTreeMap<_, _> = container.env.iter().map(|it| (it.name.clone(), it.value.clone())).collect();
        let claims = self.claims.lock().clone();
        let cdi_devices = claims.map(|claims| claims.cdi_devices(pod, container)).transpose();
        let cdi_devices = cdi_devices.map_err(|error| SideError::new(error.to_string()))?.unwrap_or_default();
        Ok(ContainerInputs { env, cdi_devices, ..ContainerInputs::default() })
    }

    fn cpu_set(&self, _uid: &str, _container: &str) -> Option<String> {
        self.cpu_set.lock().clone()
    }

    fn resources(&self, _pod: &Pod, container: &Container) -> LinuxContainerResources {
        let memory = container.resources.limits.get("memory").map_or(0, Quantity::value);
        LinuxContainerResources { memory_limit_in_bytes: memory, ..LinuxContainerResources::default() }
    }

    fn sandbox_resources(&self, pod: &Pod) -> SandboxResources {
        let limits = component_helpers::pod_requests::limits(pod);
        let memory_limit_in_bytes = component_helpers::pod_requests::amount(&limits, "memory").value();
        let containers = LinuxContainerResources { memory_limit_in_bytes, ..LinuxContainerResources::default() };
        SandboxResources { containers, overhead: None }
    }

    async fn pull_secret(&self, _namespace: &str, _name: &str) -> Result<Option<Arc<Secret>>, SideError> {
        Ok(None)
    }
}

#[async_trait]
impl PodCgroups for TestNode {
    fn exists(&self, _pod: &Pod) -> bool {
        true
    }

    async fn ensure(&self, pod: &Pod) -> Result<(), SideError> {
        let limits = component_helpers::pod_requests::limits(pod);
        self.group_limits.lock().push(component_helpers::pod_requests::amount(&limits, "memory").value());
        Ok(())
    }

    async fn remove(&self, uid: &str) -> Result<(), SideError> {
        self.removed_groups.lock().push(uid.to_owned());
        Ok(())
    }

    async fn clean_orphans(&self, _keep: &BTreeSet<String>) {}
}

#[async_trait]
impl NodeView for TestNode {
    fn node(&self) -> Option<Arc<Node>> {
        let mut node = Node::default();
        node.metadata.name = "node1".into();
        node.metadata.uid = "node-uid".into();
        for (name, amount) in [("cpu", "2"), ("memory", "4Gi"), ("pods", "110")] {
            node.status.allocatable.insert(name.into(), Quantity::parse(amount).unwrap());
        }
        Some(Arc::new(node))
    }

    async fn fresh_node(&self) -> Option<Arc<Node>> {
        self.node()
    }

    fn host_ips(&self) -> Vec<IpAddr> {
        vec!["192.0.2.1".parse().unwrap()]
    }

    fn pressures(&self) -> Vec<String> {
        Vec::new()
    }

    fn shutting_down(&self) -> bool {
        false
    }
}

impl Events for TestNode {
    fn event(&self, about: ObjectReference, level: Level, reason: &str, message: &str) {
        self.events.lock().push(format!("{level:?} {reason} {} {message}", about.field_path));
    }
}

impl TestNode {
    pub fn side(self: &Arc<Self>) -> NodeSide {
        NodeSide {
            topology: self.topology.lock().clone(),
            claims: self.claims.lock().clone(),
            credentials: None,
            volumes: Arc::clone(self) as Arc<dyn Volumes>,
            setup: Arc::clone(self) as Arc<dyn ContainerSetup>,
            cgroups: Arc::clone(self) as Arc<dyn PodCgroups>,
            node: Arc::clone(self) as Arc<dyn NodeView>,
            events: Arc::clone(self) as Arc<dyn Events>,
        }
    }

    /// Whether an event with this reason (and text) was told.
    pub fn told(&self, part: &str) -> bool {
        self.events.lock().iter().any(|event| event.contains(part))
    }
}

/// A processor that never idles.
struct Busy;

impl Processors for Busy {
    fn count(&self) -> usize {
        1
    }

    fn time(&self) -> Option<ProcessorTime> {
        Some(ProcessorTime::default())
    }
}

/// Settings under a directory of the test's own, with static pods from `manifests` below it.
pub fn settings(root: &Path) -> PodSettings {
    PodSettings {
        node_name: "node1".into(),
        root_dir: root.join("kubelet"),
        pod_logs_dir: root.join("pods"),
        container_logs_dir: root.join("containers"),
        static_pod_path: Some(root.join("manifests")),
        file_check_frequency: Duration::from_secs(1),
        ..PodSettings::default()
    }
}

/// A running engine without an API server.
pub fn engine(
    settings: PodSettings,
    node: &Arc<TestNode>,
    runtime: Arc<dyn Runtime>,
    images: Arc<dyn Images>,
    clock: SharedClock,
    tasks: &TaskGroup,
) -> PodEngine {
    engine_with(settings, node, None, (runtime, images), clock, tasks)
}

/// A running engine, with an API server where there is a client.
pub fn engine_with(
    settings: PodSettings,
    node: &Arc<TestNode>,
    client: Option<client::Client>,
    runtimes: (Arc<dyn Runtime>, Arc<dyn Images>),
    clock: SharedClock,
    tasks: &TaskGroup,
) -> PodEngine {
    started(parts(settings, node, client, runtimes, clock, tasks))
}

/// What an engine is made of that records no traces.
pub fn parts(
    settings: PodSettings,
    node: &Arc<TestNode>,
    client: Option<client::Client>,
    (runtime, images): (Arc<dyn Runtime>, Arc<dyn Images>),
    clock: SharedClock,
    tasks: &TaskGroup,
) -> EngineDeps {
    EngineDeps {
        settings,
        side: node.side(),
        client,
        runtime,
        images,
        processors: Arc::new(Busy),
        clock,
        rng: Rng::seeded(1),
        metrics: crate::metrics::KubeletMetrics::unseen(),
        tasks: tasks.clone(),
        tracer: None,
    }
}

/// Starts an engine.
pub fn started(parts: EngineDeps) -> PodEngine {
    let engine = PodEngine::new(parts);
    engine.restore().unwrap();
    engine.start();
    engine
}

/// Pods' runtime over a fake, for tests of what uses it without an engine.
pub fn runtime_with(fake: &node_api::cri::fake::FakeRuntime) -> crate::runtime::PodRuntime {
    let shared = Arc::new(fake.clone());
    crate::runtime::PodRuntime::new(
        (shared.clone(), shared),
        Arc::new(TestNode::default()).side(),
        Arc::new(settings(Path::new("/nonexistent"))),
        base::SystemClock::shared(),
        Rng::seeded(1),
        crate::metrics::KubeletMetrics::unseen(),
        Starts::new(Arc::new(Busy)),
    )
}
