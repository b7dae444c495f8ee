//! Multi-version state in memory, shared by the memory and the embedded store, so that etcd's semantics exist once.
//!
//! A write is two steps: [`Staging`] works out what it would change without changing anything, and
//! [`Store::apply`] makes that visible. Between the two the embedded store puts it on disk.

mod history;
mod lease;
mod staging;
mod state;
mod store;
mod watch;

pub(crate) use history::Version;
pub(crate) use staging::{Command, Effect, Reply, Staging};
pub(crate) use state::{RowId, State};
pub(crate) use store::{Limits, Store};
