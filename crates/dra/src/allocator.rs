//! The allocator of one pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::resource_v1::{AllocationResult, DeviceClass, ResourceClaim};
use base::Rng;

use crate::allocated::Allocated;
use crate::allocation;
use crate::features::Features;
use crate::pools::{Pool, Slices};
use crate::requests::{full_name, wanted};
use crate::search::Search;
use crate::selector::Selectors;

/// A node, as selectors see it.
#[derive(Debug, Clone, Copy)]
pub struct CandidateNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// Where classes are found.
pub trait Inventory {
    /// A class by its name.
    fn class(&self, name: &str) -> Option<Arc<DeviceClass>>;
}

/// Why there is no allocation, other than that there are not enough devices. Texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// It took too long.
    #[error("timed out trying to allocate devices")]
    Timeout,
    /// There may be enough, but drivers offer them in a way that nobody understands.
    #[error("invalid resource pools were encountered")]
    InvalidPools,
    /// The claims, or the cluster, are not in order.
    #[error("{0}")]
    Failed(String),
}

impl AllocateError {
    pub(crate) fn failed(claim: &ResourceClaim, request: &str, what: &str) -> Self {
        Self::Failed(format!("claim {}, request {request}: {what}", full_name(claim)))
    }
}

/// Finds devices for the claims of one pod, node by node.
pub struct Allocator {
    features: Features,
    claims: Vec<Arc<ResourceClaim>>,
    slices: Arc<Slices>,
    allocated: Arc<Allocated>,
    selectors: Arc<Selectors>,
}

impl Allocator {
    /// An allocator of all slices that there are, less what is allocated.
    #[must_use]
    pub fn new(
        features: Features,
        claims: Vec<Arc<ResourceClaim>>,
        slices: Arc<Slices>,
        allocated: Arc<Allocated>,
        selectors: Arc<Selectors>,
    ) -> Self {
        Self { features, claims, slices, allocated, selectors }
    }

    /// The claims that are to be allocated.
    #[must_use]
    pub fn claims(&self) -> &[Arc<ResourceClaim>] {
        &self.claims
    }

    /// What the claims would get on a node, in their order, and behind them one more that is for this node only; none where
    /// there are not enough devices. `is_over` tells whether nobody waits any more.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn allocate(
        &self,
        node: CandidateNode<'_>,
        one_more: Option<&ResourceClaim>,
        inventory: &dyn Inventory,
        rng: &Rng,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<AllocationResult>>, AllocateError> {
        let claims = self.claims.iter().map(|claim| &**claim).chain(one_more);
        let claims = claims.map(|claim| wanted(claim, inventory, self.features));
        let claims = claims.collect::<Result<Vec<_>, _>>()?;
        let pools: Vec<Pool<'_>> = self.slices.pools_of(node);
        let search = Search::new(self.features, node, &claims, &pools, &self.allocated, &self.selectors, is_over);
        let found = search.run()?;
        let Some(chosen) = found else { return Ok(None) };
        let mut results = Vec::with_capacity(claims.len());
        for (place, claim) in claims.iter().enumerate() {
            let own: Vec<_> = chosen.iter().filter(|choice| choice.claim == place).collect();
            results.push(allocation::result(claim, &own, node, rng)?);
        }
        Ok(Some(results))
    }
}
