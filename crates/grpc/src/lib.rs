//! What all gRPC clients here share: ways to servers at sockets of the same host ([`UnixSocket`]), calls that wait for a
//! server ([`wait_for_ready`]), and the names of codes as grpc-go spells them, which messages and metrics show
//! ([`code_name`]).

mod call;
mod code;
mod socket;

pub use call::{connect_failure, wait_for_ready};
pub use code::code_name;
pub use socket::{NoSocket, UnixSocket};
