//! A stock `kubectl`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sys::exec::{Command, Exec, LinuxExec, Output};
use tokio::time::Instant;

use crate::background::Background;

const DEADLINE: Duration = Duration::from_secs(180);
/// How long something that must come true by itself may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
const RETRY: Duration = Duration::from_millis(300);

/// `kubectl` with the cluster's kubeconfig, in a namespace.
#[derive(Clone)]
pub(crate) struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// Where it keeps what it discovered: with the cluster, as the next one has the same address.
    pub(crate) cache: PathBuf,
    pub(crate) namespace: String,
    pub(crate) exec: Arc<LinuxExec>,
}

impl Kubectl {
    /// The command for a line of arguments; single quotes keep blanks together.
    pub(crate) fn command(&self, line: &str) -> Command {
        let own = [
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--cache-dir={}", self.cache.display()),
            format!("--namespace={}", self.namespace),
        ];
        // Flags of its own must stand before what is passed on to a container.
        let command = Command::new(&self.program).args(own).args(words(line));
        command.env("KUBECTL_INTERACTIVE_DELETE", "false").deadline(DEADLINE)
    }

    /// Runs a command, whatever its outcome.
    pub(crate) async fn run(&self, line: &str) -> Output {
        self.run_command(&self.command(line)).await
    }

    /// Runs a prepared command, whatever its outcome.
    pub(crate) async fn run_command(&self, command: &Command) -> Output {
        self.exec.run(command).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a command that must succeed, and gives what it prints.
    pub(crate) async fn ok(&self, line: &str) -> String {
        let output = self.run(line).await;
        assert!(output.success(), "kubectl {line}: {} {}", output.error_text(), output.text());
        output.text().trim().to_owned()
    }

    /// Applies manifests given as text.
    pub(crate) async fn apply(&self, manifests: &str) {
        let output = self.run_command(&self.command("apply -f -").stdin(manifests)).await;
        assert!(output.success(), "kubectl apply: {}\n{manifests}", output.error_text());
    }

    /// Runs a command again and again until it succeeds and what it prints is as wanted.
    pub(crate) async fn until(&self, line: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.until_within(PATIENCE, line, wanted).await
    }

    /// As [`Self::until`], within a time of the caller's.
    pub(crate) async fn until_within(&self, deadline: Duration, line: &str, wanted: impl Fn(&str) -> bool) -> String {
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

    /// A command that runs beside the story until it is dropped.
    pub(crate) async fn background(&self, line: &str) -> Background {
        Background::start(&self.exec, self.command(line)).await
    }
}

/// Splits a line at blanks, except between single quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
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
