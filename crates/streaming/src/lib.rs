//! Exec, attach and port-forward as bytes on the wire: SPDY/3.1 and WebSocket channels, for servers, clients and
//! proxies.
//!
//! A server turns a request into a session: [`accept_remote_command`] gives the 101 answer, [`RemoteCommand::start`] the
//! streams, whichever protocol the client speaks; [`accept_port_forward`] and [`PortForward::start`] likewise. A client
//! dials ([`dial_spdy`], [`dial_websocket`]) over a connection of its own and gets a [`ClientCommand`] or a
//! [`PortForwardClient`]. A proxy passes upgrades on ([`proxy_upgrade`]), takes a tunnel off ([`proxy_tunnel`]) or
//! translates WebSocket to SPDY ([`translate`]). Logs and watches go one way ([`send_log`], [`send_events`]).
//!
//! Deliberately not here: who may do this, where the backend is, TLS. See
//! <https://kubernetes.io/blog/2024/08/20/websockets-transition/> and KEP-4006.

mod activity;
mod command_status;
mod dial;
mod event_stream;
mod handshake;
mod log_stream;
mod one_way;
mod pipe;
mod port_forward;
mod port_forward_client;
mod protocol;
mod proxy;
mod remote_client;
mod remote_command;
mod resize;
pub mod spdy;
mod splice;
mod websocket;

#[cfg(test)]
mod session_tests;

use std::time::Duration;

pub use command_status::{CommandStatus, ErrorStreamError, StatusForm};
pub use dial::{DialError, Refused, dial_spdy, dial_websocket, pass_on, spdy_request, upgrade, websocket_request};
pub use event_stream::{EventForm, accept_event_stream, send_events};
pub use handshake::{
    Accepted, Dialect, ForwardDialect, PendingUpgrade, Refusal, UpgradedIo, accept_port_forward, accept_remote_command,
    is_spdy, is_tunnel, is_upgrade, is_websocket, subprotocols,
};
pub use log_stream::{accept_log_stream, send_log};
pub use pipe::{BoxRead, BoxWrite, PipeReader};
pub use port_forward::{Forward, ForwardData, PortError, PortForward, query_ports};
pub use port_forward_client::{Carrier, ClientForward, ForwardErrorReader, PortForwardClient};
pub use protocol::{PORT_FORWARD, Protocol, SPDY, STREAM_PROTOCOL_VERSION, StreamSet, Subprotocol, TUNNEL_PREFIX};
pub use proxy::{
    Proxied, ProxyError, proxy_tunnel, proxy_tunnel_while_used, proxy_upgrade, proxy_upgrade_while_used, translate,
};
pub use remote_client::{ClientCommand, CommandStatusError};
pub use remote_command::{RemoteCommand, SessionError};
pub use resize::{ResizeEvents, ResizeSender, TerminalSize};
pub use spdy::SpdyError;
pub use websocket::{Encoding, WebSocketError, WebSocketIo};

/// The usual idle timeout of streaming connections.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);

/// How a server treats a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// Close the connection when no data moved for so long; `None` means never.
    pub idle_timeout: Option<Duration>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { idle_timeout: Some(DEFAULT_IDLE_TIMEOUT) }
    }
}
