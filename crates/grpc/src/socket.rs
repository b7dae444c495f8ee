//! Unix sockets, by a path or by a name that is in no directory.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream as BlockingStream};
use std::path::{Path, PathBuf};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

const SCHEME: &str = "unix:";

/// A socket of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnixSocket {
    /// A file.
    Path(PathBuf),
    /// A name in the abstract namespace, `@name`.
    Abstract(String),
}

/// A text that names no socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid endpoint {0:?}, expected unix:///path")]
pub struct NoSocket(String);

impl UnixSocket {
    /// Reads `unix:///path` or `unix:///@name`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_url(url: &str) -> Result<Self, NoSocket> {
        let rest = url.strip_prefix(SCHEME).ok_or_else(|| NoSocket(url.to_owned()))?;
        // Of a URL the part before the path is somebody's host, which sockets have none of.
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
            None => rest,
        };
        match path.strip_prefix("/@") {
            Some(name) if !name.is_empty() => Ok(Self::Abstract(name.to_owned())),
            _ if path.len() > 1 => Ok(Self::at(path)),
            _ => Err(NoSocket(url.to_owned())),
        }
    }

    /// The socket at a path.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self::Path(path.as_ref().to_owned())
    }

    /// Its address, as the system knows it.
    ///
    /// # Errors
    /// When the path or the name is longer than sockets' are, or is none.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Path(path) => SocketAddr::from_pathname(path),
            Self::Abstract(name) => SocketAddr::from_abstract_name(name),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        match self {
            Self::Path(path) => UnixStream::connect(path).await,
            Self::Abstract(_) => {
                // It is there or it is not: nothing to wait for.
                let stream = BlockingStream::connect_addr(&self.address()?)?;
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream)
            }
        }
    }

    /// A channel that connects at the first call, and again whenever the connection is lost. Must be called within a
    /// runtime.
    #[must_use]
    pub fn channel(&self) -> Channel {
        let socket = self.clone();
        // Nobody looks at the name: the connection goes to the socket.
        Endpoint::from_static("http://localhost").connect_with_connector_lazy(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { socket.connect().await.map(TokioIo::new) }
        }))
    }
}

impl std::fmt::Display for UnixSocket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(formatter, "{}", path.display()),
            Self::Abstract(name) => write!(formatter, "@{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[test]
    fn urls_name_sockets() {
        let cases = [
            ("unix:///run/kms.sock", Some(UnixSocket::at("/run/kms.sock"))),
            ("unix:/run/kms.sock", Some(UnixSocket::at("/run/kms.sock"))),
            ("unix://host/kms.sock", Some(UnixSocket::at("/kms.sock"))),
            ("unix:///@kms", Some(UnixSocket::Abstract("kms".into()))),
            ("unix:///", None),
            ("unix://host", None),
            ("unix:", None),
            ("tcp://127.0.0.1:1", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(UnixSocket::from_url(url).ok(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn abstract_names_are_connected_to() {
        let name = format!("coxswain-test-{}", std::process::id());
        let socket = UnixSocket::Abstract(name.clone());
        assert!(socket.connect().await.is_err(), "nobody listens yet");
        let listener = std::os::unix::net::UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap());
        let listener = listener.unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        let (connected, accepted) = tokio::join!(socket.connect(), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }
}
