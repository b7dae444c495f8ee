//! Groups in plain directories that look like each layout, and on the real machine.

use std::fs;
use std::time::Duration;

use super::super::{FakeCgroups, Limit, Pressure, Pressures, Stall, Throttling, destroy};
use super::*;
use crate::test_support::is_root;

fn group(path: &str) -> CgroupPath {
    CgroupPath::new(path).unwrap()
}

/// The kernel makes a group's files; in a plain directory the test does.
fn files(directory: &Path, names: &[(&str, &str)]) {
    fs::create_dir_all(directory).unwrap();
    for (name, content) in names {
        fs::write(directory.join(name), content).unwrap();
    }
}

fn content(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn paths_are_plain() {
    for bad in ["a/../b", "..", "a/./b"] {
        assert_eq!(CgroupPath::new(bad), None, "{bad}");
    }
    let deep = group("//kubepods/burstable/");
    assert_eq!(deep.to_string(), "/kubepods/burstable");
    assert_eq!(deep.child("pod1").map(|path| path.to_string()).as_deref(), Some("/kubepods/burstable/pod1"));
    assert_eq!(deep.lineage().map(|path| path.to_string()).collect::<Vec<_>>(), ["/kubepods", "/kubepods/burstable"]);
    assert_eq!(group("/").lineage().count(), 0);
}

#[test]
fn version_2_writes_one_file_per_limit() {
    let root = tempfile::tempdir().unwrap();
    files(root.path(), &[("cgroup.controllers", "cpu memory pids\n"), ("cgroup.subtree_control", "")]);
    let pod = root.path().join("pod");
    files(&pod, &[("cpu.max", ""), ("cpu.weight", ""), ("memory.max", ""), ("pids.max", "")]);
    files(&pod, &[("memory.min", "1"), ("memory.low", "1")]);
    let cgroups = LinuxCgroups::at(root.path());
    assert_eq!(cgroups.version(), Version::V2);
    cgroups.create(&group("pod")).unwrap();
    let limits = Limits {
        cpu_shares: Some(1024),
        cpu_quota_us: Some(Limit::To(20_000)),
        memory_bytes: Some(Limit::To(1 << 20)),
        memory_min_bytes: Some(0),
        memory_low_bytes: Some(4096),
        pids: Some(Limit::Unlimited),
        ..Limits::default()
    };
    cgroups.apply(&group("pod"), &limits).unwrap();
    assert_eq!((content(pod.join("memory.min")), content(pod.join("memory.low"))), ("0".into(), "4096".into()));
    assert_eq!(content(pod.join("cpu.max")), "20000 100000");
    assert_eq!(content(pod.join("cpu.weight")), "39");
    assert_eq!(content(pod.join("memory.max")), "1048576");
    assert_eq!(content(pod.join("pids.max")), "max");
    let huge = Limits { huge_pages_bytes: [("2MB".to_owned(), 1)].into(), ..Limits::default() };
    assert!(matches!(cgroups.apply(&group("pod"), &huge), Err(CgroupError::NoController("hugetlb"))));
}

#[test]
fn version_1_finds_shared_hierarchies_once() {
    let root = tempfile::tempdir().unwrap();
    for name in ["cpu,cpuacct", "memory"] {
        files(&root.path().join(name), &[("cgroup.procs", "")]);
    }
    for name in ["cpu", "cpuacct"] {
        std::os::unix::fs::symlink("cpu,cpuacct", root.path().join(name)).unwrap();
    }
    let cgroups = LinuxCgroups::at(root.path());
    assert_eq!(cgroups.version(), Version::V1);
    assert_eq!(cgroups.controllers(), ["cpu", "cpuacct", "memory"].map(str::to_owned).into());
    assert_eq!(cgroups.hierarchies().len(), 2);
    cgroups.create(&group("a/b")).unwrap();
    assert!(cgroups.exists(&group("a/b")));
    let pids = |limit| Limits { pids: Some(limit), ..Limits::default() };
    cgroups.apply(&group("a"), &pids(Limit::Unlimited)).unwrap();
    assert!(matches!(cgroups.apply(&group("a"), &pids(Limit::To(1))), Err(CgroupError::NoController("pids"))));
    assert_eq!(cgroups.children(&group("a")).unwrap(), ["b".to_owned()].into());
    cgroups.remove(&group("a")).unwrap();
    assert!(!cgroups.exists(&group("a")));
}

#[test]
fn usage_of_version_2() {
    let root = tempfile::tempdir().unwrap();
    files(root.path(), &[("cgroup.controllers", "cpu memory\n")]);
    let stat = "anon 4096\nfile 100\ninactive_file 600\npgfault 7\npgmajfault 2\n";
    files(
        &root.path().join("g"),
        &[
            ("cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 9\nnr_throttled 4\nthrottled_usec 6\n"),
            ("memory.current", "1000\n"),
            ("memory.events", "oom 2\noom_kill 1\n"),
            ("memory.stat", stat),
            ("memory.swap.current", "70\n"),
            ("cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=1.50 total=8\n"),
        ],
    );
    let expected = Usage {
        cpu_ns: 5000,
        memory_bytes: 1000,
        working_set_bytes: 400,
        rss_bytes: 4096,
        page_faults: 7,
        major_page_faults: 2,
        pids: 0,
        user_ns: 3000,
        system_ns: 2000,
        cache_bytes: 100,
        swap_bytes: 70,
        oom_kills: 1,
        throttling: Throttling { periods: 9, throttled_periods: 4, throttled_ns: 6000 },
        pressures: Pressures {
            cpu: Some(Pressure { some: Stall { shares: [0, 0, 150], total_us: 8 }, full: Stall::default() }),
            ..Pressures::default()
        },
    };
    let cgroups = LinuxCgroups::at(root.path());
    assert_eq!(cgroups.usage(&group("g")).unwrap(), expected);
    let CpuAndMemory { cpu_ns, memory_bytes, working_set_bytes } = cgroups.cpu_and_memory(&group("g")).unwrap();
    let whole = (expected.cpu_ns, expected.memory_bytes, expected.working_set_bytes);
    assert_eq!((cpu_ns, memory_bytes, working_set_bytes), whole);
    assert!(cgroups.cpu_and_memory(&group("gone")).is_err());
}

#[test]
fn usage_of_version_1() {
    let root = tempfile::tempdir().unwrap();
    let cpu = [
        ("cgroup.procs", ""),
        ("cpuacct.usage", "5\n"),
        ("cpuacct.usage_user", "3\n"),
        ("cpuacct.usage_sys", "2\n"),
        ("cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 6\n"),
    ];
    files(&root.path().join("cpu,cpuacct"), &cpu);
    for name in ["cpu", "cpuacct"] {
        std::os::unix::fs::symlink("cpu,cpuacct", root.path().join(name)).unwrap();
    }
    let stat = "cache 1\ntotal_cache 100\ntotal_rss 4096\ntotal_swap 70\ntotal_inactive_file 600\n";
    let memory = [
        ("cgroup.procs", ""),
        ("memory.usage_in_bytes", "1000\n"),
        ("memory.stat", stat),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
    ];
    files(&root.path().join("memory"), &memory);
    let expected = Usage {
        cpu_ns: 5,
        user_ns: 3,
        system_ns: 2,
        throttling: Throttling { periods: 9, throttled_periods: 4, throttled_ns: 6 },
        memory_bytes: 1000,
        working_set_bytes: 400,
        rss_bytes: 4096,
        cache_bytes: 100,
        swap_bytes: 70,
        oom_kills: 1,
        ..Usage::default()
    };
    let cgroups = LinuxCgroups::at(root.path());
    assert_eq!(cgroups.usage(&group("")).unwrap(), expected);
    let CpuAndMemory { cpu_ns, memory_bytes, working_set_bytes } = cgroups.cpu_and_memory(&group("")).unwrap();
    let whole = (expected.cpu_ns, expected.memory_bytes, expected.working_set_bytes);
    assert_eq!((cpu_ns, memory_bytes, working_set_bytes), whole);
}

/// The same steps on any implementation that is empty at first.
async fn contract(cgroups: &dyn Cgroups, top: &CgroupPath, pid: u32) {
    let pod = top.child("pod1").unwrap();
    assert!(!cgroups.exists(&pod));
    cgroups.create(&pod).unwrap();
    cgroups.create(&pod).unwrap();
    assert!(cgroups.exists(top) && cgroups.exists(&pod));
    assert_eq!(cgroups.children(top).unwrap(), ["pod1".to_owned()].into());
    let limits = Limits {
        cpu_shares: Some(102),
        cpu_quota_us: Some(Limit::To(50_000)),
        memory_bytes: Some(Limit::To(64 << 20)),
        pids: Some(Limit::To(100)),
        ..Limits::default()
    };
    cgroups.apply(&pod, &limits).unwrap();
    cgroups.add_process(&pod, pid).unwrap();
    assert_eq!(cgroups.processes(top).unwrap(), [pid].into());
    assert!(matches!(cgroups.remove(top), Err(CgroupError::Busy { .. })));
    cgroups.usage(&pod).unwrap();
    destroy(cgroups, top, Duration::from_secs(5)).await.unwrap();
    assert!(!cgroups.exists(top));
    cgroups.remove(top).unwrap();
}

#[tokio::test]
async fn the_fake_keeps_the_contract() {
    contract(&FakeCgroups::new(), &group("fake"), 42).await;
}

#[tokio::test]
async fn the_machine_keeps_the_contract() {
    use crate::exec::{Command, Daemon, Exec, LinuxExec};
    if !is_root() {
        return;
    }
    let cgroups = LinuxCgroups::detect();
    if !cgroups.controllers().is_superset(&["cpu", "memory", "pids"].map(str::to_owned).into()) {
        return test_facts::skipped("no cpu, memory and pids controllers");
    }
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(Command::with("sleep", &["60"]), dir.path().join("log"));
    let process = LinuxExec.spawn(&daemon).await.unwrap();
    contract(&cgroups, &group(&format!("coxswain-test-{}", process.pid())), process.pid()).await;
    assert!(process.wait(Duration::from_secs(5)).await.unwrap());
}
