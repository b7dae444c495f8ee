//! The quotas that this server has written itself, as the cache may not have heard of them yet.

use std::collections::VecDeque;
use std::sync::Arc;

use api_types::core_v1::ResourceQuota;
use parking_lot::Mutex;

/// How many are remembered: only those of the last moments matter.
const REMEMBERED: usize = 100;

/// The last written quotas, newest last.
#[derive(Default)]
pub(crate) struct Charged {
    written: Mutex<VecDeque<Arc<ResourceQuota>>>,
}

fn is_same(one: &ResourceQuota, other: &ResourceQuota) -> bool {
    one.metadata.uid == other.metadata.uid
}

fn version(quota: &ResourceQuota) -> u64 {
    quota.metadata.resource_version.parse().unwrap_or(0)
}

impl Charged {
    /// Remembers a quota as the store answered it.
    pub(crate) fn note(&self, quota: &ResourceQuota) {
        let mut written = self.written.lock();
        written.retain(|own| !is_same(own, quota));
        written.push_back(Arc::new(quota.clone()));
        while written.len() > REMEMBERED {
            written.pop_front();
        }
    }

    /// Each of the cached quotas, or what was written of it since.
    pub(crate) fn newest(&self, cached: Vec<Arc<ResourceQuota>>) -> Vec<Arc<ResourceQuota>> {
        let written = self.written.lock();
        let newer = |quota: &Arc<ResourceQuota>| {
            written.iter().find(|own| is_same(own, quota) && version(own) > version(quota)).cloned()
        };
        cached.into_iter().map(|quota| newer(&quota).unwrap_or(quota)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(uid: &str, version: u64) -> ResourceQuota {
        let mut quota = ResourceQuota::default();
        quota.metadata.uid = uid.into();
        quota.metadata.resource_version = version.to_string();
        quota
    }

    #[test]
    fn the_newer_one_counts() {
        let charged = Charged::default();
        charged.note(&quota("a", 5));
        charged.note(&quota("b", 5));
        let cached = [quota("a", 4), quota("b", 6), quota("c", 1)].map(Arc::new);
        let versions: Vec<u64> = charged.newest(cached.into()).iter().map(|own| version(own)).collect();
        assert_eq!(versions, [5, 6, 1]);
    }
}
