//! Benchmarks that start the real binaries as processes of their own and measure them beside a peer in the same run.
//!
//! A figure is one line, `RESULT <name> ours=<n> peer=<n> ratio=<ours/peer> unit=<u>`: absolute numbers mean little on
//! a shared machine, ratios of medians over interleaved runs do. The codecs' benchmark is in `codec/`, a workspace of
//! its own, because its peers are heavy to build.

pub mod api;
pub mod api_server;
pub mod child;
pub mod cli;
mod controller_manager;
pub mod elastic;
pub mod etcd;
pub mod figure;
pub mod https;
pub mod identity;
mod requests;
pub mod sample;
pub mod sched;
mod scheduler_process;
pub mod up;
pub mod usage;
pub mod volumes;
