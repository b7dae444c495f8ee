//! The pods API (KEP-4188): the node's pods as the kubelet knows them, at a socket of its own. Whoever runs on the machine
//! learns of them there without the API server.

use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use api_machinery::protobuf;
use api_types::core_v1::constants::{pod_condition_type, pod_phase};
use api_types::core_v1::{Pod, PodStatus};
use base::{CancellationToken, SharedClock};
use client::TokenBucket;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use node_api::pods::v1alpha1::{
    EventType, GetPodRequest, GetPodResponse, ListPodsRequest, ListPodsResponse, WatchPodsEvent, WatchPodsRequest,
};
use node_api::pods::{self, Pods};
use node_api::tonic::{self, Request, Response, Status};
use tokio::sync::broadcast;

use crate::engine::{PodEngine, PodNews};
use crate::metrics::KubeletMetrics;
use crate::pod_resources::{BURST, RATE, listen};

/// Below the root directory.
const DIRECTORY: &str = "pods-api";
const SOCKET: &str = "pods-api.sock";

/// Who knows the pods.
pub(crate) trait Known: Send + Sync + 'static {
    /// Whether every source has told its pods.
    fn is_ready(&self) -> bool;

    /// All pods.
    fn pods(&self) -> Vec<Arc<Pod>>;

    /// One of them.
    fn pod(&self, uid: &str) -> Option<Arc<Pod>>;

    /// What the kubelet itself says of a pod, where it has looked at it.
    fn status(&self, uid: &str) -> Option<Arc<PodStatus>>;

    /// What becomes of them from now on.
    fn follow(&self) -> broadcast::Receiver<PodNews>;
}

impl Known for PodEngine {
    fn is_ready(&self) -> bool {
        self.sources_ready()
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        Self::pods(self)
    }

    fn pod(&self, uid: &str) -> Option<Arc<Pod>> {
        self.pod_by_uid(uid)
    }

    fn status(&self, uid: &str) -> Option<Arc<PodStatus>> {
        Self::status(self, uid)
    }

    fn follow(&self) -> broadcast::Receiver<PodNews> {
        self.follow_pods()
    }
}

/// Who answers.
pub(crate) struct PodsServer {
    known: Arc<dyn Known>,
    metrics: Arc<KubeletMetrics>,
    clock: SharedClock,
    limit: TokenBucket,
    /// Ends what is open.
    token: CancellationToken,
}

impl PodsServer {
    pub(crate) fn new(
        known: Arc<dyn Known>,
        metrics: Arc<KubeletMetrics>,
        clock: SharedClock,
        token: CancellationToken,
    ) -> Self {
        let limit = TokenBucket::new(RATE, BURST, clock.monotonic());
        Self { known, metrics, clock, limit, token }
    }

    fn admit(&self) -> Result<(), Status> {
        if !self.limit.try_take(self.clock.monotonic()) {
            return Err(Status::resource_exhausted("rejected by rate limit"));
        }
        if !self.known.is_ready() {
            return Err(Status::failed_precondition("Kubelet is initializing"));
        }
        Ok(())
    }
}

/// All pods in the order of their uids.
fn ordered(known: &dyn Known) -> Vec<Arc<Pod>> {
    let mut pods = known.pods();
    pods.sort_by(|one, other| one.metadata.uid.cmp(&other.metadata.uid));
    pods
}

/// A pod on the wire. What the API says of one that the kubelet has not looked at yet may be from before it was started: it
/// does not make the pod ready.
fn bytes(known: &dyn Known, pod: &Pod) -> Vec<u8> {
    let mut pod = pod.clone();
    if let Some(status) = known.status(&pod.metadata.uid) {
        pod.status = PodStatus::clone(&status);
        return protobuf::encode(&pod);
    }
    if pod.status.phase.is_empty() {
        pod_phase::PENDING.clone_into(&mut pod.status.phase);
    }
    let ready = pod.status.conditions.iter_mut().find(|condition| condition.type_ == pod_condition_type::READY);
    if let Some(ready) = ready.filter(|ready| ready.status == "True") {
        "False".clone_into(&mut ready.status);
        "ContainersNotReady".clone_into(&mut ready.reason);
        "Kubelet is initializing pod containers".clone_into(&mut ready.message);
    }
    protobuf::encode(&pod)
}

fn event(kind: EventType, pod: Vec<u8>) -> WatchPodsEvent {
    WatchPodsEvent { r#type: kind.into(), pod }
}

/// A stream that somebody reads: what is there at first, then what becomes of it.
struct Watch {
    known: Arc<dyn Known>,
    metrics: Arc<KubeletMetrics>,
    news: broadcast::Receiver<PodNews>,
    /// What is still to be told of the beginning.
    first: VecDeque<Arc<Pod>>,
    is_synced: bool,
    /// The pods that were told, by uid.
    told: BTreeSet<String>,
    token: CancellationToken,
    is_over: bool,
}

impl Watch {
    /// Follows first and looks then, so that nothing is missed in between.
    fn new(server: &PodsServer) -> Self {
        let (news, known) = (server.known.follow(), server.known.clone());
        let first = ordered(known.as_ref()).into();
        let (metrics, token) = (server.metrics.clone(), server.token.clone());
        Self { known, metrics, news, first, is_synced: false, told: BTreeSet::new(), token, is_over: false }
    }

    /// What is to be sent next; nothing when the kubelet ends.
    async fn next(&mut self) -> Option<Result<WatchPodsEvent, Status>> {
        if self.is_over {
            return None;
        }
        if let Some(pod) = self.first.pop_front() {
            self.told.insert(pod.metadata.uid.clone());
            return Some(Ok(event(EventType::Added, bytes(self.known.as_ref(), &pod))));
        }
        if !std::mem::replace(&mut self.is_synced, true) {
            return Some(Ok(event(EventType::InitialSyncComplete, Vec::new())));
        }
        loop {
            let news = tokio::select! {
                biased;
                () = self.token.cancelled() => return None,
                news = self.news.recv() => news,
            };
            match news {
                Ok(news) => {
                    if let Some(event) = self.event_of(news) {
                        return Some(Ok(event));
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return None,
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    self.is_over = true;
                    self.metrics.pod_watch_dropped.with(&[]).inc();
                    return Some(Err(Status::resource_exhausted("watch client channel closed")));
                }
            }
        }
    }

    /// What to tell of news; nothing of a pod that has come and gone meanwhile.
    fn event_of(&mut self, news: PodNews) -> Option<WatchPodsEvent> {
        match news {
            PodNews::Changed(uid) => {
                let pod = self.known.pod(&uid)?;
                let kind = if self.told.insert(uid) { EventType::Added } else { EventType::Modified };
                Some(event(kind, bytes(self.known.as_ref(), &pod)))
            }
            PodNews::Removed { uid, namespace, name } => self.told.remove(&uid).then(|| {
                let mut pod = Pod::default();
                (pod.metadata.uid, pod.metadata.namespace, pod.metadata.name) = (uid, namespace, name);
                event(EventType::Deleted, protobuf::encode(&pod))
            }),
        }
    }
}

#[tonic::async_trait]
impl Pods for PodsServer {
    type WatchPodsStream = BoxStream<'static, Result<WatchPodsEvent, Status>>;

    async fn watch_pods(&self, _: Request<WatchPodsRequest>) -> Result<Response<Self::WatchPodsStream>, Status> {
        self.admit()?;
        let events =
            stream::unfold(Watch::new(self), |mut watch| async { watch.next().await.map(|event| (event, watch)) });
        Ok(Response::new(events.boxed()))
    }

    async fn list_pods(&self, _: Request<ListPodsRequest>) -> Result<Response<ListPodsResponse>, Status> {
        self.admit()?;
        let known = self.known.as_ref();
        let pods = ordered(known).iter().map(|pod| bytes(known, pod)).collect();
        Ok(Response::new(ListPodsResponse { pods }))
    }

    async fn get_pod(&self, request: Request<GetPodRequest>) -> Result<Response<GetPodResponse>, Status> {
        self.admit()?;
        let uid = request.into_inner().pod_uid;
        // By its own uid alone: a mirror is not a pod of the kubelet.
        let pod = self.known.pod(&uid).filter(|pod| pod.metadata.uid == uid);
        let pod = pod.ok_or_else(|| Status::not_found(format!("pod with UID {uid} not found")))?;
        Ok(Response::new(GetPodResponse { pod: bytes(self.known.as_ref(), &pod) }))
    }
}

/// Answers at the socket of this API below the root directory until the token is cancelled.
///
/// # Errors
/// The directory or the socket cannot be made, or the server fails.
pub(crate) async fn serve(root: &Path, server: PodsServer) -> std::io::Result<()> {
    let directory = root.join(DIRECTORY);
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(&directory)?;
    let (listener, token) = (listen(&directory.join(SOCKET))?, server.token.clone());
    pods::serve(listener, server, token).await.map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use api_types::core_v1::PodCondition;
    use base::{TaskGroup, TokioClock};
    use node_api::pods::v1alpha1::pods_client::PodsClient;
    use node_api::tonic::Code;
    use node_api::tonic::transport::{Channel, Endpoint};
    use parking_lot::Mutex;

    use super::*;

    /// Pods by uid, as a test has them.
    struct Memory {
        pods: Mutex<BTreeMap<String, Arc<Pod>>>,
        looked_at: Mutex<BTreeSet<String>>,
        is_ready: Mutex<bool>,
        news: broadcast::Sender<PodNews>,
    }

    impl Memory {
        fn put(&self, pod: Pod) {
            let uid = pod.metadata.uid.clone();
            self.pods.lock().insert(uid.clone(), Arc::new(pod));
            let _ = self.news.send(PodNews::Changed(uid));
        }

        fn remove(&self, uid: &str) {
            let pod = self.pods.lock().remove(uid).unwrap();
            let (namespace, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
            let _ = self.news.send(PodNews::Removed { uid: uid.to_owned(), namespace, name });
        }
    }

    impl Known for Memory {
        fn is_ready(&self) -> bool {
            *self.is_ready.lock()
        }

        fn pods(&self) -> Vec<Arc<Pod>> {
            self.pods.lock().values().rev().cloned().collect()
        }

        fn pod(&self, uid: &str) -> Option<Arc<Pod>> {
            self.pods.lock().get(uid).cloned()
        }

        fn status(&self, uid: &str) -> Option<Arc<PodStatus>> {
            let is_known = self.looked_at.lock().contains(uid);
            is_known.then(|| Arc::new(PodStatus { phase: "Running".into(), ..PodStatus::default() }))
        }

        fn follow(&self) -> broadcast::Receiver<PodNews> {
            self.news.subscribe()
        }
    }

    fn pod(uid: &str) -> Pod {
        let mut pod = Pod::default();
        (pod.metadata.uid, pod.metadata.namespace, pod.metadata.name) =
            (uid.into(), "ns".into(), format!("name-{uid}"));
        pod
    }

    fn decoded(bytes: &[u8]) -> Pod {
        let mut pod = Pod::default();
        protobuf::decode(bytes, &mut pod).unwrap();
        pod
    }

    struct Bench {
        memory: Arc<Memory>,
        client: PodsClient<Channel>,
        tasks: TaskGroup,
        metrics: Arc<KubeletMetrics>,
        _root: tempfile::TempDir,
    }

    async fn start(backlog: usize) -> Bench {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(DIRECTORY)).unwrap();
        let socket = root.path().join(DIRECTORY).join(SOCKET);
        std::fs::write(&socket, "stale").unwrap();
        let memory = Arc::new(Memory {
            pods: Mutex::default(),
            looked_at: Mutex::default(),
            is_ready: Mutex::new(true),
            news: broadcast::channel(backlog).0,
        });
        let (tasks, metrics) = (TaskGroup::new("test"), KubeletMetrics::unseen());
        let server = PodsServer::new(memory.clone(), metrics.clone(), TokioClock::shared(), tasks.token());
        let path = root.path().to_owned();
        tasks.spawn("server", async move { serve(&path, server).await.unwrap() });
        let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).unwrap();
        let channel = loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        Bench { memory, client: PodsClient::new(channel), tasks, metrics, _root: root }
    }

    #[tokio::test]
    async fn pods_are_listed_by_uid_with_the_kubelets_word() {
        let mut bench = start(10).await;
        let mut stale = pod("b");
        let ready = PodCondition { type_: "Ready".into(), status: "True".into(), ..PodCondition::default() };
        stale.status = PodStatus { phase: "Running".into(), conditions: vec![ready], ..PodStatus::default() };
        bench.memory.put(stale);
        bench.memory.put(pod("c"));
        bench.memory.put(pod("a"));
        bench.memory.looked_at.lock().insert("a".into());
        let listed = bench.client.list_pods(ListPodsRequest {}).await.unwrap().into_inner().pods;
        let seen: Vec<Pod> = listed.iter().map(|bytes| decoded(bytes)).collect();
        let phases: Vec<(&str, &str)> =
            seen.iter().map(|pod| (pod.metadata.uid.as_str(), pod.status.phase.as_str())).collect();
        assert_eq!(phases, [("a", "Running"), ("b", "Running"), ("c", "Pending")]);
        let condition = &seen[1].status.conditions[0];
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "ContainersNotReady"));
        let get = |uid: &str| GetPodRequest { pod_uid: uid.into() };
        let found = bench.client.get_pod(get("a")).await.unwrap().into_inner().pod;
        assert_eq!(decoded(&found), seen[0]);
        let missing = bench.client.get_pod(get("x")).await.unwrap_err();
        assert_eq!((missing.code(), missing.message()), (Code::NotFound, "pod with UID x not found"));
        *bench.memory.is_ready.lock() = false;
        let early = bench.client.list_pods(ListPodsRequest {}).await.unwrap_err();
        assert_eq!((early.code(), early.message()), (Code::FailedPrecondition, "Kubelet is initializing"));
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn watchers_see_the_beginning_and_what_becomes_of_it() {
        let mut bench = start(10).await;
        bench.memory.put(pod("b"));
        bench.memory.put(pod("a"));
        let mut events = bench.client.watch_pods(WatchPodsRequest {}).await.unwrap().into_inner();
        let mut next = async || {
            let event = events.message().await.unwrap()?;
            Some((event.r#type(), decoded(&event.pod).metadata.uid, event.pod.len()))
        };
        for (kind, uid) in [(EventType::Added, "a"), (EventType::Added, "b"), (EventType::InitialSyncComplete, "")] {
            let (found, of, _) = next().await.unwrap();
            assert_eq!((found, of.as_str()), (kind, uid));
        }
        bench.memory.put(pod("c"));
        assert_eq!(next().await.unwrap().0, EventType::Added);
        bench.memory.put(pod("c"));
        let (kind, uid, length) = next().await.unwrap();
        assert_eq!((kind, uid.as_str()), (EventType::Modified, "c"));
        bench.memory.remove("c");
        let (kind, uid, of_removed) = next().await.unwrap();
        assert_eq!((kind, uid.as_str()), (EventType::Deleted, "c"));
        assert!(of_removed < length, "what is gone is named, no more");
        // The stream ends with the kubelet, which does not wait for its reader.
        let tasks = bench.tasks.clone();
        let (ended, ()) = tokio::join!(next(), async { drop(tasks.shutdown(Duration::from_secs(5)).await) });
        assert_eq!(ended, None);
    }

    #[tokio::test]
    async fn who_does_not_keep_up_is_told_so() {
        let mut bench = start(2).await;
        let server_of = |memory: &Arc<Memory>| {
            let (clock, token) = (TokioClock::shared(), CancellationToken::new());
            PodsServer::new(memory.clone(), bench.metrics.clone(), clock, token)
        };
        let mut watch = Watch::new(&server_of(&bench.memory));
        assert_eq!(watch.next().await.unwrap().unwrap().r#type(), EventType::InitialSyncComplete);
        (0..4).for_each(|number| bench.memory.put(pod(&format!("p{number}"))));
        let error = watch.next().await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::ResourceExhausted, "watch client channel closed"));
        assert!(watch.next().await.is_none());
        let mut refused = None;
        for _ in 0..100 {
            refused = refused.or(bench.client.list_pods(ListPodsRequest {}).await.err());
        }
        assert_eq!(refused.unwrap().message(), "rejected by rate limit");
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}
