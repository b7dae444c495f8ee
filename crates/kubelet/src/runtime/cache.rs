//! What the runtime said last of every pod. PLEG fills it; workers read it and ask anew where it is too old for them.

use std::collections::HashMap;
use std::sync::Arc;

use node_api::cri::{CriError, Runtime};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::inspect::inspect;
use super::record::RuntimePod;

/// The last word of the runtime on each pod, by uid.
#[derive(Default)]
pub(crate) struct RuntimeCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pods: HashMap<String, Cached>,
    /// When the last complete look at the runtime began.
    relisted: Option<Instant>,
}

struct Cached {
    pod: Arc<RuntimePod>,
    at: Instant,
}

impl RuntimeCache {
    pub(crate) fn get(&self, uid: &str) -> Option<Arc<RuntimePod>> {
        self.state.lock().pods.get(uid).map(|cached| Arc::clone(&cached.pod))
    }

    /// Everything that is known, by uid.
    pub(crate) fn all(&self) -> Vec<Arc<RuntimePod>> {
        self.state.lock().pods.values().map(|cached| Arc::clone(&cached.pod)).collect()
    }

    /// Takes a look at a pod that began at `at`, unless a later one is there.
    pub(crate) fn put(&self, uid: &str, pod: RuntimePod, at: Instant) -> Arc<RuntimePod> {
        let mut state = self.state.lock();
        if let Some(newer) = state.pods.get(uid).filter(|cached| cached.at > at) {
            return Arc::clone(&newer.pod);
        }
        let pod = Arc::new(pod);
        if pod.is_empty() && pod.ips.is_empty() {
            state.pods.remove(uid);
        } else {
            state.pods.insert(uid.to_owned(), Cached { pod: Arc::clone(&pod), at });
        }
        pod
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.state.lock().pods.remove(uid);
    }

    pub(crate) fn relisted(&self, at: Instant) {
        self.state.lock().relisted = Some(at);
    }

    pub(crate) fn last_relist(&self) -> Option<Instant> {
        self.state.lock().relisted
    }

    /// What the runtime says of a pod, not older than `than`: from memory, or asked now.
    pub(crate) async fn newer_than(
        &self,
        runtime: &dyn Runtime,
        uid: &str,
        than: Option<Instant>,
    ) -> Result<Arc<RuntimePod>, CriError> {
        let before = {
            let state = self.state.lock();
            let cached = state.pods.get(uid);
            let seen = cached.map(|cached| cached.at).max(state.relisted);
            if let (Some(seen), Some(than)) = (seen, than)
                && seen > than
            {
                let none = || Arc::new(RuntimePod { uid: uid.to_owned(), ..RuntimePod::default() });
                return Ok(cached.map_or_else(none, |cached| Arc::clone(&cached.pod)));
            }
            cached.map(|cached| Arc::clone(&cached.pod))
        };
        let at = Instant::now();
        let pod = inspect(runtime, uid, before.as_deref()).await?;
        Ok(self.put(uid, pod, at))
    }
}
