//! The quotas as the store has shown them while they were charged: the cache may not have heard of them yet.

use std::collections::VecDeque;
use std::sync::Arc;

use api_types::core_v1::ResourceQuota;
use parking_lot::Mutex;

/// How many are remembered: only those of the last moments matter.
const REMEMBERED: usize = 100;

/// The last of them, newest last.
#[derive(Default)]
pub(crate) struct Charged {
    seen: Mutex<VecDeque<Arc<ResourceQuota>>>,
}

/// One that was deleted and made again is the same: the later version counts.
fn is_same(one: &ResourceQuota, other: &ResourceQuota) -> bool {
    (&one.metadata.namespace, &one.metadata.name) == (&other.metadata.namespace, &other.metadata.name)
}

fn version(quota: &ResourceQuota) -> u64 {
    quota.metadata.resource_version.parse().unwrap_or(0)
}

impl Charged {
    /// Remembers a quota as the store answered it.
    pub(crate) fn note(&self, quota: &ResourceQuota) {
        let mut seen = self.seen.lock();
        if seen.iter().any(|own| is_same(own, quota) && version(own) > version(quota)) {
            return;
        }
        seen.retain(|own| !is_same(own, quota));
        seen.push_back(Arc::new(quota.clone()));
        while seen.len() > REMEMBERED {
            seen.pop_front();
        }
    }

    /// Each of the cached quotas, or what was seen of it since.
    pub(crate) fn newest(&self, cached: Vec<Arc<ResourceQuota>>) -> Vec<Arc<ResourceQuota>> {
        let seen = self.seen.lock();
        let newer = |quota: &Arc<ResourceQuota>| {
            seen.iter().find(|own| is_same(own, quota) && version(own) > version(quota)).cloned()
        };
        cached.into_iter().map(|quota| newer(&quota).unwrap_or(quota)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(name: &str, version: u64) -> ResourceQuota {
        let mut quota = ResourceQuota::default();
        quota.metadata.name = name.into();
        quota.metadata.resource_version = version.to_string();
        quota
    }

    #[test]
    fn the_newer_one_counts() {
        let charged = Charged::default();
        charged.note(&quota("a", 5));
        charged.note(&quota("a", 3));
        charged.note(&quota("b", 5));
        let cached = [quota("a", 4), quota("b", 6), quota("c", 1)].map(Arc::new);
        let versions: Vec<u64> = charged.newest(cached.into()).iter().map(|own| version(own)).collect();
        assert_eq!(versions, [5, 6, 1]);
    }
}
