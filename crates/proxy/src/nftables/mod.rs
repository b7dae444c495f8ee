//! The nftables mode: what the `kube-proxy` table of a family is to hold, and the transactions that bring it there.
//!
//! The table is computed purely from routes ([`desired`]); a transaction holds the difference to what was applied before.

mod backend;
mod desired;
mod fixed;
mod names;
#[cfg(test)]
pub(crate) mod packet_tests;
mod port_rules;
mod shares;
mod support;
mod transaction;

use std::sync::Arc;

use async_trait::async_trait;
use sys::exec::Command;
use sys::packet_filter::{FilterError, Nft, PacketFilter as _};

use crate::Family;
use crate::backend::{Backend, BackendError, Machine, Mode, UnsupportedMachine};

pub use backend::NftablesBackend;
#[cfg(test)]
pub(crate) use backend::STALE_DELAY;

/// The table, in each family.
pub const TABLE: &str = "kube-proxy";

/// The mode.
pub struct Nftables;

#[async_trait]
impl Mode for Nftables {
    fn name(&self) -> &'static str {
        "nftables"
    }

    async fn check(&self, machine: &Machine) -> Result<(), UnsupportedMachine> {
        machine.kernel.as_deref().map_or(Ok(()), support::check_kernel)?;
        let version = machine.exec.run(&Command::with("nft", &["--version"])).await;
        let version = version.map_err(|error| UnsupportedMachine::NoNft(error.to_string()))?;
        support::check_nft(&version.text())?;
        if nft(machine).is_supported().await { Ok(()) } else { Err(UnsupportedMachine::NoNftables) }
    }

    fn backend(&self, machine: &Machine) -> Box<dyn Backend> {
        Box::new(NftablesBackend::new(Arc::new(nft(machine))))
    }

    async fn cleanup(&self, machine: &Machine) -> Vec<BackendError> {
        let (filter, mut problems) = (nft(machine), Vec::new());
        for family in [Family::V4, Family::V6] {
            match filter.apply(&format!("delete table {} {TABLE}\n", family.nft())).await {
                Ok(()) | Err(FilterError::NotFound) => {}
                Err(error) => problems.push(error.into()),
            }
        }
        problems
    }
}

fn nft(machine: &Machine) -> Nft {
    Nft::new(Arc::clone(&machine.exec), None)
}
