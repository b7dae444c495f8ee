//! What the conformance suite of Kubernetes demands of the API, the controllers and the scheduler, one test per item.
//!
//! Each test has a control plane of its own in the process, on paused time: the API server over memory, all controllers,
//! the scheduler and three hollow nodes. Items that need containers are not here.

mod auth;
mod budgets;
mod chunking;
mod config;
mod cron_jobs;
mod custom_resources;
mod custom_schemas;
mod discovery;
mod events;
mod field_validation;
mod garbage_collection;
mod gated;
mod harness;
mod lifecycle;
mod limit_ranges;
mod namespaces;
mod network;
mod nodes;
mod pods;
mod policies;
mod quota;
mod quota_scopes;
mod replication_controllers;
mod storage;
mod watches;
