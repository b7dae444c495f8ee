//! The statuses of pods as last computed, and their way to the API server: one patch at a time, only differences.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_machinery::value::{Value, struct_to_map};
use api_types::core_v1::{Pod, PodStatus};
use base::SharedClock;
use client::{Client, ClientError, Patch};
use kubelet_node::versions::is_newer;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::news::Herald;
use super::status::{OWNED, is_terminal, refresh_terminal, same_conditions, upsert};
use super::store::PodStore;
use super::{is_mirror, is_static};
use crate::metrics::KubeletMetrics;

/// Everything is looked at again after this, also what was overwritten by others.
const RESYNC: Duration = Duration::from_secs(10);

/// A status that the API server did not take rests for as long, whatever else is sent meanwhile, unless it changes.
const REST: Duration = Duration::from_secs(1);

/// The statuses by pod uid.
pub(crate) struct StatusBoard {
    entries: Mutex<HashMap<String, Entry>>,
    changed: Notify,
    herald: Arc<Herald>,
    clock: SharedClock,
    metrics: Arc<KubeletMetrics>,
}

struct Entry {
    pod: Arc<Pod>,
    status: Arc<PodStatus>,
    version: u64,
    /// The version that the API server has, 0 for none.
    sent: u64,
    /// Nothing will change any more: the pod's containers and volumes are gone.
    finished: bool,
    /// When it last became another.
    changed: Instant,
    /// The version that could not be sent last, and when.
    failed: Option<(u64, Instant)>,
    /// The pod as the API server answered last, while the watch does not show it yet.
    answered: Option<Arc<Pod>>,
}

impl Entry {
    fn is_unsent(&self) -> bool {
        self.version > self.sent
    }

    fn rests(&self) -> bool {
        self.failed.is_some_and(|(version, at)| version == self.version && at.elapsed() < REST)
    }

    /// Forgets the API server's answer where the watch has come as far.
    fn catch_up(&mut self, in_api: &Pod) {
        self.answered.take_if(|answered| !is_newer(&answered.metadata, &in_api.metadata));
    }
}

/// Answers whether containers of a pod may still run.
pub(crate) trait Liveness: Send + Sync {
    fn could_run(&self, uid: &str) -> bool;
}

impl StatusBoard {
    pub(crate) fn new(herald: Arc<Herald>, clock: SharedClock, metrics: Arc<KubeletMetrics>) -> Self {
        Self { entries: Mutex::default(), changed: Notify::new(), herald, clock, metrics }
    }

    pub(crate) fn get(&self, uid: &str) -> Option<Arc<PodStatus>> {
        self.entries.lock().get(uid).map(|entry| Arc::clone(&entry.status))
    }

    /// Takes a status; sent if it differs from the last.
    pub(crate) fn set(&self, pod: &Arc<Pod>, status: PodStatus) {
        let mut entries = self.entries.lock();
        match entries.get_mut(&pod.metadata.uid) {
            Some(entry) => {
                entry.pod = Arc::clone(pod);
                if same(&entry.status, &status) {
                    return;
                }
                entry.status = Arc::new(status);
                entry.version += 1;
                entry.changed = Instant::now();
            }
            None => {
                let changed = Instant::now();
                let (pod, status) = (Arc::clone(pod), Arc::new(status));
                let (version, sent, finished) = (1, 0, false);
                let entry = Entry { pod, status, version, sent, finished, changed, failed: None, answered: None };
                entries.insert(entry.pod.metadata.uid.clone(), entry);
            }
        }
        drop(entries);
        self.herald.changed(&pod.metadata.uid);
        self.changed.notify_one();
    }

    /// Takes a newer version of a pod whose status stays: the older one would be kept for it alone.
    pub(crate) fn renew(&self, pod: &Arc<Pod>) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            entry.pod = Arc::clone(pod);
            entry.catch_up(pod);
        }
    }

    /// The pod has come to its end: its object may be deleted.
    pub(crate) fn finish(&self, pod: &Arc<Pod>) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            entry.pod = Arc::clone(pod);
            entry.finished = true;
            entry.version += 1;
        }
        self.changed.notify_one();
    }

    /// Forgets all pods but these.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) {
        self.entries.lock().retain(|uid, _| uids.contains(uid));
    }

    /// Forgets a pod that begins anew under its old uid.
    pub(crate) fn forget(&self, uid: &str) {
        self.entries.lock().remove(uid);
    }

    /// Something was seen in the API that may need an answer.
    pub(crate) fn poke(&self) {
        self.changed.notify_one();
    }

    /// Sends until the caller drops the future.
    pub(crate) async fn run(&self, client: &Client, store: &PodStore, liveness: &dyn Liveness) {
        let mut ticks = tokio::time::interval(RESYNC);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let all = tokio::select! {
                _ = ticks.tick() => true,
                () = self.changed.notified() => false,
            };
            for uid in self.due(store, all) {
                self.send(client, store, liveness, &uid).await;
            }
        }
    }

    /// The pods whose status must be sent: changed ones, and at a complete pass those that differ in the API.
    fn due(&self, store: &PodStore, all: bool) -> Vec<String> {
        let entries = self.entries.lock();
        let due = entries.iter().filter(|(_, entry)| {
            if entry.is_unsent() {
                return all || !entry.rests();
            }
            let in_api = || store.in_api(&entry.pod);
            all && in_api().is_some_and(|pod| !same(&pod.status, &entry.status) || deletable(&pod, entry.finished))
        });
        due.map(|(uid, _)| uid.clone()).collect()
    }

    async fn send(&self, client: &Client, store: &PodStore, liveness: &dyn Liveness, uid: &str) {
        let Some(letter) = self.letter(store, uid) else { return };
        let (pod, version) = (&letter.pod, letter.version);
        if is_static(pod) && letter.there.is_none() {
            // Without a mirror the status stays here.
            return;
        }
        match self.send_letter(client, &letter, liveness.could_run(uid)).await {
            Ok(Sent::Current(answered)) => {
                if let Some(entry) = self.entries.lock().get_mut(uid) {
                    if version > entry.sent {
                        self.metrics.status_sync.with(&[]).observe(entry.changed.elapsed().as_secs_f64());
                    }
                    entry.sent = entry.sent.max(version);
                    entry.failed = None;
                    entry.answered = answered.or(entry.answered.take());
                    if let Some(in_api) = store.in_api(&letter.pod) {
                        entry.catch_up(&in_api);
                    }
                }
            }
            Ok(Sent::Replaced) => drop(self.entries.lock().remove(uid)),
            Err(error) => {
                if let Some(entry) = self.entries.lock().get_mut(uid) {
                    entry.failed = Some((version, Instant::now()));
                }
                tracing::warn!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, %error, "Failed to update status for pod");
            }
        }
    }

    fn letter(&self, store: &PodStore, uid: &str) -> Option<Letter> {
        let entries = self.entries.lock();
        let entry = entries.get(uid)?;
        let (in_api, answered) = (store.in_api(&entry.pod), entry.answered.as_ref());
        let there = match (in_api, answered) {
            (Some(in_api), Some(answered)) if is_newer(&answered.metadata, &in_api.metadata) => {
                Some(Arc::clone(answered))
            }
            (in_api, _) => in_api,
        };
        Some(Letter {
            pod: Arc::clone(&entry.pod),
            status: Arc::clone(&entry.status),
            version: entry.version,
            finished: entry.finished,
            there,
            is_doubted: entry.failed.is_some(),
        })
    }

    /// Sends the differences from what is known of the API server's pod. Upstream reads it first each time; here that is done
    /// where the server does not agree: what others changed meanwhile is seen when the watch shows it.
    async fn send_letter(&self, client: &Client, letter: &Letter, could_run: bool) -> Result<Sent, ClientError> {
        if let Some(there) = letter.there.as_ref().filter(|_| !letter.is_doubted) {
            match self.send_to(client, letter, there, could_run).await {
                // Another pod has the name, or none.
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                sent => return sent,
            }
        }
        let pods = client.namespaced::<Pod>(&letter.pod.metadata.namespace);
        match pods.get_opt(&letter.pod.metadata.name).await? {
            None => Ok(Sent::Current(None)),
            Some(there) if !is_static(&letter.pod) && there.metadata.uid != letter.pod.metadata.uid => {
                Ok(Sent::Replaced)
            }
            Some(there) => self.send_to(client, letter, &there, could_run).await,
        }
    }

    async fn send_to(
        &self,
        client: &Client,
        letter: &Letter,
        there: &Pod,
        could_run: bool,
    ) -> Result<Sent, ClientError> {
        let pods = client.namespaced::<Pod>(&letter.pod.metadata.namespace);
        let wanted = merge(&there.status, &letter.status, could_run, Time::from(self.clock.wall()));
        let answered = match patch(there, &wanted) {
            Some(body) => Some(pods.patch_status(&letter.pod.metadata.name, &Patch::Strategic(body)).await?),
            None => None,
        };
        let answered = answered.map(Arc::new);
        let there = answered.as_deref().unwrap_or(there);
        if deletable(there, letter.finished) {
            let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
            pods.delete_this(&there.metadata, options).await?;
        }
        Ok(Sent::Current(answered))
    }
}

/// What there is to send of a pod.
struct Letter {
    pod: Arc<Pod>,
    status: Arc<PodStatus>,
    /// That of the status.
    version: u64,
    finished: bool,
    /// The pod as the API server has it, as far as is known.
    there: Option<Arc<Pod>>,
    /// The last that was sent was refused, maybe because of what is not known.
    is_doubted: bool,
}

enum Sent {
    /// The server has it, and answered so if there was a difference.
    Current(Option<Arc<Pod>>),
    /// Another pod has the name by now.
    Replaced,
}

/// Whether the pod's object is only waiting for the kubelet.
fn deletable(in_api: &Pod, finished: bool) -> bool {
    finished && in_api.metadata.deletion_timestamp.is_some() && !is_mirror(in_api) && is_terminal(&in_api.status.phase)
}

/// Equal but for times of transition and conditions of others.
fn same(one: &PodStatus, other: &PodStatus) -> bool {
    let bare = |status: &PodStatus| PodStatus { conditions: Vec::new(), ..status.clone() };
    same_conditions(one, other) && bare(one) == bare(other)
}

/// What to write: ours over what is there, with the phase held back while containers could run.
fn merge(there: &PodStatus, ours: &PodStatus, could_run: bool, now: Time) -> PodStatus {
    let mut out = ours.clone();
    let ends = !is_terminal(&there.phase) && is_terminal(&ours.phase);
    let held_back = ends && could_run;
    let mut conditions = there.conditions.clone();
    // Conditions about a resize are there only as long as they are true.
    conditions.retain(|known| {
        let ours = ours.conditions.iter().any(|own| own.type_ == known.type_);
        ours || !known.type_.starts_with("PodResize")
    });
    for condition in &ours.conditions {
        if held_back && condition.type_ == "DisruptionTarget" {
            continue;
        }
        let known = there.conditions.iter().any(|known| known.type_ == condition.type_);
        let owned = OWNED.contains(&condition.type_.as_str()) || condition.type_ == "DisruptionTarget";
        if owned || !known {
            upsert(&mut conditions, condition.clone());
        }
    }
    out.conditions = conditions;
    if held_back {
        out.phase.clone_from(&there.phase);
        out.reason.clone_from(&there.reason);
        out.message.clone_from(&there.message);
    } else {
        refresh_terminal(&mut out, now);
    }
    out
}

/// Lists that the API server merges by key unless it is told otherwise.
const MERGED_LISTS: &[&str] = &["podIPs", "resourceClaimStatuses"];

/// The strategic merge patch from what is there to what is wanted; `None` where they are equal.
fn patch(there: &Pod, wanted: &PodStatus) -> Option<Value> {
    let (old, new) = (struct_to_map(&there.status), struct_to_map(wanted));
    let mut out = serde_json::Map::new();
    for (key, value) in &new {
        if old.get(key) == Some(value) {
            continue;
        }
        let mut value = value.clone();
        if MERGED_LISTS.contains(&key.as_str())
            && old.contains_key(key)
            && let Some(list) = value.as_array_mut()
        {
            list.insert(0, serde_json::json!({"$patch": "replace"}));
        }
        if key == "conditions" {
            let types = value.as_array().into_iter().flatten().filter_map(|condition| condition.get("type"));
            let order: Vec<Value> = types.map(|type_| serde_json::json!({"type": type_})).collect();
            out.insert("$setElementOrder/conditions".to_owned(), Value::Array(order));
            take_back(&mut value, old.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice));
        }
        out.insert(key.clone(), value);
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        out.insert(key.clone(), Value::Null);
    }
    if out.is_empty() {
        return None;
    }
    Some(serde_json::json!({"metadata": {"uid": there.metadata.uid}, "status": out}))
}

/// What there is of conditions and is not wanted: those that are gone, and members of those that stay, such as the reason
/// why a pod was not ready. The server merges conditions by their types, so that all that is not named would stay.
fn take_back(wanted: &mut Value, there: &[Value]) {
    let Some(wanted) = wanted.as_array_mut() else { return };
    let mut gone = Vec::new();
    for old in there {
        match wanted.iter_mut().find(|new| new.get("type") == old.get("type")).and_then(Value::as_object_mut) {
            Some(new) => {
                for key in old.as_object().into_iter().flat_map(|old| old.keys()) {
                    new.entry(key.clone()).or_insert(Value::Null);
                }
            }
            None => gone.push(serde_json::json!({"$patch": "delete", "type": old.get("type")})),
        }
    }
    wanted.append(&mut gone);
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{PodCondition, PodIP};

    use super::*;

    struct Stopped;

    impl Liveness for Stopped {
        fn could_run(&self, _uid: &str) -> bool {
            false
        }
    }

    /// Ends the pod while its status is on the way.
    struct EndsMeanwhile<'a>(&'a StatusBoard, Arc<Pod>);

    impl Liveness for EndsMeanwhile<'_> {
        fn could_run(&self, _uid: &str) -> bool {
            self.0.set(&self.1, status("Failed", "False"));
            false
        }
    }

    fn status(phase: &str, ready: &str) -> PodStatus {
        let condition = PodCondition { type_: "Ready".into(), status: ready.into(), ..PodCondition::default() };
        PodStatus { phase: phase.into(), conditions: vec![condition], ..PodStatus::default() }
    }

    #[test]
    fn an_end_is_held_back_while_containers_could_run() {
        let now = Time::from_unix_seconds(9);
        let held = merge(&status("Running", "True"), &status("Failed", "True"), true, now);
        assert_eq!(held.phase, "Running");
        let told = merge(&status("Running", "True"), &status("Failed", "True"), false, now);
        assert_eq!(told.phase, "Failed");
        assert_eq!((told.conditions[0].status.as_str(), told.conditions[0].reason.as_str()), ("False", "PodFailed"));
    }

    #[test]
    fn conditions_of_others_stay() {
        let mut there = status("Running", "False");
        there.conditions.push(PodCondition { type_: "gate".into(), status: "True".into(), ..PodCondition::default() });
        let mut ours = status("Running", "True");
        ours.conditions.push(PodCondition { type_: "gate".into(), status: "False".into(), ..PodCondition::default() });
        let merged = merge(&there, &ours, true, Time::from_unix_seconds(9));
        let of = |type_: &str| merged.conditions.iter().find(|it| it.type_ == type_).map(|it| it.status.clone());
        assert_eq!((of("Ready"), of("gate")), (Some("True".into()), Some("True".into())));
    }

    #[test]
    fn patches_carry_differences_only() {
        let mut there = Pod { status: status("Pending", "False"), ..Pod::default() };
        there.metadata.uid = "u".into();
        there.status.reason = "old".into();
        there.status.pod_ips = vec![PodIP { ip: "10.0.0.9".into() }];
        assert_eq!(patch(&there, &there.status.clone()), None);
        let mut wanted = PodStatus { phase: "Running".into(), reason: String::new(), ..there.status.clone() };
        wanted.pod_ips = vec![PodIP { ip: "10.0.0.1".into() }];
        let expected = serde_json::json!({"metadata": {"uid": "u"}, "status": {"phase": "Running", "reason": null,
            "podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.1"}]}});
        assert_eq!(patch(&there, &wanted), Some(expected));
    }

    /// The server merges conditions by type: what is not taken back stays, and the status would be sent for ever.
    #[test]
    fn patches_take_back_what_conditions_said() {
        let mut there = Pod { status: status("Running", "False"), ..Pod::default() };
        (there.status.conditions[0].reason, there.status.conditions[0].message) = ("Slow".into(), "not yet".into());
        there.status.conditions.push(PodCondition { type_: "PodResizePending".into(), ..PodCondition::default() });
        let body = patch(&there, &status("Running", "True")).unwrap();
        let sent = serde_json::json!([
            {"type": "Ready", "status": "True", "reason": null, "message": null, "lastProbeTime": null,
             "lastTransitionTime": null},
            {"$patch": "delete", "type": "PodResizePending"},
        ]);
        assert_eq!(body["status"]["conditions"], sent);
        assert_eq!(body["status"]["$setElementOrder/conditions"], serde_json::json!([{"type": "Ready"}]));
    }

    #[tokio::test(start_paused = true)]
    async fn only_changes_are_due() {
        let board = StatusBoard::new(Arc::default(), base::TokioClock::shared(), KubeletMetrics::unseen());
        let store = PodStore::default();
        let mut pod = Pod::default();
        pod.metadata.uid = "u".into();
        let pod = Arc::new(pod);
        board.set(&pod, status("Running", "True"));
        assert_eq!(board.due(&store, false), ["u"]);
        board.entries.lock().get_mut("u").unwrap().sent = 1;
        board.set(&pod, status("Running", "True"));
        assert!(board.due(&store, false).is_empty());
        board.set(&pod, status("Failed", "True"));
        assert_eq!(board.due(&store, false), ["u"]);
    }

    /// The pod as the API server has it, with the version that comes next.
    fn there(version: &str, status: PodStatus) -> Arc<Pod> {
        let mut pod = Pod { status, ..Pod::default() };
        (pod.metadata.uid, pod.metadata.name, pod.metadata.namespace) = ("u".into(), "web".into(), "test".into());
        pod.metadata.resource_version = version.into();
        Arc::new(pod)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_read_where_the_server_does_not_agree() {
        // (what the server says to the change, the requests, by method, with what is left to send)
        let cases: [(&[u16], &str, bool); 4] = [
            (&[], "PATCH", false),
            (&[409], "PATCH GET PATCH", false),
            (&[404], "PATCH GET PATCH", false),
            (&[500], "PATCH", true),
        ];
        for (failures, expected, is_left) in cases {
            let server = client::fake::FakeServer::new();
            let pod = there("", status("Pending", "False"));
            server.put("v1/pods", api_machinery::value::Value::Object(struct_to_map(&*pod)));
            server.fail_next("PATCH", failures);
            let board = StatusBoard::new(Arc::default(), base::TokioClock::shared(), KubeletMetrics::unseen());
            let store = PodStore::default();
            store.put(&pod);
            board.set(&pod, status("Running", "True"));
            board.send(&server.client(), &store, &Stopped, "u").await;
            let requests = server.requests();
            let methods: Vec<&str> = requests.iter().filter_map(|request| request.split(' ').next()).collect();
            assert_eq!((methods.join(" ").as_str(), board.entries.lock()["u"].is_unsent()), (expected, is_left));
            assert_eq!(server.objects("v1/pods")[0]["status"]["phase"] == "Running", !is_left);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn differences_are_those_from_the_latest_state() {
        let board = StatusBoard::new(Arc::default(), base::TokioClock::shared(), KubeletMetrics::unseen());
        let store = PodStore::default();
        let phase = |board: &StatusBoard| board.letter(&store, "u").unwrap().there.unwrap().status.phase.clone();
        store.put(&there("5", status("Pending", "False")));
        board.set(&there("5", PodStatus::default()), status("Running", "True"));
        assert_eq!(phase(&board), "Pending");
        board.entries.lock().get_mut("u").unwrap().answered = Some(there("7", status("Running", "True")));
        assert_eq!(phase(&board), "Running", "the watch is behind");
        store.put(&there("6", status("Pending", "True")));
        board.renew(&there("6", status("Pending", "True")));
        assert_eq!(phase(&board), "Running");
        store.put(&there("8", status("Failed", "True")));
        assert_eq!(phase(&board), "Failed");
        board.renew(&there("8", status("Failed", "True")));
        assert!(board.entries.lock()["u"].answered.is_none(), "it is kept no longer than it is needed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_is_refused_is_not_sent_at_every_turn() {
        let server = client::fake::FakeServer::new();
        server.fail_next("GET", &[403, 403]);
        let client = server.client();
        let board = StatusBoard::new(Arc::default(), base::TokioClock::shared(), KubeletMetrics::unseen());
        let store = PodStore::default();
        let mut pod = Pod::default();
        (pod.metadata.uid, pod.metadata.name, pod.metadata.namespace) = ("u".into(), "web".into(), "test".into());
        let pod = Arc::new(pod);
        board.set(&pod, status("Running", "True"));
        board.send(&client, &store, &Stopped, "u").await;
        assert!(board.due(&store, false).is_empty(), "it rests");
        assert_eq!(board.due(&store, true), ["u"], "a complete pass tries everything");
        tokio::time::advance(REST).await;
        assert_eq!(board.due(&store, false), ["u"]);
        board.send(&client, &store, &EndsMeanwhile(&board, Arc::clone(&pod)), "u").await;
        assert_eq!(board.due(&store, false), ["u"], "what changed meanwhile is sent at once");
        assert_eq!(server.requests().len(), 2);
        board.send(&client, &store, &Stopped, "u").await;
        assert!(board.due(&store, true).is_empty(), "a pod that is gone needs no status");
    }
}
