//! What the kubelet asked of the runtime for a pod, read back from the runtime, so that other pods can be made alike.
//!
//! The runtime tells the configurations as JSON, whose fields have the protocol's names. Those that a pod of the
//! benchmark has are understood; [`Pattern::check`] sees to it that no other one is lost.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use node_api::cri::v1::{
    ContainerConfig, ContainerFilter, ContainerMetadata, DnsConfig, HugepageLimit, ImageSpec, KeyValue,
    LinuxContainerConfig, LinuxContainerResources, LinuxContainerSecurityContext, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, Mount, NamespaceOption, PodSandboxConfig, PodSandboxFilter, PodSandboxMetadata,
    SecurityProfile, UserNamespace,
};
use node_api::cri::{CriClient, Runtime as _};
use serde_json::Value;

/// The label that has a pod's name.
const POD_NAME: &str = "io.kubernetes.pod.name";

/// A pod of one container, as the kubelet described it.
pub(super) struct Pattern {
    told: Told,
    sandbox: PodSandboxConfig,
    container: ContainerConfig,
}

/// What each pod has for itself.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) cgroup_parent: String,
    pub(super) log_directory: String,
}

/// The two configurations in the runtime's words.
#[derive(Debug, PartialEq)]
struct Told {
    sandbox: Value,
    container: Value,
}

impl Pattern {
    /// Reads a pod of this name back.
    pub(super) async fn of(runtime: &CriClient, pod: &str) -> Result<Self> {
        let label_selector = HashMap::from([(POD_NAME.to_owned(), pod.to_owned())]);
        let filter = PodSandboxFilter { label_selector, ..PodSandboxFilter::default() };
        let sandboxes = runtime.list_pod_sandboxes(Some(filter)).await?;
        let sandbox = sandboxes.first().context("the runtime does not know the pod")?;
        let filter = ContainerFilter { pod_sandbox_id: sandbox.id.clone(), ..ContainerFilter::default() };
        let containers = runtime.list_containers(Some(filter)).await?;
        let container = containers.first().context("the pod has no container")?;
        let told = Told::read(runtime, &sandbox.id, &container.id).await?;
        Ok(Self { sandbox: sandbox_config(&told.sandbox), container: container_config(&told.container), told })
    }

    pub(super) fn container_name(&self) -> &str {
        self.container.metadata.as_ref().map_or("", |metadata| &metadata.name)
    }

    pub(super) fn cgroup_parent(&self) -> &str {
        self.sandbox.linux.as_ref().map_or("", |linux| &linux.cgroup_parent)
    }

    pub(super) fn log_directory(&self) -> &str {
        &self.sandbox.log_directory
    }

    /// A sandbox like the pod's at another place.
    pub(super) fn sandbox(&self, place: &Place) -> PodSandboxConfig {
        let metadata =
            PodSandboxMetadata { name: place.name.clone(), uid: place.uid.clone(), ..metadata(&self.told.sandbox) };
        let linux = self.sandbox.linux.clone();
        PodSandboxConfig {
            metadata: Some(metadata),
            hostname: place.name.clone(),
            log_directory: place.log_directory.clone(),
            labels: anonymous(&self.sandbox.labels),
            linux: linux.map(|linux| LinuxPodSandboxConfig { cgroup_parent: place.cgroup_parent.clone(), ..linux }),
            ..self.sandbox.clone()
        }
    }

    /// A container like the pod's, with a label more.
    pub(super) fn container(&self, label: (&str, &str)) -> ContainerConfig {
        let mut labels = anonymous(&self.container.labels);
        labels.insert(label.0.to_owned(), label.1.to_owned());
        ContainerConfig { labels, ..self.container.clone() }
    }

    /// Whether the runtime was asked the same for a container and its sandbox, but for names and places.
    pub(super) async fn check(&self, runtime: &CriClient, container: &str) -> Result<()> {
        let filter = ContainerFilter { id: container.to_owned(), ..ContainerFilter::default() };
        let found = runtime.list_containers(Some(filter)).await?;
        let sandbox = &found.first().context("the container is gone")?.pod_sandbox_id;
        let (own, told) = (Told::read(runtime, sandbox, container).await?.bare(), self.told.bare());
        ensure!(own == told, "the runtime was asked other things: {own:?}, not {told:?}");
        Ok(())
    }
}

impl Told {
    async fn read(runtime: &CriClient, sandbox: &str, container: &str) -> Result<Self> {
        let sandbox = runtime.pod_sandbox_status(sandbox, true).await?.info;
        let container = runtime.container_status(container, true).await?.info;
        Ok(Self { sandbox: config_in(&sandbox)?, container: config_in(&container)? })
    }

    /// Without what differs from pod to pod.
    fn bare(&self) -> Self {
        let without = |from: &Value, keys: &[&str]| {
            let mut bare = from.clone();
            if let Some(fields) = bare.as_object_mut() {
                fields.retain(|key, _| !keys.contains(&key.as_str()));
            }
            bare
        };
        let mut sandbox = without(&self.sandbox, &["metadata", "hostname", "labels", "log_directory"]);
        if let Some(linux) = sandbox.get_mut("linux") {
            *linux = without(linux, &["cgroup_parent"]);
        }
        Self { sandbox, container: without(&self.container, &["labels"]) }
    }
}

/// What a verbose status says of the configuration.
fn config_in(info: &HashMap<String, String>) -> Result<Value> {
    let text = info.get("info").context("the runtime's verbose status has no info")?;
    let mut info: Value = serde_json::from_str(text).context("reading the runtime's verbose status")?;
    let config = info.get_mut("config").map(Value::take);
    config.context("the runtime's verbose status has no config")
}

/// Labels of the same number and size by which no kubelet finds anything.
fn anonymous(labels: &HashMap<String, String>) -> HashMap<String, String> {
    labels.iter().map(|(key, value)| (key.replace("io.kubernetes", "bench-example"), value.clone())).collect()
}

fn sandbox_config(from: &Value) -> PodSandboxConfig {
    let (linux, dns) = (&from["linux"], &from["dns_config"]);
    let security = &linux["security_context"];
    PodSandboxConfig {
        metadata: Some(metadata(from)),
        hostname: text(&from["hostname"]),
        log_directory: text(&from["log_directory"]),
        dns_config: Some(DnsConfig {
            servers: texts(&dns["servers"]),
            searches: texts(&dns["searches"]),
            options: texts(&dns["options"]),
        }),
        labels: map(&from["labels"]),
        annotations: map(&from["annotations"]),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: text(&linux["cgroup_parent"]),
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: namespaces(&security["namespace_options"]),
                seccomp: profile(&security["seccomp"]),
                ..LinuxSandboxSecurityContext::default()
            }),
            sysctls: map(&linux["sysctls"]),
            overhead: resources(&linux["overhead"]),
            resources: resources(&linux["resources"]),
        }),
        ..PodSandboxConfig::default()
    }
}

fn metadata(from: &Value) -> PodSandboxMetadata {
    let told = &from["metadata"];
    PodSandboxMetadata {
        name: text(&told["name"]),
        uid: text(&told["uid"]),
        namespace: text(&told["namespace"]),
        ..PodSandboxMetadata::default()
    }
}

fn container_config(from: &Value) -> ContainerConfig {
    let (image, linux) = (&from["image"], &from["linux"]);
    let variable = |from: &Value| KeyValue { key: text(&from["key"]), value: text(&from["value"]).into_bytes() };
    ContainerConfig {
        metadata: Some(ContainerMetadata { name: text(&from["metadata"]["name"]), attempt: 0 }),
        image: Some(ImageSpec {
            image: text(&image["image"]),
            annotations: map(&image["annotations"]),
            user_specified_image: text(&image["user_specified_image"]),
            ..ImageSpec::default()
        }),
        command: texts(&from["command"]),
        args: texts(&from["args"]),
        working_dir: text(&from["working_dir"]),
        envs: items(&from["envs"]).map(variable).collect(),
        mounts: items(&from["mounts"]).map(mount).collect(),
        labels: map(&from["labels"]),
        annotations: map(&from["annotations"]),
        log_path: text(&from["log_path"]),
        linux: Some(LinuxContainerConfig {
            resources: resources(&linux["resources"]),
            security_context: Some(container_security(&linux["security_context"])),
        }),
        ..ContainerConfig::default()
    }
}

fn mount(from: &Value) -> Mount {
    Mount {
        container_path: text(&from["container_path"]),
        host_path: text(&from["host_path"]),
        readonly: flag(&from["readonly"]),
        selinux_relabel: flag(&from["selinux_relabel"]),
        ..Mount::default()
    }
}

fn container_security(from: &Value) -> LinuxContainerSecurityContext {
    LinuxContainerSecurityContext {
        namespace_options: namespaces(&from["namespace_options"]),
        masked_paths: texts(&from["masked_paths"]),
        readonly_paths: texts(&from["readonly_paths"]),
        seccomp: profile(&from["seccomp"]),
        ..LinuxContainerSecurityContext::default()
    }
}

fn namespaces(from: &Value) -> Option<NamespaceOption> {
    let users = from["userns_options"].as_object().map(|users| {
        let mode = users.get("mode").map_or(0, enumerated);
        UserNamespace { mode, ..UserNamespace::default() }
    });
    from.is_object().then(|| NamespaceOption {
        network: enumerated(&from["network"]),
        pid: enumerated(&from["pid"]),
        ipc: enumerated(&from["ipc"]),
        target_id: text(&from["target_id"]),
        userns_options: users,
    })
}

fn profile(from: &Value) -> Option<SecurityProfile> {
    let localhost_ref = text(&from["localhost_ref"]);
    from.is_object().then(|| SecurityProfile { profile_type: enumerated(&from["profile_type"]), localhost_ref })
}

fn resources(from: &Value) -> Option<LinuxContainerResources> {
    let page = |from: &Value| HugepageLimit {
        page_size: text(&from["page_size"]),
        limit: from["limit"].as_u64().unwrap_or_default(),
    };
    from.is_object().then(|| LinuxContainerResources {
        cpu_period: number(&from["cpu_period"]),
        cpu_quota: number(&from["cpu_quota"]),
        cpu_shares: number(&from["cpu_shares"]),
        memory_limit_in_bytes: number(&from["memory_limit_in_bytes"]),
        oom_score_adj: number(&from["oom_score_adj"]),
        cpuset_cpus: text(&from["cpuset_cpus"]),
        cpuset_mems: text(&from["cpuset_mems"]),
        hugepage_limits: items(&from["hugepage_limits"]).map(page).collect(),
        unified: map(&from["unified"]),
        memory_swap_limit_in_bytes: number(&from["memory_swap_limit_in_bytes"]),
    })
}

fn items(from: &Value) -> impl Iterator<Item = &Value> {
    from.as_array().into_iter().flatten()
}

fn text(from: &Value) -> String {
    from.as_str().unwrap_or_default().to_owned()
}

fn texts(from: &Value) -> Vec<String> {
    items(from).map(text).collect()
}

fn number(from: &Value) -> i64 {
    from.as_i64().unwrap_or_default()
}

fn enumerated(from: &Value) -> i32 {
    i32::try_from(number(from)).unwrap_or_default()
}

fn flag(from: &Value) -> bool {
    from.as_bool().unwrap_or_default()
}

fn map(from: &Value) -> HashMap<String, String> {
    let fields = from.as_object().into_iter().flatten();
    fields.map(|(key, value)| (key.clone(), text(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Pattern, Place, Told, container_config, sandbox_config};

    fn told() -> Told {
        let namespaces = json!({"pid": 1, "userns_options": {"mode": 2}});
        let resources = json!({"cpu_shares": 2, "hugepage_limits": [{"page_size": "2MB"}]});
        Told {
            sandbox: json!({
                "metadata": {"name": "first", "uid": "u", "namespace": "default"}, "hostname": "first",
                "log_directory": "/logs/first", "dns_config": {"servers": ["10.96.0.10"], "options": ["ndots:5"]},
                "labels": {"io.kubernetes.pod.uid": "u", "app": "x"},
                "linux": {"cgroup_parent": "/pods/podu", "resources": resources,
                    "security_context": {"namespace_options": namespaces, "seccomp": {}}},
            }),
            container: json!({
                "metadata": {"name": "echo"}, "image": {"image": "sha256:0"}, "log_path": "echo/0.log",
                "envs": [{"key": "A", "value": "b"}],
                "mounts": [{"container_path": "/etc/hosts", "host_path": "/hosts", "readonly": true}],
                "labels": {"io.kubernetes.pod.uid": "u"},
                "linux": {"resources": resources, "security_context": {
                    "namespace_options": namespaces, "masked_paths": ["/proc/keys"], "seccomp": {"profile_type": 1}}},
            }),
        }
    }

    #[test]
    fn others_are_like_it_but_for_name_and_place() {
        let told = told();
        let (sandbox, container) = (sandbox_config(&told.sandbox), container_config(&told.container));
        let pattern = Pattern { told, sandbox: sandbox.clone(), container: container.clone() };
        let own = Place { name: "n".into(), uid: "v".into(), cgroup_parent: "/g".into(), log_directory: "/l".into() };
        let made = pattern.sandbox(&own);
        let metadata = made.metadata.clone().unwrap();
        assert_eq!((metadata.name.as_str(), metadata.uid.as_str(), metadata.namespace.as_str()), ("n", "v", "default"));
        let linux = made.linux.unwrap();
        assert_eq!((linux.cgroup_parent.as_str(), made.log_directory.as_str()), ("/g", "/l"));
        let security = linux.security_context.unwrap();
        assert_eq!(security.namespace_options.as_ref().map(|own| own.pid), Some(1));
        assert_eq!(linux.resources.unwrap().hugepage_limits[0].page_size, "2MB");
        assert_eq!(made.dns_config.unwrap().options, ["ndots:5"]);
        assert!(made.labels.keys().all(|key| !key.contains("kubernetes")) && made.labels.len() == 2);
        let made = pattern.container(("bench", "yes"));
        assert!(made.labels.contains_key("bench") && made.labels.keys().all(|key| !key.contains("kubernetes")));
        let unlabelled = |from: node_api::cri::v1::ContainerConfig| node_api::cri::v1::ContainerConfig {
            labels: super::HashMap::new(),
            ..from
        };
        assert_eq!(unlabelled(made.clone()), unlabelled(container));
        assert_eq!((made.envs[0].value.as_slice(), made.mounts[0].readonly), (&b"b"[..], true));
        let security = made.linux.unwrap().security_context.unwrap();
        assert_eq!((security.masked_paths.len(), security.seccomp.unwrap().profile_type), (1, 1));
    }

    #[test]
    fn only_names_and_places_may_differ() {
        let mut other = told();
        other.sandbox["metadata"]["name"] = "n".into();
        other.sandbox["linux"]["cgroup_parent"] = "/g".into();
        other.container["labels"] = json!({});
        assert_eq!(other.bare(), told().bare());
        for (place, value) in
            [("/linux/resources/cpu_shares", json!(3)), ("/linux/security_context/seccomp", json!(null))]
        {
            let mut other = told();
            *other.sandbox.pointer_mut(place).unwrap() = value.clone();
            assert_ne!(other.bare(), told().bare(), "{place}");
            let mut other = told();
            *other.container.pointer_mut(place).unwrap() = value;
            assert_ne!(other.bare(), told().bare(), "{place}");
        }
    }
}
