//! A process under measurement: it ends with the benchmark.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// A started program; dropping it kills it.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    pid: u32,
}

impl Child {
    /// Starts `program`; both its outputs go to the file `log`. To be called on a runtime.
    ///
    /// # Errors
    /// The program or its log cannot be opened, or it ended at once.
    pub fn start<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let errors = output.try_clone().context("sharing the log")?;
        #[expect(clippy::disallowed_methods, reason = "a benchmark keeps the child's pid and kills it on drop")]
        let mut command = Command::new(program);
        command.args(arguments).stdin(std::process::Stdio::null()).stdout(output).stderr(errors).kill_on_drop(true);
        let inner = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let pid = inner.id().context("the process ended at once")?;
        Ok(Self { inner, pid })
    }

    /// Its process id, for [`usage`](crate::usage).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// It cannot be signalled.
    pub async fn stop(mut self) -> Result<()> {
        self.inner.kill().await.context("killing the process")
    }
}

/// Does the work of a benchmark until it is done or this process is asked to end, so that no child outlives it.
///
/// # Errors
/// What the work fails with, or that it was ended.
pub async fn unless_ended<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        done = work => done,
        _ = terminated.recv() => bail!("terminated before the end"),
        _ = interrupted.recv() => bail!("interrupted before the end"),
    }
}
