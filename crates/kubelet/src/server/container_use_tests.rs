//! What containers use is told from groups in plain directories that look like each layout, and by the runtime for the rest.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base::TokioClock;
use node_api::cri::fake::FakeRuntime;
use node_api::cri::{Code, CriError};
use sys::cgroups::LinuxCgroups;

use super::stream_tests::{Node, Nothing, api};
use super::*;
use crate::engine::test_node::{TestNode, engine, settings};
use crate::resources::{CgroupNames, CgroupSettings, Driver, PodGroups};

/// How long a processor's time is counted together.
const SHORT: Duration = Duration::from_millis(100);
const STATS: &str = "list_container_stats";
/// What the runtime says that the container uses.
const TOLD_BYTES: u64 = 5 << 20;

/// How the machine lays out its groups, and what is there of the container's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    V1,
    V2,
    /// Version 2, with groups that systemd makes.
    Slices,
    /// Version 2, where the container's group is elsewhere.
    Elsewhere,
    /// Version 2, where nothing ever ran in the group.
    Idle,
    /// Version 1, without the controller of memory.
    Memoryless,
}

impl Layout {
    fn driver(self) -> Driver {
        if self == Self::Slices { Driver::Systemd } else { Driver::Cgroupfs }
    }

    /// Lays out the hierarchies that the machine mounts.
    fn mount(self, root: &Path) {
        let files: &[&str] = match self {
            Self::V1 => &["cpuacct/cgroup.procs", "memory/cgroup.procs"],
            Self::Memoryless => &["cpuacct/cgroup.procs"],
            Self::V2 | Self::Slices | Self::Elsewhere | Self::Idle => &["cgroup.controllers"],
        };
        files.iter().for_each(|file| write(&root.join(file), ""));
    }

    /// Lets a container of a pod of best effort run.
    fn run(self, root: &Path, uid: &str, id: &str) {
        let pod = format!("kubepods/besteffort/pod{uid}");
        let memory = [("memory.stat", "total_inactive_file 600\ninactive_file 600\nanon 7\ntotal_rss 7\n")];
        let files = |directory: &str, used: &[(&str, &str)]| {
            used.iter().for_each(|(file, text)| write(&root.join(directory).join(file), text));
        };
        match self {
            Self::V1 | Self::Memoryless => files(&format!("cpuacct/{pod}/{id}"), &[("cpuacct.usage", "2500000000\n")]),
            Self::V2 => files(&format!("{pod}/{id}"), &[("cpu.stat", "usage_usec 2500000\n")]),
            Self::Idle => files(&format!("{pod}/{id}"), &[("cpu.stat", "usage_usec 0\n")]),
            Self::Elsewhere => files(&format!("{pod}/other-{id}"), &[("cpu.stat", "usage_usec 2500000\n")]),
            Self::Slices => files(&slice(uid, id), &[("cpu.stat", "usage_usec 2500000\n")]),
        }
        let of_memory = match self {
            Self::Memoryless => return,
            Self::V1 => format!("memory/{pod}/{id}"),
            Self::Slices => slice(uid, id),
            Self::V2 | Self::Idle | Self::Elsewhere => format!("{pod}/{id}"),
        };
        if self != Self::Elsewhere {
            let limits = [("memory.limit_in_bytes", "4096\n"), ("memory.max", "4096\n")];
            files(&of_memory, &memory);
            files(&of_memory, &limits);
            files(&of_memory, &[("memory.current", "1000\n"), ("memory.usage_in_bytes", "1000\n")]);
        }
    }
}

fn slice(uid: &str, id: &str) -> String {
    let uid = uid.replace('-', "_");
    format!("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice/cri-containerd-{id}.scope")
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A node with one pod, whose only container runs, in groups below a directory.
async fn start(layout: Layout, root: &Path, source: Source) -> Node {
    layout.mount(root);
    let cgroups = Arc::new(LinuxCgroups::at(root));
    let settings = CgroupSettings::new(CgroupNames::new(layout.driver(), "/").unwrap(), true, true, SHORT, -1);
    let node = Node::start_as(false, |api| {
        let groups = PodGroups::new(cgroups, settings);
        let images = api.stats.images.clone();
        let stats = Stats::new("node1", Path::new("/"), groups, images, api.stats.boot, 0, Arc::new(Nothing));
        Api { stats, source, ..api }
    })
    .await;
    node.runtime.set_memory("main", TOLD_BYTES);
    let ids = node.runtime.container_ids();
    let [id] = ids.as_slice() else { panic!("{ids:?}") };
    layout.run(root, &node.uid, id);
    let _ = node.runtime.take_calls();
    node
}

fn asked(node: &Node) -> usize {
    node.runtime.take_calls().iter().filter(|call| call.operation == STATS).count()
}

/// The value of the one sample of a family.
fn value<'a>(text: &'a str, family: &str) -> Option<&'a str> {
    let mut samples = text.lines().filter_map(|line| line.strip_prefix(family)?.strip_prefix('{')?.split_once("} "));
    let sample = samples.next();
    assert!(samples.next().is_none(), "{family} twice in {text}");
    sample.map(|(_, value)| value.split_once(' ').map_or(value, |(value, _)| value))
}

#[tokio::test(start_paused = true)]
async fn the_runtime_is_asked_only_where_groups_do_not_tell() {
    // (layout, whether the group tells)
    for (layout, tells) in [
        (Layout::V1, true),
        (Layout::V2, true),
        (Layout::Slices, true),
        (Layout::Elsewhere, false),
        (Layout::Idle, false),
        (Layout::Memoryless, false),
    ] {
        let root = tempfile::tempdir().unwrap();
        let node = start(layout, root.path(), Source::Groups).await;
        let told = TOLD_BYTES.to_string();
        let (cpu, memory) = if tells { ("2.500000000", "400") } else { ("0.000000000", told.as_str()) };
        let resource = node.get("/metrics/resource").await;
        assert_eq!(asked(&node), usize::from(!tells), "{layout:?}");
        assert_eq!(value(&resource, "container_cpu_usage_seconds_total"), Some(cpu), "{layout:?} {resource}");
        assert_eq!(value(&resource, "container_memory_working_set_bytes"), Some(memory), "{layout:?} {resource}");
        let labels = "container_cpu_usage_seconds_total{container=\"main\",namespace=\"default\",pod=\"web-node1\"} ";
        assert!(resource.contains(labels), "{resource}");
        assert!(value(&resource, "container_start_time_seconds").is_some() && resource.contains("scrape_error 0\n"));

        let summary = node.get("/stats/summary?only_cpu_and_memory=true").await;
        assert_eq!(asked(&node), usize::from(!tells), "{layout:?}");
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let container = &summary["pods"][0]["containers"][0];
        assert_eq!(container["name"], "main", "{summary}");
        assert_eq!(container["memory"]["workingSetBytes"].to_string(), memory, "{layout:?} {summary}");
        if tells {
            let own = ["usageBytes", "rssBytes", "availableBytes"].map(|part| container["memory"][part].as_u64());
            assert_eq!(own, [Some(1000), Some(7), Some(3696)], "{layout:?} {container}");
            assert_eq!(container["cpu"]["usageCoreNanoSeconds"].as_u64(), Some(2_500_000_000));
        }
        node.get("/stats/summary").await;
        assert_eq!(asked(&node), 1, "it tells of writable layers");
        node.tasks.shutdown(Duration::from_secs(5)).await;
        // The next one starts on a clock that jumps.
        tokio::time::pause();
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_fails_matters_only_where_it_is_needed() {
    for (layout, expected) in
        [(Layout::V2, "resource_scrape_error 0\n"), (Layout::Elsewhere, "resource_scrape_error 1\n")]
    {
        let root = tempfile::tempdir().unwrap();
        let node = start(layout, root.path(), Source::Groups).await;
        node.runtime.fail_always(STATS, Some(CriError::rpc(STATS, Code::Unavailable, "down")));
        let resource = node.get("/metrics/resource").await;
        assert!(resource.contains(expected), "{layout:?} {resource}");
        node.tasks.shutdown(Duration::from_secs(5)).await;
        tokio::time::pause();
    }
}

#[tokio::test(start_paused = true)]
async fn rates_follow_from_readings() {
    let root = tempfile::tempdir().unwrap();
    let node = start(Layout::V2, root.path(), Source::Groups).await;
    let rate = || async {
        let summary = node.get("/stats/summary?only_cpu_and_memory=true").await;
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        summary["pods"][0]["containers"][0]["cpu"]["usageNanoCores"].as_u64()
    };
    assert_eq!((rate().await, rate().await), (None, Some(0)), "a rate takes two readings");
    node.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_container_that_has_ended_is_left_out_and_nobody_asked_for_it() {
    let root = tempfile::tempdir().unwrap();
    let node = start(Layout::V2, root.path(), Source::Groups).await;
    let ended = node.runtime.container_ids().remove(0);
    node.runtime.exit_container(&ended, 0, "Completed");
    fs::remove_dir_all(root.path().join("kubepods/besteffort")).unwrap();
    let resource = node.get("/metrics/resource").await;
    assert_eq!(value(&resource, "container_cpu_usage_seconds_total"), None, "{resource}");
    assert!(resource.contains("resource_scrape_error 0\n"), "{resource}");
    let _ = node.runtime.take_calls();
    // It is started anew, and the runtime keeps the one that has ended.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Some(id) = node.runtime.container_ids().into_iter().find(|id| *id != ended) else { continue };
        Layout::V2.run(root.path(), &node.uid, &id);
        let resource = node.get("/metrics/resource").await;
        if asked(&node) == 0 && value(&resource, "container_cpu_usage_seconds_total") == Some("2.500000000") {
            assert!(node.runtime.container_ids().contains(&ended));
            node.tasks.shutdown(Duration::from_secs(5)).await;
            return;
        }
    }
    panic!("the runtime is asked for the container that has ended");
}

#[tokio::test(start_paused = true)]
async fn groups_are_left_alone_where_the_runtime_is_to_tell() {
    let root = tempfile::tempdir().unwrap();
    let node = start(Layout::V2, root.path(), Source::Runtime).await;
    for path in ["/metrics/resource", "/stats/summary?only_cpu_and_memory=true"] {
        let answer = node.get(path).await;
        let calls: Vec<_> = node.runtime.take_calls().into_iter().map(|call| call.operation).collect();
        assert!(calls.contains(&"list_podsandbox_stats") && !calls.contains(&STATS), "{path} {calls:?}");
        assert!(answer.contains(&TOLD_BYTES.to_string()), "{path} {answer}");
    }
    node.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn the_runtime_is_asked_while_nobody_has_seen_what_runs() {
    for (fails, expected) in [(true, 1), (false, 0)] {
        let root = tempfile::tempdir().unwrap();
        let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
        let runtime = Arc::new(FakeRuntime::new(clock.clone(), &TaskGroup::new("runtime")));
        if fails {
            runtime.fail_always("list_containers", Some(CriError::rpc("list_containers", Code::Unknown, "stuck")));
        }
        let node = Arc::new(TestNode::default());
        let engine = engine(settings(root.path()), &node, runtime.clone(), runtime.clone(), clock.clone(), &tasks);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let api = api(engine, runtime.clone(), clock, &tasks, false);
        let figures = container_use::figures(&api, container_use::brief).await.unwrap();
        let asked = runtime.take_calls().iter().filter(|call| call.operation == STATS).count();
        assert_eq!((asked, figures.containers.len()), (expected, 0), "{fails}");
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}
