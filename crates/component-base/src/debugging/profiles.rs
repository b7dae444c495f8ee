//! `/debug/pprof/...`: what the process can tell of itself without stacks, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use base::TaskGroup;
use http::{HeaderName, HeaderValue, StatusCode};

use super::Contention;
use crate::serving::{Response, text};

/// What there is.
pub(super) const NAMES: [&str; 6] = ["block", "cmdline", "goroutine", "heap", "mutex", "threadcreate"];

/// How Go's tools know an answer of theirs, be it a refusal.
const GO_PPROF: HeaderName = HeaderName::from_static("x-go-pprof");

/// The profile of this name, or that there is none.
pub(super) fn answer(name: &str, tasks: &TaskGroup, contention: Contention) -> Response {
    let threads = || Thread::all(Path::new("/proc/self/task"));
    match name {
        "cmdline" => text(StatusCode::OK, command_line()),
        "goroutine" => text(StatusCode::OK, of_tasks(tasks)),
        "heap" => text(StatusCode::OK, of_memory(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())),
        "threadcreate" => text(StatusCode::OK, of_threads(&threads())),
        "block" | "mutex" if contention == Contention::Told => text(StatusCode::OK, of_waits(name, &threads())),
        "block" | "mutex" => text(StatusCode::OK, format!("{name} profile: --contention-profiling is off\n")),
        _ => unknown(),
    }
}

/// As Go answers where it has no such profile.
fn unknown() -> Response {
    let mut response = text(StatusCode::NOT_FOUND, "Unknown profile\n");
    response.headers_mut().insert(GO_PPROF, HeaderValue::from_static("1"));
    response
}

fn command_line() -> String {
    let arguments: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join("\0")
}

/// The tasks of the process, which are what goroutines are there.
fn of_tasks(tasks: &TaskGroup) -> String {
    let alive = tokio::runtime::Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
    let mut page = format!("goroutine profile: total {alive}\n");
    for (name, count) in tasks.running() {
        let _ = writeln!(page, "{count} @ {name}");
    }
    page
}

/// The lines of `/proc/self/status` about memory.
fn of_memory(status: &str) -> String {
    let mut page = "heap profile: memory of the process, not of places that allocate\n".to_owned();
    for line in status.lines().filter(|line| line.starts_with("Vm") || line.starts_with("Rss")) {
        let _ = writeln!(page, "# {line}");
    }
    page
}

/// What the kernel knows of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Thread {
    name: String,
    /// Nanoseconds that it ran, and that it waited for a processor.
    ran: u64,
    waited: u64,
    /// How often it gave its processor up because it had to wait, and how often it was taken from it.
    voluntary: u64,
    involuntary: u64,
}

impl Thread {
    fn all(directory: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        // Threads may end while they are looked at.
        entries.filter_map(|entry| Self::read(&entry.path())).collect()
    }

    fn read(directory: &Path) -> Option<Self> {
        let read = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
        let schedule = read("schedstat").unwrap_or_default();
        let mut schedule = schedule.split_whitespace().map(|number| number.parse().unwrap_or(0));
        let (ran, waited) = (schedule.next().unwrap_or(0), schedule.next().unwrap_or(0));
        let status = read("status")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        let (voluntary, involuntary) = (number("voluntary_ctxt_switches:"), number("nonvoluntary_ctxt_switches:"));
        Some(Self { name: read("comm")?.trim().to_owned(), ran, waited, voluntary, involuntary })
    }
}

fn of_threads(threads: &[Thread]) -> String {
    let mut by_name = BTreeMap::<&str, (usize, u64)>::new();
    for thread in threads {
        let entry = by_name.entry(&thread.name).or_default();
        *entry = (entry.0 + 1, entry.1 + thread.ran);
    }
    let mut page = format!("threadcreate profile: total {}\n", threads.len());
    for (name, (count, ran)) in by_name {
        let _ = writeln!(page, "{count} @ {name} ran {ran} ns");
    }
    page
}

fn of_waits(profile: &str, threads: &[Thread]) -> String {
    let mut page = format!("{profile} profile: threads, not places in the code\n");
    for Thread { name, waited, voluntary, involuntary, .. } in threads {
        let _ = writeln!(
            page,
            "{name}: waited {waited} ns for a processor, gave it up {voluntary} times, was taken from it {involuntary} times"
        );
    }
    page
}
