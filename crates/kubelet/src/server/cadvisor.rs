//! `/metrics/cadvisor`: what containers, pods and the machine use, in the families that dashboards know.
//!
//! From the runtime's figures and the pods' groups. Families about devices, networks and tasks, which neither tells, are
//! left out.

use std::collections::BTreeMap;

use api_types::core_v1::Pod;
use component_base::serving::{Response, text};
use http::{HeaderValue, StatusCode, header};
use node_api::cri::v1::{ContainerStats, UInt64Value};
use sys::cgroups::Usage;
use sys::proc::Proc;

use super::Api;
use super::stats::{Exposition, Sample, by_pod, name_of, seconds, started_at};
use crate::resources::node_usage;

/// Samples by family.
#[derive(Default)]
struct Families(BTreeMap<&'static str, Vec<Sample>>);

impl Families {
    fn put(&mut self, name: &'static str, labels: &str, value: String) {
        self.0.entry(name).or_default().push((labels.to_owned(), value));
    }

    fn bytes(&mut self, name: &'static str, labels: &str, value: Option<&UInt64Value>) {
        if let Some(value) = value {
            self.put(name, labels, value.value.to_string());
        }
    }

    fn of_group(&mut self, labels: &str, usage: &Usage) {
        self.put("container_cpu_usage_seconds_total", &with(labels, "cpu", "total"), seconds(usage.cpu_ns));
        self.put("container_memory_usage_bytes", labels, usage.memory_bytes.to_string());
        self.put("container_memory_working_set_bytes", labels, usage.working_set_bytes.to_string());
        self.put("container_memory_rss", labels, usage.rss_bytes.to_string());
        self.put("container_processes", labels, usage.pids.to_string());
    }
}

/// Kinds of families that are not gauges.
const COUNTERS: [&str; 2] = ["container_cpu_usage_seconds_total", "container_memory_failures_total"];

pub(super) async fn answer(api: &Api) -> Response {
    let stats = api.runtime.list_container_stats(None).await.unwrap_or_default();
    let mut families = Families::default();
    of_machine(api, &mut families);
    let by_pod = by_pod(&stats);
    let now = api.clock.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for pod in api.engine.active_pods() {
        let pod = api.engine.pod_by_uid(&pod.metadata.uid).unwrap_or(pod);
        let group = api.stats.groups.group(&pod);
        if let Ok(usage) = api.stats.groups.cgroups().usage(&group) {
            families.of_group(&labels(&group.to_string(), "", "", &pod, ""), &usage);
        }
        for one in by_pod.get(pod.metadata.uid.as_str()).into_iter().flatten() {
            of_container(&mut families, &group.to_string(), &pod, one, now);
        }
    }
    let mut out = Exposition::new(std::time::SystemTime::UNIX_EPOCH, api.clock.wall());
    for (name, samples) in &families.0 {
        let kind = if COUNTERS.contains(name) { "counter" } else { "gauge" };
        out.family(name, kind, samples);
    }
    let mut response = text(StatusCode::OK, out.text);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn of_machine(api: &Api, families: &mut Families) {
    let (proc, cgroups) = (Proc::system(), api.stats.groups.cgroups());
    let machine = format!(
        "{{boot_id={:?},machine_id={:?},system_uuid={:?}}}",
        proc.boot_id().unwrap_or_default(),
        proc.machine_id(),
        proc.system_uuid()
    );
    families.put("machine_cpu_cores", &machine, proc.cpus().unwrap_or_default().to_string());
    if let Ok(memory) = proc.memory() {
        families.put("machine_memory_bytes", &machine, memory.total_bytes.to_string());
        families.put("machine_swap_bytes", &machine, memory.swap_total_bytes.to_string());
    }
    let kernel = proc.kernel_version().unwrap_or_default();
    let version = component_base::version::GIT_VERSION;
    let labels_ = format!("{{cadvisorRevision=\"\",cadvisorVersion={version:?},kernelVersion={kernel:?}}}");
    families.put("cadvisor_version_info", &labels_, "1".to_owned());
    let nobody = Pod::default();
    if let Some(usage) = node_usage(cgroups, &proc) {
        families.of_group(&labels("/", "", "", &nobody, ""), &usage);
    }
    let all = api.stats.groups.all_pods();
    if let Ok(usage) = cgroups.usage(&all) {
        families.of_group(&labels(&all.to_string(), "", "", &nobody, ""), &usage);
    }
}

fn of_container(families: &mut Families, group: &str, pod: &Pod, stats: &ContainerStats, now: u64) {
    let id = stats.attributes.as_ref().map(|attributes| attributes.id.clone()).unwrap_or_default();
    let name = name_of(stats);
    let image = pod.status.container_statuses.iter().find(|status| status.name == name);
    let image = image.map(|status| status.image.as_str()).unwrap_or_default();
    let own = labels(&format!("{group}/{id}"), &id, image, pod, name);
    if let Some(used) = stats.cpu.as_ref().and_then(|cpu| cpu.usage_core_nano_seconds.as_ref()) {
        families.put("container_cpu_usage_seconds_total", &with(&own, "cpu", "total"), seconds(used.value));
    }
    if let Some(memory) = &stats.memory {
        families.bytes("container_memory_usage_bytes", &own, memory.usage_bytes.as_ref());
        families.bytes("container_memory_working_set_bytes", &own, memory.working_set_bytes.as_ref());
        families.bytes("container_memory_rss", &own, memory.rss_bytes.as_ref());
        for (kind, value) in [("pgfault", &memory.page_faults), ("pgmajfault", &memory.major_page_faults)] {
            let own = with(&with(&own, "failure_type", kind), "scope", "container");
            families.bytes("container_memory_failures_total", &own, value.as_ref());
        }
    }
    if let Some(layer) = &stats.writable_layer {
        families.bytes("container_fs_usage_bytes", &with(&own, "device", ""), layer.used_bytes.as_ref());
    }
    if let Some(started) = started_at(pod, name) {
        families.put("container_start_time_seconds", &own, started.unix_seconds().unwrap_or_default().to_string());
    }
    families.put("container_last_seen", &own, now.to_string());
    let limit = pod.spec.containers.iter().find(|container| container.name == name);
    let limit = limit.and_then(|container| container.resources.limits.get("memory")).map_or(0, |limit| limit.value());
    families.put("container_spec_memory_limit_bytes", &own, limit.to_string());
}

/// The labels that all families of containers have.
fn labels(group: &str, id: &str, image: &str, pod: &Pod, container: &str) -> String {
    let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
    format!("{{container={container:?},id={group:?},image={image:?},name={id:?},namespace={namespace:?},pod={name:?}}}")
}

/// Labels with one more.
fn with(labels: &str, name: &str, value: &str) -> String {
    format!("{},{name}={value:?}}}", labels.trim_end_matches('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_upstreams() {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        pod.metadata.namespace = "ns".into();
        let own = labels("/kubepods/podu", "abc", "app:1", &pod, "main");
        let expected =
            "{container=\"main\",id=\"/kubepods/podu\",image=\"app:1\",name=\"abc\",namespace=\"ns\",pod=\"web\"";
        assert_eq!(own, format!("{expected}}}"));
        assert_eq!(with(&own, "cpu", "total"), format!("{expected},cpu=\"total\"}}"));
    }
}
