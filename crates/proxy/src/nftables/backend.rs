//! The backend: keeps what each Service wants in the table, and sends the kernel the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client::ObjectKey;
use sys::packet_filter::{FilterError, PacketFilter};
use tokio::time::Instant;

use crate::Family;
use crate::backend::{Backend, BackendError, Route, Routes, RuleOptions};
use crate::nftables::TABLE;
use crate::nftables::desired::{Desired, add_fixed, fixed_part, part};
use crate::nftables::shares::Shares;
use crate::nftables::transaction::{Present, deletion, full, partial};

/// How long a chain stays empty before it is deleted: kernels drop references to it a moment later.
pub(crate) const STALE_DELAY: Duration = Duration::from_secs(1);
/// Services whose changes go into one transaction; what a transaction costs the kernel grows faster than its size.
const SERVICES_AT_ONCE: usize = 200;

/// The table of a family.
pub struct NftablesBackend {
    filter: Arc<dyn PacketFilter>,
    shares: Shares,
    /// What the table holds that is no Service's.
    fixed: Desired,
    /// Emptied chains, with the time since which they are.
    stale: BTreeMap<String, Instant>,
}

impl NftablesBackend {
    /// A backend that knows nothing of the table yet.
    #[must_use]
    pub fn new(filter: Arc<dyn PacketFilter>) -> Self {
        Self { filter, shares: Shares::default(), fixed: Desired::default(), stale: BTreeMap::new() }
    }

    /// What is no Service's changes with the networks of cluster addresses only.
    async fn change_fixed(&mut self, options: &RuleOptions) -> Result<(), FilterError> {
        let next = fixed_part(options);
        if self.fixed != next {
            let (text, _) = partial(options, &self.fixed, &next);
            self.filter.apply(&text).await?;
            self.fixed = next;
        }
        Ok(())
    }

    async fn change_some(
        &mut self,
        options: &RuleOptions,
        routes: &[(ObjectKey, Vec<Route>)],
        now: Instant,
    ) -> Result<(), FilterError> {
        let parts = routes.iter().map(|(key, routes)| (key.clone(), part(options, routes)));
        let change = self.shares.change(parts.collect());
        let (text, stale) = partial(options, &change.before, &change.after);
        if !text.is_empty() {
            self.filter.apply(&text).await?;
        }
        self.stale.retain(|name, _| !change.after.chains.contains_key(name));
        self.stale.extend(stale.into_iter().map(|name| (name, now)));
        Ok(())
    }

    /// What the table holds; nothing where there is no table. Names are enough, and elements would take long to list.
    async fn present(&self, family: Family) -> Present {
        let mut present = Present::default();
        for (what, entry, names) in [("chains", "chain", &mut present.chains), ("sets", "set", &mut present.sets)] {
            let Ok(listed) = self.filter.list_terse(&[what, family.nft()]).await else { continue };
            let entries = listed["nftables"].as_array().into_iter().flatten();
            let own = entries.map(|one| &one[entry]).filter(|one| one["table"] == TABLE);
            names.extend(own.filter_map(|one| one["name"].as_str().map(str::to_owned)));
        }
        present
    }
}

#[async_trait]
impl Backend for NftablesBackend {
    async fn replace(&mut self, options: &RuleOptions, routes: Routes, now: Instant) -> Result<(), BackendError> {
        self.shares = Shares::default();
        self.shares.change(routes.into_iter().map(|(key, routes)| (key, part(options, &routes))).collect());
        let present = self.present(options.family).await;
        self.fixed = fixed_part(options);
        let mut table = self.shares.whole();
        add_fixed(&mut table, &self.fixed);
        for script in full(options, &table, self.shares.parts(), &present) {
            self.filter.apply(&script).await?;
        }
        let unknown = present.chains.iter().filter(|name| name.contains('/') && !table.chains.contains_key(*name));
        self.stale = unknown.map(|name| (name.clone(), now)).collect();
        Ok(())
    }

    async fn change(&mut self, options: &RuleOptions, routes: Routes, now: Instant) -> Result<(), BackendError> {
        self.change_fixed(options).await?;
        let routes: Vec<_> = routes.into_iter().collect();
        for some in routes.chunks(SERVICES_AT_ONCE) {
            self.change_some(options, some, now).await?;
        }
        Ok(())
    }

    async fn collect(&mut self, options: &RuleOptions, now: Instant) -> Result<(), BackendError> {
        let due = self.stale.iter().filter(|(_, since)| now.duration_since(**since) >= STALE_DELAY);
        let due: BTreeSet<String> = due.map(|(name, _)| name.clone()).collect();
        if due.is_empty() {
            return Ok(());
        }
        self.stale.retain(|name, _| !due.contains(name));
        Ok(self.filter.apply(&deletion(options, &due)).await?)
    }

    fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }
}
