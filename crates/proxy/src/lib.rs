//! The service proxy: turns Services and EndpointSlices into packet filter rules.
//!
//! Who is to be reachable where is computed purely, in one model for every backend ([`service`], [`endpoints`]); a
//! [`backend`] ([`nftables`]) turns the model into its own rules and into the transactions that bring the kernel there.

pub mod backend;
pub mod cleanup;
mod config_file;
mod config_watch;
pub mod conntrack;
pub mod endpoints;
pub mod engine;
mod family;
mod family_check;
mod flows;
pub mod health;
pub mod health_ports;
pub mod metrics;
pub mod nftables;
pub mod options;
mod pages;
mod run;
pub mod service;
mod validation;
mod watched;
pub mod worker;

pub use family::Family;
pub use run::{main, run};
