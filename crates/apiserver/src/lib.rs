//! The API server: one road from a request to the store and back, and what else lives in the process. The road is
//! `chain`, what requests come to is `handlers`, what plugs in beside them is listed in `extensions`.

mod address;
mod admission_lookup;
mod admission_versions;
mod aggregation;
mod authentication;
mod authorization;
mod bootstrap;
mod build_error;
mod chain;
mod charged_quotas;
mod component_statuses;
pub mod config;
mod coordination;
mod custom_kinds;
mod custom_resources;
mod cx;
mod digest;
mod discovery;
mod encryption_reload;
mod extensions;
mod flow_control;
mod follow;
mod gates;
mod handlers;
mod hooks;
mod limits;
mod metrics;
mod mirror;
mod negotiate;
mod node_proxy;
mod object_counts;
mod oidc;
mod openapi;
pub mod options;
mod own_request;
mod peers;
mod plugin_notes;
mod request;
mod respond;
mod reviews;
mod routes;
mod server;
mod server_id;
mod service_endpoints;
mod storage_ready;
#[cfg(test)]
mod tests;
mod storage_versions;
mod tokens;
mod warnings;
mod webhooks;

pub use build_error::BuildError;
pub use peers::PeersError;
pub use server::Server;
