//! The ranges of one size within a cluster's range: which are taken, which comes next.

use super::cidr::Cidr;
use super::metrics::SetMetrics;

/// The most bits by which a set's blocks may be smaller than its range: 65,536 blocks.
pub(super) const MOST_BITS: u8 = 16;

/// Blocks of one size.
pub(super) struct CidrSet {
    cluster: Cidr,
    node_mask: u8,
    taken: Vec<bool>,
    count: usize,
    next: usize,
    metrics: Option<SetMetrics>,
}

/// What a set cannot do, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CidrSetError {
    #[error("New CIDR set failed; the node CIDR size is too big")]
    NodeMask,
    #[error("the range {cluster} has too many blocks of size {node_mask}")]
    TooManyBlocks { cluster: Cidr, node_mask: u8 },
    #[error("CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range")]
    Exhausted,
    #[error("cidr {range} is out the range of cluster cidr {cluster}")]
    Outside { range: Cidr, cluster: Cidr },
}

impl CidrSet {
    /// All blocks of a range, free.
    ///
    /// # Errors
    /// When there would be too many of them.
    pub(super) fn new(cluster: Cidr, node_mask: u8) -> Result<Self, CidrSetError> {
        let bits = node_mask.saturating_sub(cluster.mask());
        if bits > MOST_BITS && cluster.is_v6() {
            return Err(CidrSetError::NodeMask);
        }
        if bits > 24 {
            return Err(CidrSetError::TooManyBlocks { cluster, node_mask });
        }
        Ok(Self { cluster, node_mask, taken: vec![false; 1 << bits], count: 0, next: 0, metrics: None })
    }

    /// Has metrics tell of the set from now on.
    pub(super) fn show(&mut self, metrics: SetMetrics) {
        metrics.holds(self.taken.len());
        self.metrics = Some(metrics);
    }

    /// The whole range.
    pub(super) fn cluster(&self) -> &Cidr {
        &self.cluster
    }

    /// Takes the next free block. Blocks that were freed come again only after all others.
    ///
    /// # Errors
    /// When none is free.
    pub(super) fn allocate(&mut self) -> Result<Cidr, CidrSetError> {
        let all = self.taken.len();
        let free = (0..all).find(|step| !self.taken[(self.next + step) % all]);
        let tries = free.ok_or(CidrSetError::Exhausted)?;
        let index = (self.next + tries) % all;
        self.taken[index] = true;
        self.count += 1;
        self.next = (index + 1) % all;
        if let Some(metrics) = &self.metrics {
            metrics.found(tries);
            metrics.changed(1, 0, self.count, all);
        }
        Ok(self.block(index))
    }

    fn block(&self, index: usize) -> Cidr {
        let free = u32::from(self.cluster.width() - self.node_mask);
        let offset = (index as u128).checked_shl(free).unwrap_or(0);
        Cidr::new(self.cluster.base() | offset, self.node_mask, self.cluster.is_v6())
    }

    /// Marks all blocks that a range touches as taken.
    ///
    /// # Errors
    /// When the range lies outside.
    pub(super) fn occupy(&mut self, range: &Cidr) -> Result<(), CidrSetError> {
        self.mark(range, true)
    }

    /// Marks all blocks that a range touches as free.
    ///
    /// # Errors
    /// When the range lies outside.
    pub(super) fn release(&mut self, range: &Cidr) -> Result<(), CidrSetError> {
        self.mark(range, false)
    }

    fn mark(&mut self, range: &Cidr, taken: bool) -> Result<(), CidrSetError> {
        if !self.cluster.overlaps(range) {
            return Err(CidrSetError::Outside { range: *range, cluster: self.cluster });
        }
        let free = u32::from(self.cluster.width() - self.node_mask);
        let index = |address: u128| {
            let offset = (address - self.cluster.base()).checked_shr(free).unwrap_or(0);
            usize::try_from(offset).unwrap_or(usize::MAX)
        };
        let first = index(range.base().max(self.cluster.base()));
        let last = index(range.last().min(self.cluster.last()));
        let before = self.count;
        for slot in self.taken.iter_mut().take(last.saturating_add(1)).skip(first) {
            match (*slot, taken) {
                (false, true) => self.count += 1,
                (true, false) => self.count -= 1,
                _ => {}
            }
            *slot = taken;
        }
        if let Some(metrics) = &self.metrics {
            let (more, fewer) = (self.count.saturating_sub(before), before.saturating_sub(self.count));
            metrics.changed(more, fewer, self.count, self.taken.len());
        }
        Ok(())
    }

    /// How many blocks are taken.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }
}
