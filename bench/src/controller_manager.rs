//! A `kube-controller-manager` process of its own for one run, with the administrator's credentials and without rate limits.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::api_server::free_port;
use crate::child::Child;
use crate::identity::Identity;

/// A running controller manager; it ends with the value.
pub(crate) struct ControllerManager {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl ControllerManager {
    /// Starts `bin_dir/kube-controller-manager` with these controllers and flags against the server of a kubeconfig; its log
    /// is below `directory`.
    pub(crate) fn start(
        bin_dir: &Path,
        directory: &Path,
        identity: &Identity,
        kubeconfig: &Path,
        controllers: &[&str],
        flags: &[&str],
    ) -> Result<Self> {
        let (port, log, kubeconfig) =
            (free_port()?, directory.join("kube-controller-manager.log"), kubeconfig.display());
        let mut arguments = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--client-ca-file={}", identity.file("ca.crt").display()),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".to_owned(),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--kube-api-qps=10000".to_owned(),
            "--kube-api-burst=10000".to_owned(),
        ];
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        let process = Child::start(&bin_dir.join("kube-controller-manager"), arguments, &log)?;
        Ok(Self { process, port, log })
    }

    /// The process, for [`usage`](crate::usage).
    pub(crate) fn process(&self) -> &Child {
        &self.process
    }

    /// The port of the loopback address that it serves HTTPS on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where its log is.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Kills it and waits for its end.
    pub(crate) async fn stop(self) -> Result<()> {
        self.process.stop().await
    }
}
