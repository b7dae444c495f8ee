//! A stock `kubectl`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sys::exec::{Command, Exec, LinuxExec, Output};
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_secs(180);
/// More than the largest document: the schema of everything, or all metrics.
const OUTPUT_LIMIT_BYTES: usize = 16 << 20;
/// How long something that must come true by itself may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);
const RETRY: Duration = Duration::from_millis(300);

/// `kubectl` with a cluster's kubeconfig, in a namespace.
#[derive(Clone)]
pub struct Kubectl {
    pub program: PathBuf,
    pub kubeconfig: PathBuf,
    /// Where it keeps what it discovered: with the cluster, as the next one has the same address.
    pub cache: PathBuf,
    /// Where its commands are, because a flag or the kubeconfig says so.
    pub namespace: String,
    /// What it is told besides, whatever the command.
    pub flags: Vec<String>,
    pub exec: Arc<LinuxExec>,
}

impl Kubectl {
    /// The command for a line of arguments; single quotes keep blanks together.
    pub fn command(&self, line: &str) -> Command {
        let own =
            [format!("--kubeconfig={}", self.kubeconfig.display()), format!("--cache-dir={}", self.cache.display())];
        // Flags of its own must stand before what is passed on to a container.
        let command = Command::new(&self.program).args(own).args(self.flags.iter().cloned()).args(words(line));
        command.env("KUBECTL_INTERACTIVE_DELETE", "false").deadline(DEADLINE).output_limit_bytes(OUTPUT_LIMIT_BYTES)
    }

    /// Runs a command, whatever its outcome.
    pub async fn run(&self, line: &str) -> Output {
        self.run_command(&self.command(line)).await
    }

    /// Runs a prepared command, whatever its outcome.
    pub async fn run_command(&self, command: &Command) -> Output {
        self.exec.run(command).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a command that must succeed, and gives what it prints.
    pub async fn ok(&self, line: &str) -> String {
        let output = self.run(line).await;
        assert!(output.success(), "kubectl {line}: {} {}", output.error_text(), output.text());
        output.text().trim().to_owned()
    }

    /// Applies manifests given as text.
    pub async fn apply(&self, manifests: &str) {
        let output = self.run_command(&self.command("apply -f -").stdin(manifests)).await;
        assert!(output.success(), "kubectl apply: {}\n{manifests}", output.error_text());
    }

    /// Runs a command again and again until it succeeds and what it prints is as wanted.
    pub async fn until(&self, line: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.until_within(PATIENCE, line, wanted).await
    }

    /// As [`Self::until`], within a time of the caller's.
    pub async fn until_within(&self, deadline: Duration, line: &str, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let output = self.run(line).await;
            let text = output.text().trim().to_owned();
            if output.success() && wanted(&text) {
                return text;
            }
            let late = start.elapsed() >= deadline;
            assert!(!late, "after {deadline:?} kubectl {line} still says: {text} {}", output.error_text());
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Where a program is.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let places = path.split(':').chain(["/opt/coxswain/bin", "/usr/sbin", "/sbin"]);
    places.map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// Where cargo puts the binaries that belong to a test program: beside the directory that the program is in.
#[must_use]
pub fn binaries() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().and_then(Path::parent).map(PathBuf::from).unwrap_or_default()
}

/// Splits a line at blanks, except between single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    words.extend(any.then_some(word));
    words
}
