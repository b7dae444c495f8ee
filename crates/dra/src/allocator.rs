//! The allocator of one pod.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use api_types::resource_v1::{AllocationResult, DeviceClass, ResourceClaim};
use base::Rng;

use crate::allocated::Allocated;
use crate::allocation;
use crate::features::Features;
use crate::pools::{Pool, Slices};
use crate::requests::{Request, Wanted, full_name, requests_of};
use crate::search::Search;
use crate::selector::Selectors;
use crate::solution::Solution;

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
    /// What they ask for, once somebody has asked.
    requests: OnceLock<Result<Vec<Vec<Request>>, AllocateError>>,
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
        Self { features, claims, requests: OnceLock::new(), slices, allocated, selectors }
    }

    /// The claims that are to be allocated.
    #[must_use]
    pub fn claims(&self) -> &[Arc<ResourceClaim>] {
        &self.claims
    }

    /// Looks at what the claims ask for, and behind them one more.
    fn with_wanted<T>(
        &self,
        one_more: Option<&ResourceClaim>,
        inventory: &dyn Inventory,
        look: impl FnOnce(&[Wanted<'_>]) -> Result<T, AllocateError>,
    ) -> Result<T, AllocateError> {
        let requests_of = |claim: &ResourceClaim| requests_of(claim, &self.slices, inventory, self.features);
        let of_all = || self.claims.iter().map(|claim| requests_of(claim)).collect();
        let requests = self.requests.get_or_init(of_all).as_ref().map_err(Clone::clone)?;
        let more = one_more.map(requests_of).transpose()?.unwrap_or_default();
        let own = self.claims.iter().zip(requests).map(|(claim, requests)| Wanted { claim, requests });
        let claims: Vec<_> = own.chain(one_more.map(|claim| Wanted { claim, requests: &more })).collect();
        look(&claims)
    }

    /// What the claims would get on a node, and one more that is for this node only; none where there are not enough devices.
    /// `is_over` tells whether nobody waits any more.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn find(
        &self,
        node: CandidateNode<'_>,
        one_more: Option<&ResourceClaim>,
        inventory: &dyn Inventory,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Solution>, AllocateError> {
        self.with_wanted(one_more, inventory, |claims| {
            let pools: Vec<Pool<'_>> = self.slices.pools_of(node);
            let search = Search::new(self.features, node, claims, &pools, &self.allocated, &self.selectors, is_over);
            let Some(chosen) = search.run()? else { return Ok(None) };
            let solution = Solution::of(chosen);
            (0..claims.len()).try_for_each(|claim| allocation::check(solution.of_claim(claim)))?;
            Ok(Some(solution))
        })
    }

    /// What was found for a node, written out: what each claim gets, in their order, and behind them the one more.
    ///
    /// # Errors
    /// When what the one more asks for is not known any more.
    pub fn results(
        &self,
        found: &Solution,
        node: &str,
        one_more: Option<&ResourceClaim>,
        inventory: &dyn Inventory,
        rng: &Rng,
    ) -> Result<Vec<AllocationResult>, AllocateError> {
        self.with_wanted(one_more, inventory, |claims| {
            let result = |(place, claim): (usize, &Wanted<'_>)| {
                allocation::result(*claim, &found.of_claim(place).collect::<Vec<_>>(), node, rng)
            };
            claims.iter().enumerate().map(result).collect()
        })
    }
}
