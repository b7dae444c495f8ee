//! Pods that have a node, and wait for the word of `Permit` plugins before they are bound. Each holds its room on the node
//! and has a task of its own that waits; how many there are is bounded by the room that nodes have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::GoDuration;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pre_binding::{PreBinding, PreBindingPods};
use super::status::{Status, StatusResult};
use crate::pod_info::PodInfo;

/// The longest that a pod waits, whatever a plugin asks for, as upstream.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The pods that wait, of all profiles, and those for which work is done after that.
#[derive(Default)]
pub struct WaitingPods {
    waiting: Mutex<BTreeMap<String, Arc<WaitingPod>>>,
    working: Arc<PreBindingPods>,
}

/// A pod that waits.
pub struct WaitingPod {
    /// The pod.
    pub info: Arc<PodInfo>,
    /// The node that was chosen for it.
    pub node: Arc<str>,
    state: Mutex<State>,
    ended: Notify,
}

/// How far the wait has come. Nothing that is said after the end counts.
enum State {
    /// For these plugins, which have so much time.
    Waiting(BTreeMap<&'static str, Asked>),
    /// All have allowed it, or something else came first.
    Ended(StatusResult),
}

struct Asked {
    timeout: Duration,
    deadline: Instant,
}

impl WaitingPods {
    /// A pod by its uid.
    #[must_use]
    pub fn get(&self, uid: &str) -> Option<Arc<WaitingPod>> {
        self.waiting.lock().get(uid).cloned()
    }

    /// All pods that wait, by uid.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<WaitingPod>> {
        self.waiting.lock().values().cloned().collect()
    }

    /// The pod is gone: it waits no more. Says whether it did.
    pub fn reject(&self, uid: &str) -> bool {
        self.get(uid).is_some_and(|pod| pod.reject("", "removed"))
    }

    /// Whether a pod has room that it may give up without being deleted.
    pub(crate) fn holds(&self, uid: &str) -> bool {
        self.get(uid).is_some() || self.working.has(uid)
    }

    /// The room of a pod is needed for one that is more important. Says whether it gives it up without being deleted.
    pub(crate) fn preempt(&self, uid: &str, plugin: &'static str) -> bool {
        self.get(uid).is_some_and(|pod| pod.preempt()) || self.working.preempt(uid, plugin)
    }

    /// Work is done for a pod before it is bound.
    pub(crate) fn begin_work(&self, uid: &str) -> PreBinding {
        self.working.begin(uid)
    }

    /// A pod begins to wait for these plugins, each for so long at most.
    pub(crate) fn park(
        self: &Arc<Self>,
        info: &Arc<PodInfo>,
        node: &Arc<str>,
        asked: &[(&'static str, Duration)],
        now: Instant,
    ) -> Parked {
        let asked = asked.iter().map(|(plugin, timeout)| {
            let timeout = (*timeout).min(LONGEST);
            (*plugin, Asked { timeout, deadline: now + timeout })
        });
        let pod = Arc::new(WaitingPod {
            info: Arc::clone(info),
            node: Arc::clone(node),
            state: Mutex::new(State::Waiting(asked.collect())),
            ended: Notify::new(),
        });
        self.waiting.lock().insert(info.uid().to_owned(), Arc::clone(&pod));
        Parked { pods: Arc::clone(self), pod }
    }
}

impl WaitingPod {
    /// The plugins whose word is still missing, by name.
    #[must_use]
    pub fn pending_plugins(&self) -> Vec<&'static str> {
        match &*self.state.lock() {
            State::Waiting(asked) => asked.keys().copied().collect(),
            State::Ended(_) => Vec::new(),
        }
    }

    /// A plugin has nothing against it any more; with the last of them, the pod goes on.
    pub fn allow(&self, plugin: &str) {
        let mut state = self.state.lock();
        let State::Waiting(asked) = &mut *state else { return };
        asked.remove(plugin);
        if asked.is_empty() {
            *state = State::Ended(Ok(()));
            self.ended.notify_one();
        }
    }

    /// A plugin rejects the pod. Says whether it was still waiting.
    pub fn reject(&self, plugin: &'static str, message: &str) -> bool {
        self.end(Status::unschedulable(message.to_owned()).by(plugin))
    }

    /// Its room is needed for a pod that is more important. Says whether it was still waiting.
    pub fn preempt(&self) -> bool {
        self.end(Status::error("preempted"))
    }

    fn end(&self, status: Status) -> bool {
        let mut state = self.state.lock();
        let waits = matches!(&*state, State::Waiting(_));
        if waits {
            *state = State::Ended(Err(status));
            self.ended.notify_one();
        }
        waits
    }

    /// The end, or whose time is over first.
    fn look(&self) -> Result<StatusResult, (&'static str, Duration, Instant)> {
        match &*self.state.lock() {
            State::Ended(verdict) => Ok(verdict.clone()),
            State::Waiting(asked) => {
                let first = asked.iter().min_by_key(|(_, asked)| asked.deadline);
                first.map_or(Ok(Ok(())), |(plugin, asked)| Err((*plugin, asked.timeout, asked.deadline)))
            }
        }
    }
}

/// The wait of one pod. The pod waits no more when this is dropped, whoever ends the task that holds it.
pub(crate) struct Parked {
    pods: Arc<WaitingPods>,
    pod: Arc<WaitingPod>,
}

impl Parked {
    /// Waits until all plugins have allowed the pod, one has rejected it, the time of one is over, or it has to make room.
    pub(crate) async fn wait(&self) -> StatusResult {
        loop {
            let (plugin, timeout, deadline) = match self.pod.look() {
                Ok(verdict) => return verdict,
                Err(first) => first,
            };
            tokio::select! {
                biased;
                () = self.pod.ended.notified() => {}
                () = tokio::time::sleep_until(deadline) => {
                    if self.pod.pending_plugins().contains(&plugin) {
                        let waited = GoDuration::from_nanos(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
                        let message = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
                        self.pod.reject(plugin, &message);
                    }
                }
            }
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        let mut pods = self.pods.waiting.lock();
        // Another pod may have the place by now: a uid comes back where a pod was put back and taken again.
        if pods.get(self.pod.info.uid()).is_some_and(|known| Arc::ptr_eq(known, &self.pod)) {
            pods.remove(self.pod.info.uid());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_class::ClassTable;
    use crate::test_objects::pod;

    fn parked(asked: &[(&'static str, u64)]) -> (Arc<WaitingPods>, Parked) {
        let pods = Arc::new(WaitingPods::default());
        let asked: Vec<_> = asked.iter().map(|(plugin, seconds)| (*plugin, Duration::from_secs(*seconds))).collect();
        let parked = pods.park(&pod("p").info(&ClassTable::default()), &"a".into(), &asked, Instant::now());
        (pods, parked)
    }

    /// What a wait comes to after some words were said, and how many seconds it took.
    async fn outcome(asked: &[(&'static str, u64)], say: impl FnOnce(&WaitingPod)) -> (String, u64) {
        let (pods, parked) = parked(asked);
        let start = Instant::now();
        say(&pods.get("uid-p").unwrap());
        let verdict = parked.wait().await;
        drop(parked);
        assert!(pods.all().is_empty());
        let text = verdict.err().map(|status| format!("{}: {} ({})", status.code.name(), status, status.plugin));
        (text.unwrap_or_default(), start.elapsed().as_secs())
    }

    /// A name, who has how many seconds, what is said, and what a wait comes to.
    type Said = (&'static str, &'static [(&'static str, u64)], fn(&WaitingPod), (String, u64));
    const BOTH: &[(&str, u64)] = &[("One", 60), ("Two", 5)];

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_by_the_first_word_that_settles_it() {
        let timeout = "Unschedulable: rejected due to timeout after waiting";
        let said: [Said; 8] = [
            ("all allow it", BOTH, |pod| ["One", "Two"].iter().for_each(|name| pod.allow(name)), (String::new(), 0)),
            ("one rejects it", BOTH, |pod| assert!(pod.reject("Two", "no")), ("Unschedulable: no (Two)".into(), 0)),
            ("nobody says anything", BOTH, |_| {}, (format!("{timeout} 5s at plugin Two (Two)"), 5)),
            ("the other one's time", BOTH, |pod| pod.allow("Two"), (format!("{timeout} 1m0s at plugin One (One)"), 60)),
            ("a stranger", BOTH, |pod| pod.allow("Three"), (format!("{timeout} 5s at plugin Two (Two)"), 5)),
            ("room is needed", BOTH, |pod| assert!(pod.preempt()), ("Error: preempted ()".into(), 0)),
            (
                "what comes after the end",
                BOTH,
                |pod| {
                    assert!(pod.reject("One", "no"));
                    assert!(!pod.reject("Two", "late") && !pod.preempt());
                },
                ("Unschedulable: no (One)".into(), 0),
            ),
            ("the longest time", &[("One", 3600)], |_| {}, (format!("{timeout} 15m0s at plugin One (One)"), 900)),
        ];
        for (name, asked, say, expected) in said {
            assert_eq!(outcome(asked, say).await, expected, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_known_until_the_wait_is_dropped() {
        let (pods, parked) = parked(&[("One", 60)]);
        assert_eq!(pods.get("uid-p").unwrap().pending_plugins(), ["One"]);
        assert!(!pods.reject("another") && pods.reject("uid-p"));
        assert_eq!(parked.wait().await.unwrap_err().message(), "removed");
        drop(parked);
        assert!(pods.get("uid-p").is_none() && !pods.reject("uid-p"));
    }
}
