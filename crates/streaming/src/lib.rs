//! SPDY/3.1 and WebSocket channels.
mod pipe;
pub mod spdy;
pub use pipe::{BoxRead, BoxWrite, PipeReader};
