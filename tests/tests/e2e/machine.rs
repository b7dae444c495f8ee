//! What there is on the machine besides the cluster's own view of it. Others have containers there, too, which come and go
//! as they like: what can only be theirs is not looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use sys::exec::{Command, Exec, LinuxExec};
use sys::proc::Proc;
use sys::process::Process;

/// What the names of a cluster's mounts, bridges and pod networks have in common.
const MARK: &str = "coxswain";

/// Things that a cluster makes and must take away again, each as a line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    things: BTreeSet<String>,
}

impl Machine {
    /// Mounts, links, network namespaces, tables and rules of the packet filter, control groups.
    pub(crate) async fn look(exec: &LinuxExec) -> Self {
        let mut things = BTreeSet::new();
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        // The third word is the kind; sizes and such behind it may change.
        let mount = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
        things.extend(mounts.lines().map(mount).filter(|line| line.contains(MARK)).map(|line| format!("mount {line}")));
        let links = output(exec, &["ip", "-oneline", "link"]).await;
        things.extend(links.lines().filter_map(link).map(|name| format!("link {name}")));
        let routes = output(exec, &["ip", "route"]).await;
        things.extend(routes.lines().map(|line| format!("route {}", line.trim())));
        let namespaces = output(exec, &["ip", "netns", "list"]).await;
        let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        things.extend(namespaces.lines().map(|line| format!("network namespace {}", name(line))));
        things.extend(rules(&output(exec, &["nft", "list", "ruleset"]).await));
        things.extend(control_groups().into_iter().map(|group| format!("control group {group}")));
        let results = std::fs::read_dir("/var/lib/cni/results").into_iter().flatten().flatten();
        let results = results.filter(|entry| entry.file_name().to_string_lossy().starts_with(MARK));
        things.extend(results.map(|entry| format!("file {}", entry.path().display())));
        Self { things }
    }

    /// What is here and was not there before.
    pub(crate) fn beyond(&self, before: &Self) -> Vec<String> {
        self.things.difference(&before.things).cloned().collect()
    }
}

/// The name of a link, unless it is plugged into a bridge of somebody else's pods.
fn link(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let name = words.next()?.trim_end_matches(':').to_owned();
    let bridge = words.skip_while(|word| *word != "master").nth(1);
    let is_foreign = name.starts_with("veth") && bridge.is_some_and(|bridge| !bridge.starts_with(MARK));
    (!is_foreign).then_some(name)
}

/// The sockets of the shims below a cluster's state directory. All runtimes of a machine have theirs in one place, where
/// nothing says whose they are.
pub(crate) fn shim_sockets(state: &Path) -> BTreeSet<PathBuf> {
    let nodes = entries(state).into_iter().map(|node| node.join("containerd/io.containerd.runtime.v2.task/k8s.io"));
    let bundles = nodes.flat_map(|path| entries(&path));
    let addresses = bundles.filter_map(|bundle| std::fs::read_to_string(bundle.join("address")).ok());
    addresses.filter_map(|text| Some(PathBuf::from(text.trim().strip_prefix("unix://")?))).collect()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

async fn output(exec: &LinuxExec, words: &[&str]) -> String {
    let (program, arguments) = words.split_first().expect("a command has a program");
    let output = exec.run(&Command::with(program, arguments)).await;
    output.unwrap_or_else(|error| panic!("{error}")).text()
}

/// The rules with the table and chain that they are in. The empty tables and base chains that `iptables` makes on every
/// use, also when it only lists, and never takes away are no rules.
fn rules(text: &str) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    let mut place: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_policy = line.starts_with("type ") && line.contains("policy accept");
        match line {
            "" => {}
            "}" => drop(place.pop()),
            line if line.ends_with('{') => place.push(line.trim_end_matches([' ', '{'])),
            line if is_policy || line.starts_with('#') => {}
            line => drop(rules.insert(format!("rule {}: {}", place.join(" "), without_counts(line)))),
        }
    }
    rules
}

/// Counters differ from one look to the next.
fn without_counts(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        kept.push(word);
        if matches!(word, "packets" | "bytes") {
            words.next();
        }
    }
    kept.join(" ")
}

/// The top control groups of every hierarchy; what a cluster makes is below groups of its own there.
fn control_groups() -> BTreeSet<String> {
    let below = |path: &Path| -> Vec<_> { entries(path).into_iter().filter(|path| path.is_dir()).collect() };
    let hierarchies = below(Path::new("/sys/fs/cgroup"));
    let groups = hierarchies.iter().flat_map(|path| below(path));
    groups.chain(hierarchies.clone()).map(|path| path.display().to_string()).collect()
}

/// Processes with an argument that names something below a place.
pub(crate) fn processes_of(place: &Path) -> Vec<(u32, String)> {
    let proc = Proc::system();
    let mark = format!("{}/", place.display());
    let line = |pid: u32| Some((pid, proc.command_line(pid).ok()?.join(" ")));
    let pids = proc.pids().expect("processes can be listed").into_iter();
    pids.filter_map(line).filter(|(pid, line)| *pid != std::process::id() && line.contains(&mark)).collect()
}

/// SIGKILL, whatever it does.
pub(crate) fn kill(process: &Process) {
    if process.is_alive() {
        kill_number(process.pid());
    }
}

/// SIGKILL to the process that has this number.
pub(crate) fn kill_number(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Lets a process stand still until [`go_on`].
pub(crate) fn stop(process: &Process) {
    signal(process.pid(), Signal::STOP);
}

/// Lets a process that stands still go on.
pub(crate) fn go_on(process: &Process) {
    signal(process.pid(), Signal::CONT);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that is gone already has nothing to be told.
        let _ = kill_process(pid, signal);
    }
}
