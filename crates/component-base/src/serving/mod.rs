//! HTTP(S) servers: listeners, connections and their limits. What is served is a [`Handler`].
//!
//! Every connection is bounded in time (handshake, headers, idleness) and in space (headers, streams, windows), and is
//! asked to finish on its own at shutdown. Which paths exist, who may call them and how errors look is not here.

mod body;
mod connection;
mod expiry;
mod gzip;
mod handler;
mod held;
#[cfg(test)]
mod hostile_tests;
mod listener;
mod newcomers;
mod query;
mod secure;
mod server;
#[cfg(test)]
mod tests;

pub use body::{Body, BoxError, empty, full, text};
pub use connection::{GoAway, LocalAddr, PeerCertificates, RemoteAddr, SniName};
pub use expiry::TakenBy;
pub use gzip::compressed;
pub use handler::{Handler, HandlerFn, Request, Response, handler_fn};
pub use held::hold;
pub use listener::{ListenError, PortSharing, bind};
pub use newcomers::Newcomer;
pub use query::{Query, decode_query};
pub use secure::{GeneratePair, SecureServing, ServeError, secure_serving_flags};
pub use server::{Counters, Limits, Security, Server, ServerHandle};
