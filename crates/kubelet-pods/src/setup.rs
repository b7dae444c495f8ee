//! What sandboxes and containers are given: the node side's parts put together.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use api_types::core_v1::{Container, ObjectReference, Pod, Secret, Service};
use api_types::node_v1::RuntimeClass;
use async_trait::async_trait;
use client::{Informer, object_reference};
use kubelet_node::devices::{DeviceInputs, Devices};
use kubelet_node::dra::DynamicResources;
use node_api::cri::v1;

use crate::dns::{Dns, MISSING_CLUSTER_DNS};
use crate::env::{self, fields::Surroundings, services};
use crate::interfaces::{
    ContainerFacts, ContainerInputs, ContainerSetup, Events, Level, NodeView, SandboxSetup, SideError,
};
use crate::objects::Objects;
use crate::resources::PodGroups;
use crate::resources::container::ContainerLimits;
use crate::volumes::{MountRequest, VolumeSet, mounts_of};
use crate::{hostname, hosts};

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
    /// What plugins offer; none where none may.
    pub devices: Option<Arc<Devices>>,
    /// The claims of pods; none where no API server has any.
    pub claims: Option<Arc<DynamicResources>>,
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

    fn recursive_read_only(&self, pod: &Pod) -> bool {
        let handler = self.runtime_handler(pod).unwrap_or_default();
        let node = self.node.node();
        let handlers = node.iter().flat_map(|node| &node.status.runtime_handlers);
        let mut features = handlers.filter(|found| found.name == handler).filter_map(|found| found.features.as_ref());
        features.any(|features| features.recursive_read_only_mounts == Some(true))
    }

    /// What a container needs to use its devices, of plugins and of claims.
    async fn device_inputs(&self, pod: &Pod, container: &Container) -> Result<DeviceInputs, SideError> {
        let mut inputs = DeviceInputs::default();
        if let Some(devices) = &self.devices {
            let given = devices.inputs(&pod.metadata.uid, &container.name).await;
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
            resources: Some(self.groups.limits().for_runtime(pod)),
            overhead: self.groups.limits().overhead(pod),
            runtime_handler: self.runtime_handler(pod)?,
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
        let DeviceInputs { devices, cdi_devices, annotations, .. } = given;
        Ok(ContainerInputs { env, mounts, devices, cdi_devices, annotations })
    }

    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources {
        self.limits.of(pod, container)
    }

    async fn pull_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, SideError> {
        Ok(self.objects.secret(namespace, name).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_types::core_v1::{EmptyDirVolumeSource, EnvVar, Volume, VolumeMount, VolumeSource};
    use base::{Rng, SystemClock};
    use sys::cgroups::{FakeCgroups, Version};
    use sys::mounts::FakeMounts;

    use super::*;
    use crate::events::RecordedEvents;
    use crate::interfaces::Volumes as _;
    use crate::node::FixedNode;
    use crate::objects::FixedObjects;
    use crate::resources::{CgroupNames, CgroupSettings, Driver};
    use crate::volumes::{CsiDeps, Layout, VolumeDeps};

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
            events: Arc::new(RecordedEvents::default()),
        });
        let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
        let settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
        let events = Arc::new(RecordedEvents::default());
        let limits = ContainerLimits {
            cpu_quota: true,
            cpu_period_us: 100_000,
            version: Version::V2,
            swap_accounting: false,
            single_process_oom_kill: false,
            huge_pages: Vec::new(),
            memory_capacity: 1 << 30,
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
            devices: None,
            claims: None,
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
