//! The server as clients see it, called in process over the memory store.

mod admission_webhooks;
mod admitted;
mod adopted;
mod audited;
mod cbor;
mod converted;
mod custom;
mod device_claims;
mod encrypted;
mod fake_kubelet;
mod fake_webhook;
mod gates;
mod harness;
mod hostile;
mod hostile_nodes;
mod hostile_paths;
mod hostile_webhooks;
mod hostile_writes;
mod https;
mod legacy_tokens;
mod origins;
mod patches;
mod plugged;
mod reads;
mod review_server;
mod road;
mod sockets;
mod stores;
mod streams;
mod subresources;
mod watches;
mod webhook_authentication;
mod webhook_authorization;
mod writes;

pub(crate) use harness::install;
