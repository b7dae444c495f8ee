//! What sandboxes and containers are given: the node side's parts put together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use api_types::core_v1::{Container, NodeRuntimeHandlerFeatures, ObjectReference, Pod, Secret, Service};
use api_types::node_v1::RuntimeClass;
use async_trait::async_trait;
use client::{Informer, object_reference};
use kubelet_node::devices::DeviceInputs;
use kubelet_node::dra::DynamicResources;
use kubelet_node::topology::TopologyManager;
use kubelet_node::user_namespaces::UserNamespaces;
use node_api::cri::v1;

use crate::dns::{Dns, MISSING_CLUSTER_DNS};
use crate::env::{self, fields::Surroundings, services};
use crate::interfaces::{
    ContainerFacts, ContainerInputs, ContainerSetup, Events, Level, NodeView, SandboxResources, SandboxSetup, SideError,
};
use crate::objects::Objects;
use crate::resources::PodGroups;
use crate::resources::container::ContainerLimits;
use crate::resources::swap::{self, SwapBehavior};
use crate::volumes::{MountRequest, VolumeSet, devices_of, mounts_of};
use crate::{hostname, hosts};

/// A quota of processor time that is none.
const UNLIMITED: i64 = -1;
/// Where a pod comes from, in its annotations.
const SOURCE_ANNOTATION: &str = "kubernetes.io/config.source";

/// The parts.
pub struct Setup {
    pub volumes: Arc<VolumeSet>,
    pub groups: Arc<PodGroups>,
    pub limits: ContainerLimits,
    pub objects: Arc<dyn Objects>,
    pub node: Arc<dyn NodeView>,
    pub events: Arc<dyn Events>,
    pub dns: Dns,
    /// None without an API server.
    pub services: Option<Informer<Service>>,
    /// None without an API server.
    pub runtime_classes: Option<Informer<RuntimeClass>>,
    /// The node, for events about it.
    pub node_reference: ObjectReference,
    /// Who gives devices, processors and memory; none where nobody may.
    pub topology: Option<Arc<TopologyManager>>,
    /// The claims of pods; none where no API server has any.
    pub claims: Option<Arc<DynamicResources>>,
    /// Ids for pods with a namespace of users of their own; none where there are none.
    pub users: Option<Arc<UserNamespaces>>,
    /// Gate `DisableCPUQuotaWithExclusiveCPUs`: who has processors for itself may use all of their time.
    pub lifts_quota: bool,
}

impl Setup {
    fn dns_config(&self, pod: &Pod) -> Result<v1::DnsConfig, SideError> {
        let made = self.dns.of_pod(pod, &self.node.host_ips())?;
        if made.misses_cluster_dns {
            let reason = "MissingClusterDNS";
            self.events.event(self.node_reference.clone(), Level::Warning, reason, MISSING_CLUSTER_DNS);
            let full = component_helpers::pod_state::full_name(pod);
            let text = format!("pod: {:?}. {MISSING_CLUSTER_DNS}", format!("{full}({})", pod.metadata.uid));
            self.events.event(object_reference(pod), Level::Warning, reason, &text);
        }
        for (reason, text) in &made.warnings {
            self.events.event(object_reference(pod), Level::Warning, reason, text);
        }
        Ok(made.config)
    }

    fn runtime_handler(&self, pod: &Pod) -> Result<String, SideError> {
        let Some(name) = pod.spec.runtime_class_name.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(String::new());
        };
        let missing = || SideError(format!("failed to get sandbox runtime: RuntimeClass {name:?} not found"));
        let classes = self.runtime_classes.as_ref().ok_or_else(missing)?;
        classes.find("", name).map(|class| class.handler.clone()).ok_or_else(missing)
    }

    fn services(&self, pod: &Pod) -> Result<BTreeMap<String, String>, SideError> {
        let Some(informer) = &self.services else { return Ok(BTreeMap::new()) };
        let from_api = pod.metadata.annotations.get(SOURCE_ANNOTATION).is_none_or(|source| source == "api");
        if from_api && !informer.has_synced() {
            let text = "services have not yet been read at least once, cannot construct envvars";
            return Err(SideError::new(text));
        }
        let links = pod.spec.enable_service_links.unwrap_or(true);
        let all = informer.list();
        Ok(services::variables(all.iter().map(AsRef::as_ref), &pod.metadata.namespace, links))
    }

    fn surroundings(&self, pod: &Pod, facts: &ContainerFacts) -> Surroundings {
        let host_ips: Vec<String> = self.node.host_ips().iter().map(IpAddr::to_string).collect();
        let pod_ips = if pod.spec.host_network { host_ips.clone() } else { facts.pod_ips.clone() };
        let allocatable = self.node.node().map(|node| node.status.allocatable.clone()).unwrap_or_default();
        Surroundings { host_ips, pod_ips, allocatable }
    }

    async fn environment(
        &self,
        pod: &Pod,
        container: &Container,
        facts: &ContainerFacts,
    ) -> Result<BTreeMap<String, String>, SideError> {
        let around = self.surroundings(pod, facts);
        let uid = &pod.metadata.uid;
        let empty_dirs = |volume: &str| -> Option<PathBuf> {
            let found = pod.spec.volumes.iter().find(|found| found.name == volume)?;
            found.volume_source.empty_dir.as_ref()?;
            self.volumes.mounted(uid, volume).map(|mounted| mounted.path)
        };
        let sources = env::Sources {
            pod,
            container,
            objects: self.objects.as_ref(),
            services: self.services(pod)?,
            around: &around,
            empty_dirs: &empty_dirs,
        };
        Ok(env::build(&sources).await?)
    }

    /// Whether the handler of a pod's RuntimeClass can do something.
    fn handler_can(&self, handler: &str, what: impl Fn(&NodeRuntimeHandlerFeatures) -> Option<bool>) -> bool {
        let node = self.node.node();
        let handlers = node.iter().flat_map(|node| &node.status.runtime_handlers);
        let mut features = handlers.filter(|found| found.name == handler).filter_map(|found| found.features.as_ref());
        features.any(|features| what(features) == Some(true))
    }

    fn recursive_read_only(&self, pod: &Pod) -> bool {
        let handler = self.runtime_handler(pod).unwrap_or_default();
        self.handler_can(&handler, |features| features.recursive_read_only_mounts)
    }

    /// The pod's namespace of users; none where it has the machine's.
    fn user_namespace(&self, pod: &Pod) -> Result<Option<v1::UserNamespace>, SideError> {
        if pod.spec.host_users != Some(false) {
            return Ok(None);
        }
        let handler = self.runtime_handler(pod)?;
        let supported = self.handler_can(&handler, |features| features.user_namespaces);
        let Some(users) = self.users.as_ref().filter(|_| supported) else {
            let who =
                if handler.is_empty() { "runtime".to_owned() } else { format!("RuntimeClass handler {handler:?}") };
            let text = format!("can't set `spec.hostUsers: false`, {who} does not support user namespaces");
            return Err(SideError(text));
        };
        users.of_pod(&pod.metadata.uid).map(Some)
    }

    /// What a container needs to use its devices, of plugins and of claims.
    async fn device_inputs(&self, pod: &Pod, container: &Container) -> Result<DeviceInputs, SideError> {
        let mut inputs = DeviceInputs::default();
        if let Some(topology) = &self.topology {
            let given = topology.devices.inputs(&pod.metadata.uid, &container.name).await;
            inputs = given.map_err(|error| SideError(error.to_string()))?;
        }
        if let Some(claims) = &self.claims {
            inputs.cdi_devices.extend(claims.cdi_devices(pod, container).map_err(|error| SideError::of(&error))?);
        }
        Ok(inputs)
    }

    /// The container's mounts; parts of volumes and the hosts file are put into place for them.
    async fn mounts(
        &self,
        pod: &Pod,
        container: &Container,
        facts: &ContainerFacts,
        environment: &BTreeMap<String, String>,
    ) -> Result<Vec<v1::Mount>, SideError> {
        let recursive_read_only = self.recursive_read_only(pod);
        let hosts = match hosts::is_wanted(pod, container, &facts.pod_ips) {
            true => Some((hostname::of_pod(pod, &self.dns.domain)?, facts.pod_ips.clone())),
            false => None,
        };
        let (set, uid) = (Arc::clone(&self.volumes), pod.metadata.uid.clone());
        let (pod, container, environment) = (pod.clone(), container.clone(), environment.clone());
        let put = move || {
            let request =
                MountRequest { pod: &pod, container: &container, environment: &environment, recursive_read_only };
            let mut mounts = mounts_of(&set, &request)?;
            if let Some((name, ips)) = hosts {
                let file = set.layout().hosts_file(&pod.metadata.uid);
                mounts.push(hosts::write(&pod, &name, &ips, &file)?);
            }
            Ok(mounts)
        };
        self.volumes.calls().run(&uid, put).await?
    }
}

#[async_trait]
impl ContainerSetup for Setup {
    async fn sandbox(&self, pod: &Pod) -> Result<SandboxSetup, SideError> {
        let hostname = if pod.spec.host_network {
            String::new()
        } else {
            hostname::kernel_name(pod, &hostname::of_pod(pod, &self.dns.domain)?)?
        };
        Ok(SandboxSetup {
            hostname,
            dns: Some(self.dns_config(pod)?),
            cgroup_parent: self.groups.parent(pod),
            resources: self.sandbox_resources(pod),
            runtime_handler: self.runtime_handler(pod)?,
            users: self.user_namespace(pod)?,
        })
    }

    async fn container(
        &self,
        pod: &Pod,
        container: &Container,
        facts: &ContainerFacts,
    ) -> Result<ContainerInputs, SideError> {
        let given = self.device_inputs(pod, container).await?;
        let mut env = self.environment(pod, container, facts).await?;
        for (name, value) in given.env {
            // What the pod itself says goes before what a plugin says.
            env.entry(name).or_insert(value);
        }
        let mut mounts = given.mounts;
        mounts.extend(self.mounts(pod, container, facts, &env).await?);
        if let Some(users) = self.user_namespace(pod)? {
            for mount in &mut mounts {
                mount.uid_mappings.clone_from(&users.uids);
                mount.gid_mappings.clone_from(&users.gids);
            }
        }
        let DeviceInputs { mut devices, cdi_devices, annotations, .. } = given;
        devices.extend(devices_of(&self.volumes, pod, container)?);
        Ok(ContainerInputs { env, mounts, devices, cdi_devices, annotations })
    }

    fn sandbox_resources(&self, pod: &Pod) -> SandboxResources {
        let limits = self.groups.limits();
        SandboxResources { containers: limits.for_runtime(pod), overhead: limits.overhead(pod) }
    }

    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources {
        let mut resources = self.limits.of(pod, container);
        let (uid, name) = (&pod.metadata.uid, &container.name);
        let Some(topology) = &self.topology else { return resources };
        resources.cpuset_cpus = self.cpu_set(uid, name).unwrap_or_default();
        resources.cpuset_mems =
            topology.memory.of_container(uid, name).map(|nodes| nodes.to_string()).unwrap_or_default();
        if self.lifts_quota && self.limits.cpu_quota && topology.cpus.is_exclusive(pod, container) {
            resources.cpu_quota = UNLIMITED;
        }
        resources
    }

    fn keep(&self, uids: &BTreeSet<String>) {
        if let Some(users) = &self.users {
            users.keep(uids);
        }
    }

    fn may_swap(&self, pod: &Pod, container: &Container) -> bool {
        self.limits.swap != SwapBehavior::NoSwap && swap::may_swap(pod, container)
    }

    fn cpu_set(&self, uid: &str, container: &str) -> Option<String> {
        let cpus = self.topology.as_ref()?.cpus.of_container(uid, container)?;
        // No processor at all is none of the kernel's sets.
        (!cpus.is_empty()).then(|| cpus.to_string())
    }

    async fn pull_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, SideError> {
        Ok(self.objects.secret(namespace, name).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_types::core_v1::{
        EmptyDirVolumeSource, EnvVar, Node, NodeRuntimeHandler, Volume, VolumeMount, VolumeSource,
    };
    use base::{Rng, SystemClock};
    use sys::cgroups::{FakeCgroups, Version};
    use sys::exec::FakeExec;
    use sys::mounts::FakeMounts;

    use super::*;
    use crate::events::RecordedEvents;
    use crate::interfaces::Volumes as _;
    use crate::metrics::KubeletMetrics;
    use crate::node::FixedNode;
    use crate::objects::FixedObjects;
    use crate::resources::{CgroupNames, CgroupSettings, Driver};
    use crate::volumes::{CsiDeps, Labels, Layout, VolumeDeps};

    fn setup(dir: &tempfile::TempDir) -> (Setup, Arc<RecordedEvents>) {
        let node: Arc<dyn NodeView> = Arc::new(FixedNode::default());
        let objects: Arc<dyn Objects> = Arc::new(FixedObjects::default());
        let volumes = VolumeSet::new(VolumeDeps {
            layout: Layout::new(dir.path()),
            mounts: Arc::new(FakeMounts::new()),
            objects: objects.clone(),
            client: None,
            node: node.clone(),
            clock: SystemClock::shared(),
            rng: Rng::seeded(1),
            csi: CsiDeps::default(),
            exec: Arc::new(FakeExec::new()),
            events: Arc::new(RecordedEvents::default()),
            labels: Labels::default(),
            quotas: None,
            trust_bundles: None,
            certificates: None,
            metrics: KubeletMetrics::unseen(),
        });
        let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
        let settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
        let events = Arc::new(RecordedEvents::default());
        let limits = ContainerLimits {
            cpu_quota: true,
            cpu_period_us: 100_000,
            version: Version::V2,
            swap_accounting: false,
            swap: SwapBehavior::NoSwap,
            single_process_oom_kill: false,
            huge_pages: Vec::new(),
            memory_capacity: 1 << 30,
            memory_qos: None,
        };
        let setup = Setup {
            volumes,
            groups: PodGroups::new(Arc::new(FakeCgroups::new()), settings),
            limits,
            objects,
            node,
            events: events.clone(),
            dns: Dns::default(),
            services: None,
            runtime_classes: None,
            node_reference: ObjectReference::default(),
            topology: None,
            claims: None,
            users: None,
            lifts_quota: true,
        };
        (setup, events)
    }

    fn pod() -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        pod.metadata.namespace = "ns".into();
        pod.metadata.uid = "u1".into();
        let empty_dir = Some(EmptyDirVolumeSource::default());
        let volume_source = VolumeSource { empty_dir, ..VolumeSource::default() };
        pod.spec.volumes.push(Volume { name: "data".into(), volume_source });
        pod.spec.containers.push(Container {
            name: "main".into(),
            env: vec![EnvVar { name: "DIR".into(), value: "part".into(), ..EnvVar::default() }],
            volume_mounts: vec![VolumeMount {
                name: "data".into(),
                mount_path: "/data".into(),
                sub_path_expr: "$(DIR)".into(),
                ..VolumeMount::default()
            }],
            ..Container::default()
        });
        pod
    }

    #[tokio::test]
    async fn containers_get_environment_and_mounts() {
        let dir = tempfile::tempdir().unwrap();
        let (setup, _) = setup(&dir);
        let pod = pod();
        setup.volumes.mount(&pod).await.unwrap();
        let facts = ContainerFacts { pod_ips: vec!["10.1.0.5".into()], image_id: String::new() };
        let inputs = setup.container(&pod, &pod.spec.containers[0], &facts).await.unwrap();
        assert_eq!(inputs.env["DIR"], "part");
        let paths: Vec<(&str, bool)> = inputs
            .mounts
            .iter()
            .map(|mount| (mount.container_path.as_str(), mount.host_path.contains("volume-subpaths/data/main/0")))
            .collect();
        assert_eq!(paths, [("/data", true), ("/etc/hosts", false)]);
        assert!(dir.path().join("pods/u1/volumes/kubernetes.io~empty-dir/data/part").is_dir());
    }

    /// A node whose default runtime has namespaces of users.
    fn node_with_users() -> Node {
        let features =
            NodeRuntimeHandlerFeatures { user_namespaces: Some(true), ..NodeRuntimeHandlerFeatures::default() };
        let mut node = Node::default();
        node.status.runtime_handlers = vec![NodeRuntimeHandler { name: String::new(), features: Some(features) }];
        node
    }

    #[tokio::test]
    async fn pods_get_a_namespace_of_users_where_the_runtime_has_them() {
        let dir = tempfile::tempdir().unwrap();
        let (mut setup, _) = setup(&dir);
        let mut pod = pod();
        pod.spec.host_users = Some(false);
        let refused = setup.sandbox(&pod).await.unwrap_err().to_string();
        assert_eq!(refused, "can't set `spec.hostUsers: false`, runtime does not support user namespaces");
        setup.node = Arc::new(FixedNode { node: Some(Arc::new(node_with_users())) });
        assert!(setup.sandbox(&pod).await.is_err(), "nobody has ids");
        let exec = sys::exec::FakeExec::new();
        let users = UserNamespaces::new(dir.path(), dir.path(), 65_536, 1, &exec).await.unwrap();
        setup.users = Some(Arc::new(users));
        let users = setup.sandbox(&pod).await.unwrap().users.unwrap();
        assert_eq!((users.mode(), users.uids[0].host_id), (v1::NamespaceMode::Pod, 65_536));
        setup.volumes.mount(&pod).await.unwrap();
        let facts = ContainerFacts { pod_ips: vec!["10.1.0.5".into()], image_id: String::new() };
        let mounts = setup.container(&pod, &pod.spec.containers[0], &facts).await.unwrap().mounts;
        assert!(mounts.len() == 2 && mounts.iter().all(|mount| mount.uid_mappings == users.uids));
        setup.keep(&BTreeSet::new());
        let mut other = pod.clone();
        other.metadata.uid = "u2".into();
        assert_eq!(setup.sandbox(&other).await.unwrap().users, Some(users), "what nobody has is given to the next");
        pod.spec.host_users = None;
        assert_eq!(setup.sandbox(&pod).await.unwrap().users, None);
    }

    #[tokio::test]
    async fn sandboxes_get_names_and_groups() {
        let dir = tempfile::tempdir().unwrap();
        let (setup, events) = setup(&dir);
        let made = setup.sandbox(&pod()).await.unwrap();
        assert_eq!((made.hostname.as_str(), made.cgroup_parent.as_str()), ("web", "/kubepods/besteffort/podu1"));
        let reasons: Vec<String> = events.taken().into_iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["MissingClusterDNS", "MissingClusterDNS"]);
        let mut pod = pod();
        pod.spec.host_network = true;
        assert_eq!(setup.sandbox(&pod).await.unwrap().hostname, "");
        pod.spec.runtime_class_name = Some("kata".into());
        assert!(setup.sandbox(&pod).await.is_err());
    }
}
