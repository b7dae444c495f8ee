//! A program that runs beside a story, such as a port-forward or a watch.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sys::exec::{Command, Daemon, Exec, LinuxExec};
use sys::process::Process;
use tests::kubectl::Kubectl;
use tokio::time::Instant;

const RETRY: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);
/// Tells the logs of programs that run at once apart.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running program; it ends with this value.
pub(crate) struct Background {
    process: Process,
    log: PathBuf,
    line: String,
}

impl Background {
    pub(crate) async fn start(exec: &LinuxExec, command: Command) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(&directory).expect("cargo's own directory can be made");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = directory.join(format!("e2e-background-{}-{number}.log", std::process::id()));
        let line = command.line();
        let process = exec.spawn(&Daemon::new(command, &log)).await.expect("the program starts");
        Self { process, log, line }
    }

    /// `kubectl`, until this is dropped.
    pub(crate) async fn kubectl(kubectl: &Kubectl, line: &str) -> Self {
        Self::start(&kubectl.exec, kubectl.command(line)).await
    }

    /// What it printed so far, on both streams.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it printed what is wanted; gives all it printed.
    pub(crate) async fn until(&self, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "{} prints only: {text}", self.line);
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Waits for its end; gives all it printed.
    pub(crate) async fn ended(&self) -> String {
        let ended = self.process.wait(PATIENCE).await.expect("it can be waited for");
        assert!(ended, "{} does not end: {}", self.line, self.text());
        self.text()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        crate::machine::kill(&self.process);
        let _ = std::fs::remove_file(&self.log);
    }
}
