//! A real etcd for one run: one member with its data below the run's directory, on free ports.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::api_server::free_port;
use crate::child::Child;

/// Where `make deps` puts tools that are newer than the system's.
const TOOLS: &str = "/opt/coxswain/bin";

/// A running etcd; it ends with the value.
#[derive(Debug)]
pub struct Etcd {
    process: Child,
    url: String,
}

impl Etcd {
    /// Starts `binary`; it answers some moments later, which clients wait for.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(binary: &Path, directory: &Path) -> Result<Self> {
        let url = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let arguments = [
            "--name=bench".to_owned(),
            format!("--data-dir={}", directory.join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=bench={peer}"),
            "--quota-backend-bytes=4294967296".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let process = Child::start(binary, arguments, &directory.join("etcd.log"))?;
        Ok(Self { process, url })
    }

    /// Its address for clients.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id, for [`usage`](crate::usage).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// The etcd to use: the one that was named, else `$ETCD`, else `etcd` in the path; nothing where there is none.
#[must_use]
pub fn find(named: Option<PathBuf>) -> Option<PathBuf> {
    let named = named.or_else(|| std::env::var_os("ETCD").map(PathBuf::from));
    if named.is_some() {
        return named;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([PathBuf::from(TOOLS)]);
    directories.map(|directory| directory.join("etcd")).find(|file| file.is_file())
}
