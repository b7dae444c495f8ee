//! Who opens connections: this host itself, or somebody in between.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection.
pub type Connection = Box<dyn Stream>;

/// A connection to be.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Connection>> + Send + 'a>>;

/// Opens connections. Whoever asks bounds the time.
pub trait Connector: Debug + Send + Sync + 'static {
    /// Opens a connection to a port of a host, which is an address or a name.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;

    /// Whether connections begin at this host, so that names mean what they mean here.
    fn is_direct(&self) -> bool;
}

/// A connector that many share.
pub type SharedConnector = Arc<dyn Connector>;

/// Connections from this host to where they lead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl Direct {
    /// The connector, ready to be shared.
    #[must_use]
    pub fn shared() -> SharedConnector {
        Arc::new(Self)
    }
}

impl Connector for Direct {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            // Small requests must not wait for an acknowledgement; failure only costs latency.
            drop(stream.set_nodelay(true));
            Ok(Box::new(stream) as Connection)
        })
    }

    fn is_direct(&self) -> bool {
        true
    }
}

/// `host:port`, with brackets where the host needs them.
#[must_use]
pub fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
