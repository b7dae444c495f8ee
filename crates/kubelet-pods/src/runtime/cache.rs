//! What the runtime said last of every pod. PLEG fills it; workers read it and ask anew where it is too old for them.
//!
//! The one owner of what is known of the runtime: a pod stays known for as long as the runtime shows anything of it,
//! whoever has lost interest in the pod, so that its logs can be read and its leftovers be collected.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use node_api::cri::{CriError, Runtime};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::inspect::inspect;
use super::record::{RecordState, RuntimePod};

/// The state of everything in a pod: id to (name, state). Sandboxes have no name.
pub type Outline = BTreeMap<String, (String, RecordState)>;

/// How long a worker that makes a pod may keep others from looking at it: by then it waits for something, such as an image.
const HOLD: Duration = Duration::from_secs(10);

/// The last word of the runtime on each pod, by uid.
#[derive(Default)]
pub struct RuntimeCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pods: HashMap<String, Known>,
    /// When the last complete look at the runtime began.
    relisted: Option<Instant>,
    /// The pods that it told nothing of: they could not be read, or are held.
    unread: HashSet<String>,
    /// Pods that are being made, and since when.
    held: HashMap<String, Instant>,
}

/// A pod is being made, by somebody who tells of it in the end: nobody else needs to look until this is dropped.
pub struct Hold {
    cache: Arc<RuntimeCache>,
    uid: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.cache.state.lock().held.remove(&self.uid);
    }
}

struct Known {
    pod: Arc<RuntimePod>,
    at: Instant,
    /// What the sync loop was told last.
    outline: Outline,
    /// Nobody needs the addresses that it had.
    released: bool,
}

impl Known {
    /// Whether the runtime shows nothing of the pod and nobody remembers it.
    fn is_over(&self) -> bool {
        let remembered = !self.released && !self.pod.ips.is_empty();
        self.pod.is_empty() && self.outline.is_empty() && !remembered
    }
}

impl State {
    fn keep(&mut self, uid: &str, known: Known) {
        if !known.is_over() {
            self.pods.insert(uid.to_owned(), known);
        }
    }
}

impl RuntimeCache {
    pub fn get(&self, uid: &str) -> Option<Arc<RuntimePod>> {
        self.state.lock().pods.get(uid).map(|cached| Arc::clone(&cached.pod))
    }

    /// Everything that is known, by uid.
    pub fn all(&self) -> Vec<Arc<RuntimePod>> {
        self.state.lock().pods.values().map(|cached| Arc::clone(&cached.pod)).collect()
    }

    /// Takes a look at a pod that began at `at`, unless a later one is there. What is known then, and whether it is this.
    pub fn put(&self, uid: &str, pod: RuntimePod, at: Instant) -> (Arc<RuntimePod>, bool) {
        let mut state = self.state.lock();
        if let Some(newer) = state.pods.get(uid).filter(|cached| cached.at > at) {
            return (Arc::clone(&newer.pod), false);
        }
        let pod = Arc::new(pod);
        let (outline, released) = match state.pods.remove(uid) {
            Some(before) => (before.outline, before.released && !pod.is_alive()),
            None => (Outline::new(), false),
        };
        state.keep(uid, Known { pod: Arc::clone(&pod), at, outline, released });
        (pod, true)
    }

    /// Nobody but the runtime knows the pod any more. What the runtime has of it stays known.
    pub fn release(&self, uid: &str) {
        let mut state = self.state.lock();
        if let Some(known) = state.pods.remove(uid) {
            state.keep(uid, Known { released: true, ..known });
        }
    }

    /// The pod that a sandbox or container of this id belongs to, as far as the sync loop was told of it.
    pub fn owner(&self, id: &str) -> Option<String> {
        let state = self.state.lock();
        state.pods.iter().find(|(_, known)| known.outline.contains_key(id)).map(|(uid, _)| uid.clone())
    }

    /// What the sync loop was told last of a pod.
    pub fn outline(&self, uid: &str) -> Outline {
        self.state.lock().pods.get(uid).map(|known| known.outline.clone()).unwrap_or_default()
    }

    /// Whether the sync loop was told just this of a pod: ids, names and states.
    pub fn is_outlined_as<'a>(
        &self,
        uid: &str,
        mut parts: impl ExactSizeIterator<Item = (&'a str, &'a str, RecordState)>,
    ) -> bool {
        let state = self.state.lock();
        let Some(told) = state.pods.get(uid).map(|known| &known.outline) else { return false };
        let is_told = |(id, name, state): (&str, &str, RecordState)| {
            told.get(id).is_some_and(|told| told.0 == name && told.1 == state)
        };
        parts.len() == told.len() && parts.all(is_told)
    }

    /// The pods of which the sync loop was told that there is something, but for some, in order.
    pub fn outlined_but_for(&self, is_left_out: impl Fn(&str) -> bool) -> Vec<String> {
        let state = self.state.lock();
        let outlined = state.pods.iter().filter(|(uid, known)| !known.outline.is_empty() && !is_left_out(uid));
        let mut outlined: Vec<_> = outlined.map(|(uid, _)| uid.clone()).collect();
        outlined.sort_unstable();
        outlined
    }

    /// Remembers what the sync loop is told of a pod that was [`put`](Self::put).
    pub fn tell(&self, uid: &str, outline: Outline) {
        let mut state = self.state.lock();
        if let Some(known) = state.pods.remove(uid) {
            state.keep(uid, Known { outline, ..known });
        }
    }

    /// A complete look that began at `at` told of all pods but some.
    pub fn relisted(&self, at: Instant, unread: HashSet<String>) {
        let mut state = self.state.lock();
        (state.relisted, state.unread) = (Some(at), unread);
    }

    /// Keeps others from looking at a pod while it is made.
    pub fn hold(self: &Arc<Self>, uid: &str) -> Hold {
        self.state.lock().held.insert(uid.to_owned(), Instant::now());
        Hold { cache: Arc::clone(self), uid: uid.to_owned() }
    }

    /// Whether a pod is being made, and not for long.
    pub fn is_held(&self, uid: &str) -> bool {
        self.state.lock().held.get(uid).is_some_and(|since| since.elapsed() < HOLD)
    }

    pub fn last_relist(&self) -> Option<Instant> {
        self.state.lock().relisted
    }

    /// What the runtime says of a pod, not older than `than`: from memory, or asked now. Of a pod that nobody has looked
    /// at before, a complete look of any age tells enough: it would have shown what another kubelet has made for it.
    pub async fn newer_than(
        &self,
        runtime: &dyn Runtime,
        uid: &str,
        than: Option<Instant>,
    ) -> Result<Arc<RuntimePod>, CriError> {
        let before = {
            let state = self.state.lock();
            let cached = state.pods.get(uid);
            let relisted = state.relisted.filter(|_| !state.unread.contains(uid));
            let seen = cached.map(|cached| cached.at).max(relisted);
            let is_enough = match (seen, than) {
                (Some(seen), Some(than)) => seen > than,
                (Some(_), None) => cached.is_none(),
                (None, _) => false,
            };
            if is_enough {
                let none = || Arc::new(RuntimePod { uid: uid.to_owned(), ..RuntimePod::default() });
                return Ok(cached.map_or_else(none, |cached| Arc::clone(&cached.pod)));
            }
            cached.map(|cached| Arc::clone(&cached.pod))
        };
        let at = Instant::now();
        let pod = inspect(runtime, uid, before.as_deref()).await?;
        Ok(self.put(uid, pod, at).0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::{TaskGroup, TokioClock};
    use node_api::cri::fake::FakeRuntime;

    use super::*;
    use crate::runtime::record::SandboxRecord;

    fn pod(ready: Option<bool>, ip: &str) -> RuntimePod {
        let ips = [ip].into_iter().filter(|ip| !ip.is_empty()).map(str::to_owned).collect();
        let sandboxes = ready.map(|ready| SandboxRecord::example("s", ready)).into_iter().collect();
        RuntimePod { uid: "u".into(), sandboxes, ips, ..Default::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_known_until_the_runtime_and_its_worker_are_done_with_it() {
        let at = Instant::now();
        let outline = || Outline::from([("s".to_owned(), (String::new(), RecordState::Exited))]);
        // (the runtime's last word, what was told, whether the worker is done, whether it stays known)
        for (last, told, released, stays) in [
            (pod(Some(false), ""), Outline::new(), true, true),
            (pod(None, "10.0.0.1"), Outline::new(), false, true),
            (pod(None, "10.0.0.1"), Outline::new(), true, false),
            (pod(None, ""), outline(), true, true),
            (pod(None, ""), Outline::new(), false, false),
        ] {
            let cache = RuntimeCache::default();
            cache.put("u", pod(Some(true), "10.0.0.1"), at);
            cache.tell("u", outline());
            if released {
                cache.release("u");
                assert!(cache.get("u").is_some(), "it runs");
            }
            let text = format!("{last:?} {told:?} {released}");
            cache.put("u", last, at);
            cache.tell("u", told);
            assert_eq!(cache.get("u").is_some(), stays, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_is_new_is_not_asked_for_after_a_complete_look() {
        // (whether there was a complete look, whether the pod is known, since when it must be, whether the runtime is asked)
        for (relisted, known, than, asks) in [
            (false, false, None, true),
            (true, false, None, false),
            (true, true, None, true),
            (true, false, Some(Duration::from_secs(1)), true),
            (true, false, Some(Duration::ZERO), false),
        ] {
            let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
            let (cache, start) = (RuntimeCache::default(), Instant::now());
            tokio::time::sleep(Duration::from_millis(1)).await;
            if relisted {
                cache.relisted(Instant::now(), HashSet::new());
            }
            if known {
                cache.put("u", pod(Some(true), ""), Instant::now());
            }
            let seen = cache.newer_than(&runtime, "u", than.map(|than| start + than)).await.unwrap();
            assert_eq!(!runtime.take_calls().is_empty(), asks, "{relisted} {known} {than:?}");
            assert!(seen.is_empty(), "the runtime has nothing of it");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_complete_look_counts_for_the_pods_that_it_read() {
        for (unread, asks) in [("u", true), ("v", false)] {
            let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
            let (cache, start) = (RuntimeCache::default(), Instant::now());
            tokio::time::sleep(Duration::from_millis(1)).await;
            cache.relisted(Instant::now(), HashSet::from([unread.to_owned()]));
            cache.newer_than(&runtime, "u", Some(start)).await.unwrap();
            assert_eq!(!runtime.take_calls().is_empty(), asks, "{unread}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_held_while_it_is_made_and_not_for_ever() {
        let cache = Arc::<RuntimeCache>::default();
        let hold = cache.hold("u");
        assert_eq!((cache.is_held("u"), cache.is_held("v")), (true, false));
        tokio::time::sleep(HOLD).await;
        assert!(!cache.is_held("u"));
        drop(hold);
        drop(cache.hold("u"));
        assert!(!cache.is_held("u"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_is_known_part_by_part() {
        let (cache, running) = (RuntimeCache::default(), RecordState::Running);
        let told = [("s".to_owned(), (String::new(), running)), ("c".to_owned(), ("main".to_owned(), running))];
        let (sandbox, container) = (("s", "", running), ("c", "main", running));
        assert!(!cache.is_outlined_as("u", [sandbox, container].into_iter()), "nothing is known");
        cache.put("u", pod(Some(true), ""), Instant::now());
        cache.tell("u", told.into());
        for (parts, expected) in [
            (vec![sandbox, container], true),
            (vec![container, sandbox], true),
            (vec![sandbox], false),
            (vec![sandbox, container, ("d", "main", running)], false),
            (vec![sandbox, ("d", "main", running)], false),
            (vec![sandbox, ("c", "other", running)], false),
            (vec![sandbox, ("c", "main", RecordState::Exited)], false),
        ] {
            assert_eq!(cache.is_outlined_as("u", parts.iter().copied()), expected, "{parts:?}");
        }
        assert!(!cache.is_outlined_as("v", std::iter::empty()));
        assert_eq!(cache.outlined_but_for(|_| false), ["u"]);
        assert!(cache.outlined_but_for(|uid| uid == "u").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_runs_again_is_wanted_again() {
        let (cache, at) = (RuntimeCache::default(), Instant::now());
        cache.put("u", pod(Some(false), ""), at);
        cache.release("u");
        cache.put("u", pod(Some(true), "10.0.0.1"), at);
        cache.put("u", pod(None, "10.0.0.1"), at);
        assert_eq!(cache.get("u").unwrap().ips, ["10.0.0.1"]);
    }
}
