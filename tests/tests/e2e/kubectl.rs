//! A stock `kubectl`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sys::exec::{Command, Exec, LinuxExec, Output};

const DEADLINE: Duration = Duration::from_secs(180);

/// `kubectl` with the cluster's kubeconfig.
#[derive(Clone)]
pub(crate) struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) exec: Arc<LinuxExec>,
}

impl Kubectl {
    /// Runs a command, whatever its outcome.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        let command = Command::new(&self.program).arg(kubeconfig).args(arguments.iter().map(ToString::to_string));
        self.exec.run(&command.deadline(DEADLINE)).await.expect("kubectl starts and ends in time")
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> impl Future<Output = ()> {
        let line = arguments.join(" ");
        let run = self.run(arguments);
        async move {
            let output = run.await;
            assert!(output.success(), "kubectl {line}: {}", output.error_text());
        }
    }

    /// What a command that must succeed prints.
    pub(crate) async fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.success(), "kubectl {}: {}", arguments.join(" "), output.error_text());
        output.text()
    }
}
