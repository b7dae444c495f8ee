//! The ranges of addresses that older servers look at (`ranges/serviceips`), kept in step with the objects of addresses for
//! as long as the release that is emulated does so (KEP-1880): an older server may give out addresses beside this one, and a
//! cluster may go back to it. What is taken is taken there first, so that it is one arbiter for both.

use std::net::IpAddr;
use std::sync::Arc;

use api_types::core_v1::Service;
use feature_gates::Feature;
use watch_cache::Stored;

use super::allocator::AddressError;
use super::bitmap::Bitmap;
use super::network::{Cidr, Family};
use super::port_repair::keep_young_leaks;
use super::range::{ATTEMPTS, Range, RangeError};
use super::{NoRecorder, held};
use crate::registry::RegistryOptions;

/// Addresses are given out as objects alone. It is off in releases before v1.34, which may be emulated.
pub const DISABLE_DUAL_WRITE: Feature = Feature::named("DisableAllocatorDualWrite");

/// Where the ranges are, of the first network of the flags and of the second, and what they are called.
const PLACES: [(&str, &str); 2] =
    [("ranges/serviceips", "serviceipallocations"), ("ranges/secondaryserviceips", "secondaryserviceipallocations")];
/// Older servers count no more addresses of an IPv6 network.
const MOST_IPV6: u64 = 65_535;

/// The stored ranges; none where they are not kept.
pub(super) struct StoredRanges(Vec<(Cidr, Range)>);

impl StoredRanges {
    pub(super) fn new(options: &RegistryOptions) -> Self {
        if options.gates.enabled(DISABLE_DUAL_WRITE) {
            return Self(Vec::new());
        }
        let range = |((place, name), network): (&(&str, &'static str), &Cidr)| {
            let most = if network.family() == Family::V6 { MOST_IPV6 } else { u64::from(u32::MAX) };
            let size = u32::try_from(network.size().min(most)).unwrap_or(u32::MAX);
            let (backend, rng) = (Arc::clone(&options.backend), Arc::clone(&options.rng));
            let key = format!("{}/{place}", options.etcd_prefix);
            (*network, Range::new(backend, rng, (key, name), network.to_string(), (size, 0), Arc::new(NoRecorder)))
        };
        Self(PLACES.iter().zip(&options.services.cluster_ip_ranges).map(range).collect())
    }

    /// The range that an address is in, with its number there.
    fn of(&self, address: IpAddr) -> Option<(&Range, u32)> {
        self.0.iter().find_map(|(network, range)| {
            let offset = u32::try_from(network.offset(address)?).ok()?;
            (offset < range.size).then_some((range, offset))
        })
    }

    /// Takes an address, where it is of a range.
    pub(super) async fn take(&self, address: IpAddr) -> Result<(), AddressError> {
        let Some((range, offset)) = self.of(address) else { return Ok(()) };
        match range.take(offset).await {
            Err(RangeError::Taken) => Err(AddressError::Taken),
            other => Ok(other?),
        }
    }

    /// Gives an address back. Where that fails, repair does so later.
    pub(super) async fn free(&self, address: IpAddr) {
        let Some((range, offset)) = self.of(address) else { return };
        if let Err(error) = range.free(offset).await {
            tracing::warn!(%address, %error, "cannot free an address in the range that older servers look at");
        }
    }

    /// Makes the ranges say what Services have. Each is read before the Services are, as that of ports is.
    pub(super) async fn repair<L>(&self, services: impl Fn() -> L) -> Result<(), AddressError>
    where
        L: Future<Output = Result<Vec<Arc<Stored>>, AddressError>>,
    {
        for (network, range) in &self.0 {
            repair(*network, range, &services).await?;
        }
        Ok(())
    }
}

async fn repair<L>(network: Cidr, range: &Range, services: &impl Fn() -> L) -> Result<(), AddressError>
where
    L: Future<Output = Result<Vec<Arc<Stored>>, AddressError>>,
{
    let seen = range.leaks.lock().clone();
    for _ in 0..ATTEMPTS {
        let stored = range.to_rebuild().await?;
        let mut new = Bitmap::new(range.size);
        for item in services().await? {
            let addresses = item.object().downcast_ref::<Service>().map(|service| held::addresses(&service.spec));
            let offsets = addresses.into_iter().flatten().filter_map(|address| network.offset(address));
            for offset in offsets.filter_map(|offset| u32::try_from(offset).ok()) {
                new.take(offset);
            }
        }
        let (leaks, freed) = keep_young_leaks(&mut new, &stored.bitmap, &seen);
        if range.rebuilt(&stored, &new).await? {
            *range.leaks.lock() = leaks;
            if freed > 0 {
                tracing::info!(%network, freed, "Freed addresses in the range that older servers look at");
            }
            return Ok(());
        }
    }
    Err(RangeError::Contended.into())
}
