//! The API server: one road from a request to the store and back, and what else lives in the process. The road is
//! `chain`, what requests come to is `handlers`, what plugs in beside them is listed in `extensions`.

mod admission_lookup;
pub mod authentication;
mod authorization;
mod chain;
pub mod config;
mod custom_kinds;
mod cx;
mod extensions;
mod handlers;
mod hooks;
mod metrics;
mod mirror;
mod negotiate;
pub mod options;
mod request;
mod respond;
mod routes;
mod server;
mod storage_ready;
mod table;
mod warnings;

pub use chain::{Authorized, Request};
pub use custom_kinds::{CustomKind, CustomKinds};
pub use cx::ApiCx;
pub use hooks::PostStartHook;
pub use routes::{Endpoint, Routes};
pub use server::{BuildError, Server};
