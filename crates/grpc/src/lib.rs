//! What all gRPC clients here share: ways to servers at sockets of the same host ([`UnixSocket`]), and the names of codes as
//! grpc-go spells them, which messages and metrics show ([`code_name`]).

mod code;
mod socket;

pub use code::code_name;
pub use socket::{NoSocket, UnixSocket};
