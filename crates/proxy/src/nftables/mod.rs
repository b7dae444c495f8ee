//! The nftables backend: what the `kube-proxy` table of a family is to hold, and the transactions that bring it there.
//!
//! The table is computed whole and purely ([`desired`]); a transaction holds the difference to what was applied before.

mod desired;
mod fixed;
mod names;
mod port_rules;
mod shares;
mod transaction;

pub use desired::{Desired, Element, NodePorts, Rule, TableOptions, add_fixed, add_ports, desired};
pub use shares::{Change, Shares};
pub use transaction::{Present, deletion, full, partial};

/// The table, in each family.
pub const TABLE: &str = "kube-proxy";
