//! The bare server as a process of its own, and what it is told to send.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base::TaskGroup;
use bytes::Bytes;
use http::Method;
use rustls::ClientConfig;

use crate::api_server::free_port;
use crate::child::Child;
use crate::https::{Connection, JSON};
use crate::identity::Identity;

/// How often and at which distance the client tries to reach the peer that was just started.
const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// Starts this program again as one of its servers, by name, and connects to it.
pub(super) async fn start(
    name: &str,
    directory: &Path,
    identity: &Identity,
    more: &[&OsStr],
    (tls, tasks): (&Arc<ClientConfig>, &TaskGroup),
) -> Result<(Child, u16, Connection)> {
    let port = free_port()?;
    let own = [OsString::from(name), port.to_string().into(), identity.directory().as_os_str().to_owned()];
    let arguments = own.into_iter().chain(more.iter().map(|&argument| argument.to_owned()));
    let program = std::env::var_os("BENCH_API").map_or_else(std::env::current_exe, |path| Ok(path.into()))?;
    let process = Child::start(&program, arguments, &directory.join(format!("{name}.log")))?;
    for _ in 0..ATTEMPTS {
        if let Ok(connection) = Connection::open(port, tls, tasks).await {
            return Ok((process, port, connection));
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("the {name} does not listen")
}

/// The running peer; it ends with the value.
pub(super) struct Peer {
    process: Child,
    port: u16,
    bodies: PathBuf,
    pub(super) connection: Connection,
}

impl Peer {
    pub(super) async fn start(
        directory: &Path,
        identity: &Identity,
        tls: &Arc<ClientConfig>,
        tasks: &TaskGroup,
    ) -> Result<Self> {
        let bodies = directory.join("bodies");
        std::fs::create_dir_all(&bodies)?;
        let (process, port, connection) =
            start("bare-server", directory, identity, &[bodies.as_os_str()], (tls, tasks)).await?;
        Ok(Self { process, port, bodies, connection })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Has the peer answer `/{name}` with these bytes, and checks that it does.
    pub(super) async fn serve(&self, name: &str, body: &Bytes) -> Result<()> {
        std::fs::write(self.bodies.join(name), body).context("writing a body for the peer")?;
        let answer = self.connection.call(Method::PUT, &format!("/{name}"), JSON, Bytes::new()).await?;
        answer.ok().map(drop)
    }
}
