//! What must hold at every moment of a story, faults or not, checked on the watch of all pods: events in order and none
//! twice, one object for a name and never a uid again, bound once, and no node asked for more than it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::quantity::Quantity;
use api_types::core_v1::Pod;
use client::{Client, ClientError, WatchEvent};
use parking_lot::Mutex;

/// How long to wait before asking a server again that did not answer.
const RETRY: Duration = Duration::from_millis(500);
/// More violations than these say nothing new.
const MAX_VIOLATIONS: usize = 20;

/// Watches all pods until its client's tasks end.
pub(crate) struct Observer {
    state: Arc<Mutex<State>>,
}

impl Observer {
    pub(crate) fn start(admin: &Client) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let (owned, shared) = (admin.clone(), Arc::clone(&state));
        admin.tasks().spawn_cancellable("observer", async move {
            loop {
                if let Err(error) = follow(&owned, &shared).await {
                    tracing::info!(%error, "The observer's watch has ended");
                }
                tokio::time::sleep(RETRY).await;
            }
        });
        Self { state }
    }

    /// What was violated so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }

    /// Which pods the events do not have as new as a write was acknowledged, by uid.
    pub(crate) fn lost(&self, acknowledged: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        let state = self.state.lock();
        let of_pods = acknowledged.iter().filter(|(_, (path, _))| path.contains("/pods"));
        let is_lost = |uid: &String, newest: u64| match state.pods.get(uid) {
            Some(pod) => version(pod) < newest,
            // Between two lists a pod may have come and gone, untold.
            None => state.lists == 1 && !state.gone.contains(uid),
        };
        let lost = of_pods.filter(|(uid, (_, newest))| is_lost(uid, *newest));
        lost.map(|(uid, (path, newest))| format!("{path} ({uid}) was acknowledged at {newest}, and is not there"))
            .collect()
    }

    /// How many events were checked.
    pub(crate) fn events(&self) -> usize {
        self.state.lock().events
    }

    /// In what the pods that the events tell of differ from a list: nothing where no event was lost.
    pub(crate) async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let listed = admin.all::<Pod>().list_all(&ListOptions::default()).await?;
        let listed: BTreeMap<String, u64> =
            listed.items.iter().map(|pod| (pod.metadata.uid.clone(), version(pod))).collect();
        let told: BTreeMap<String, u64> =
            self.state.lock().pods.iter().map(|(uid, pod)| (uid.clone(), version(pod))).collect();
        let differ = listed != told;
        Ok(differ.then(|| format!("the events told of {told:?}, the list has {listed:?}")).into_iter().collect())
    }
}

/// From a list, or from where the last watch ended, to the end of a watch.
async fn follow(admin: &Client, state: &Mutex<State>) -> Result<(), ClientError> {
    let pods = admin.all::<Pod>();
    if state.lock().version.is_none() {
        let list = pods.list_all(&ListOptions::default()).await?;
        state.lock().relist(&list.metadata.resource_version, list.items);
    }
    let from = state.lock().version.unwrap_or_default().to_string();
    let options = ListOptions { resource_version: from, ..ListOptions::default() };
    let opened = pods.watch(&options).await;
    if opened.as_ref().is_err_and(ClientError::is_gone) {
        state.lock().version = None;
    }
    let mut watch = opened?;
    while let Some(event) = watch.next().await {
        match event? {
            WatchEvent::Added(pod) => state.lock().happened(Happened::Added, pod),
            WatchEvent::Modified(pod) => state.lock().happened(Happened::Modified, pod),
            WatchEvent::Deleted(pod) => state.lock().happened(Happened::Deleted, pod),
            WatchEvent::Bookmark { .. } => {}
            // Too old: the server that came back does not know the events before its start.
            WatchEvent::Error(_) => state.lock().version = None,
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happened {
    Added,
    Modified,
    Deleted,
}

#[derive(Default)]
struct State {
    /// The version of the last event; nothing before the first list, and after a watch that was too old.
    version: Option<u64>,
    /// The pods that exist, by uid.
    pods: BTreeMap<String, Pod>,
    /// The uids of pods that are gone.
    gone: BTreeSet<String>,
    events: usize,
    /// How often the pods had to be listed.
    lists: usize,
    violations: Vec<String>,
}

impl State {
    fn violated(&mut self, what: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(what);
        }
    }

    fn relist(&mut self, version_of_list: &str, pods: Vec<Pod>) {
        self.version = version_of_list.parse().ok();
        self.lists += 1;
        let now: BTreeSet<String> = pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        let left: Vec<String> = self.pods.keys().filter(|uid| !now.contains(*uid)).cloned().collect();
        for uid in left {
            self.pods.remove(&uid);
            self.gone.insert(uid);
        }
        for pod in pods {
            if self.pods.get(&pod.metadata.uid).is_some_and(|known| version(known) > version(&pod)) {
                self.violated(format!("a list has {} older than an event told", pod.metadata.name));
            }
            self.put(pod);
        }
    }

    fn happened(&mut self, what: Happened, pod: Pod) {
        self.events += 1;
        let (name, uid) = (pod.metadata.name.clone(), pod.metadata.uid.clone());
        if self.version.is_some_and(|last| version(&pod) <= last) {
            self.violated(format!("{what:?} {name} at {} came after {:?}", version(&pod), self.version));
        }
        self.version = Some(version(&pod));
        if self.pods.contains_key(&uid) == (what == Happened::Added) {
            self.violated(format!("{what:?} {name} ({uid}) does not follow what was told before"));
        }
        if what == Happened::Deleted {
            self.pods.remove(&uid);
            self.gone.insert(uid);
        } else {
            self.put(pod);
        }
    }

    fn put(&mut self, pod: Pod) {
        let (name, uid) = (pod.metadata.name.clone(), pod.metadata.uid.clone());
        if self.gone.contains(&uid) {
            self.violated(format!("{name} ({uid}) is back after it was deleted"));
        }
        let before = self.pods.insert(uid.clone(), pod.clone());
        if let Some(node) = before.map(|pod| pod.spec.node_name).filter(|node| !node.is_empty())
            && node != pod.spec.node_name
        {
            self.violated(format!("{name} moved from {node} to {}", pod.spec.node_name));
        }
        let place = |pod: &Pod| (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        if self.pods.values().filter(|other| place(other) == place(&pod)).count() > 1 {
            self.violated(format!("there are two pods {name} at once"));
        }
        self.check_room(&pod.spec.node_name);
    }

    fn check_room(&mut self, node: &str) {
        let holds =
            |pod: &&Pod| pod.spec.node_name == node && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        let used: i64 = self.pods.values().filter(holds).map(millicores).sum();
        if !node.is_empty() && used > testing::CORES_PER_NODE * 1000 {
            self.violated(format!("{node} is asked for {used} thousandths of a core"));
        }
    }
}

fn version(pod: &Pod) -> u64 {
    pod.metadata.resource_version.parse().unwrap_or_default()
}

fn millicores(pod: &Pod) -> i64 {
    let requests = pod.spec.containers.iter().filter_map(|container| container.resources.requests.get("cpu"));
    requests.map(Quantity::milli_value).sum()
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;
    use serde_json::json;

    use super::{Happened, Pod, State};

    fn pod(name: &str, uid: &str, version: &str, node: &str, cpu: &str) -> Pod {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": version});
        from_value(&json!({"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}})).unwrap()
    }

    #[test]
    fn violations_are_seen() {
        use Happened::{Added, Deleted, Modified};
        let one = |version: &str, node: &str| pod("a", "1", version, node, "1");
        let cases = [
            (vec![(Added, one("1", "")), (Modified, one("2", "n")), (Deleted, one("3", "n"))], None),
            (vec![(Added, one("2", "")), (Modified, one("2", ""))], Some("came after")),
            (vec![(Added, one("1", "")), (Added, one("2", ""))], Some("does not follow")),
            (vec![(Modified, one("1", ""))], Some("does not follow")),
            (vec![(Added, one("1", "")), (Deleted, one("2", "")), (Added, one("3", ""))], Some("is back")),
            (vec![(Added, one("1", "n")), (Modified, one("2", "m"))], Some("moved from n to m")),
            (vec![(Added, one("1", "")), (Added, pod("a", "2", "2", "", "1"))], Some("two pods a")),
            (
                vec![(Added, pod("a", "1", "1", "n", "5")), (Added, pod("b", "2", "2", "n", "4"))],
                Some("is asked for 9000"),
            ),
        ];
        for (events, expected) in cases {
            let mut state = State::default();
            for (what, pod) in events.clone() {
                state.happened(what, pod);
            }
            match expected {
                None => assert_eq!(state.violations, Vec::<String>::new()),
                Some(text) => assert!(state.violations.iter().any(|line| line.contains(text)), "{events:?}"),
            }
        }
    }
}
