//! A hollow node: the API's side of a kubelet, without containers. It keeps a node object and its lease, and pods that
//! are bound to it run a while after they were seen or are refused where it has no room, succeed a while later where they are
//! not to be restarted, and are gone a while after they were told to end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_machinery::object::from_value;
use api_machinery::time::{MicroTime, Time};
use api_machinery::value::Value;
use api_types::coordination_v1::Lease;
use api_types::core_v1::{Node, Pod};
use client::{Client, ClientError, Informer, InformerOptions, Informers, Patch, Scope};
use component_base::serving::BoxError;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::node_admission::refusal;
use crate::node_volumes::{NodeDriver, NodeVolumes, Unmet, UsedVolume};

/// How many cores a hollow node has to give.
pub const CORES_PER_NODE: i64 = 8;
const LEASES: &str = "kube-node-lease";
/// Says of a node that volumes are attached for it.
const ATTACHED_FOR: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// How often the lease is renewed and the node object looked at, as kubelets do.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// After how long the pods are looked at again where nothing has changed.
const RESYNC: Duration = Duration::from_secs(10);
/// After how long a request about a pod that failed is made again.
const RETRY: Duration = Duration::from_secs(1);
/// A pod takes at least this long to start and to end, and at most twice as long.
const TRANSITION: Duration = Duration::from_millis(500);

/// What a node keeps over restarts of its kubelet: who it is, and which addresses it has given out.
pub(crate) struct HollowNode {
    name: String,
    number: u8,
    addresses: AtomicU32,
    /// What runs, by the pod's uid; it goes on while no kubelet runs.
    containers: Mutex<BTreeMap<String, Container>>,
    volumes: NodeVolumes,
}

/// What runs of one pod on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The name of the node.
    pub node: String,
    /// The pod, as namespace and name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The volumes that it uses.
    pub volumes: Vec<UsedVolume>,
}

/// What a pod needs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Nothing,
    Start,
    Finish,
    End,
}

impl HollowNode {
    pub(crate) fn new(name: String, number: u8) -> Arc<Self> {
        Arc::new(Self {
            name,
            number,
            addresses: AtomicU32::new(1),
            containers: Mutex::default(),
            volumes: NodeVolumes::default(),
        })
    }

    /// Volumes of this node are served by a driver from now on.
    pub(crate) fn set_driver(&self, driver: Arc<dyn NodeDriver>) {
        self.volumes.set_driver(driver);
    }

    /// Starts a kubelet that ends with the client's tasks.
    pub(crate) fn start(self: &Arc<Self>, client: &Client) -> Result<(), BoxError> {
        let node = from_value::<Node>(&self.object(client))?;
        let (this, owned) = (Arc::clone(self), client.clone());
        client.tasks().spawn_cancellable("heartbeat", async move {
            loop {
                if let Err(error) = this.beat(&owned, &node).await {
                    tracing::info!(%error, node = this.name, "A heartbeat failed");
                }
                tokio::time::sleep(HEARTBEAT).await;
            }
        });
        let informers = Informers::new(client, InformerOptions::default());
        let pods = informers.scoped::<Pod>(&Scope::fields(&format!("spec.nodeName={}", self.name)));
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        pods.subscribe(move |_| notify.notify_one());
        informers.start();
        let kubelet = Kubelet { node: Arc::clone(self), client: client.clone(), pods, changed, due: BTreeMap::new() };
        client.tasks().spawn_cancellable("pods", async move {
            informers.wait_synced().await;
            kubelet.run().await;
        });
        Ok(())
    }

    pub(crate) fn containers(&self) -> Vec<Container> {
        self.containers.lock().values().cloned().collect()
    }

    fn runs(&self, uid: &str) -> bool {
        self.containers.lock().contains_key(uid)
    }

    fn begin(&self, pod: &Pod, volumes: Vec<UsedVolume>) {
        let ObjectMeta { namespace, name, uid, .. } = &pod.metadata;
        let own = Container { node: self.name.clone(), pod: format!("{namespace}/{name}"), uid: uid.clone(), volumes };
        self.containers.lock().insert(uid.clone(), own);
    }

    fn next_address(&self) -> String {
        let host = self.addresses.fetch_add(1, Ordering::Relaxed);
        format!("10.244.{}.{}", self.number, host % 254 + 1)
    }

    fn object(&self, client: &Client) -> Value {
        let resources =
            json!({"cpu": CORES_PER_NODE.to_string(), "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"});
        json!({
            "metadata": {"name": self.name, "annotations": {ATTACHED_FOR: "true"},
                "labels": {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}},
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "addresses": [{"type": "InternalIP", "address": format!("192.168.0.{}", self.number.saturating_add(1))}],
                "conditions": ready(client),
            },
        })
    }

    /// Renews the lease, and says that the node is ready where the API does not say so.
    async fn beat(&self, client: &Client, node: &Node) -> Result<(), ClientError> {
        let nodes = client.all::<Node>();
        match nodes.get_opt(&self.name).await? {
            None => drop(nodes.create(node).await?),
            Some(known) if is_ready(&known) => {}
            Some(_) => {
                let patch = json!({"status": {"conditions": ready(client)}});
                drop(nodes.patch_status(&self.name, &Patch::Strategic(patch)).await?);
            }
        }
        let leases = client.namespaced::<Lease>(LEASES);
        let known = leases.get_opt(&self.name).await?;
        let exists = known.is_some();
        let mut lease = known.unwrap_or_default();
        lease.metadata.name.clone_from(&self.name);
        lease.metadata.namespace = LEASES.to_owned();
        lease.spec.holder_identity = Some(self.name.clone());
        lease.spec.lease_duration_seconds = Some(40);
        let now = MicroTime::from(client.clock().wall());
        lease.spec.renew_time = Some(now.as_renewal_after(lease.spec.renew_time));
        let written = if exists { leases.update(&lease).await } else { leases.create(&lease).await };
        written.map(drop)
    }
}

fn ready(client: &Client) -> Value {
    let now = Time::from(client.clock().wall()).to_string();
    json!([{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "hollow",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }])
}

fn is_ready(node: &Node) -> bool {
    node.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The pods of a node, from the start of a kubelet to its end.
struct Kubelet {
    node: Arc<HollowNode>,
    client: Client,
    pods: Informer<Pod>,
    changed: Arc<Notify>,
    /// When what a pod needs is to be done, by its uid.
    due: BTreeMap<String, (Need, Instant)>,
}

impl Kubelet {
    async fn run(mut self) {
        loop {
            let next = self.pass().await;
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Does what is due, and says when to look again.
    async fn pass(&mut self) -> Instant {
        let pods = self.pods.list();
        let known: BTreeSet<&String> = pods.iter().map(|pod| &pod.metadata.uid).collect();
        self.due.retain(|uid, _| known.contains(uid));
        self.node.containers.lock().retain(|uid, _| known.contains(uid));
        let mut next = Instant::now() + RESYNC;
        if let Err(error) = self.look_after_volumes(&pods).await {
            tracing::info!(%error, node = self.node.name, "Volumes could not be unmounted or grown");
            next = next.min(Instant::now() + RETRY);
        }
        for pod in &pods {
            let need = need(pod);
            if need == Need::Nothing {
                continue;
            }
            let takes = TRANSITION.mul_f64(1.0 + self.client.rng().unit());
            let due = self.due.entry(pod.metadata.uid.clone()).or_insert((need, Instant::now() + takes));
            if due.0 != need {
                *due = (need, Instant::now() + takes);
            }
            let at = due.1;
            if at > Instant::now() {
                next = next.min(at);
            } else if let Err(error) = self.meet(pod, need).await {
                tracing::info!(%error, pod = pod.metadata.name, "A request about a pod failed");
                next = next.min(Instant::now() + RETRY);
            }
        }
        next
    }

    /// Unmounts volumes that no pod uses, and has those grow that pods use.
    async fn look_after_volumes(&self, pods: &[Arc<Pod>]) -> Result<(), Unmet> {
        let (client, node, volumes) = (&self.client, &self.node.name, &self.node.volumes);
        let has_ended = |pod: &Pod| matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        let using = pods.iter().filter(|pod| !has_ended(pod) || self.node.runs(&pod.metadata.uid));
        let using = using.map(|pod| &pod.metadata.uid).collect();
        let cleaned = volumes.clean_up(client, node, &using).await;
        let is_settled = |pod: &&Arc<Pod>| need(pod) == Need::Nothing && self.node.runs(&pod.metadata.uid);
        for pod in pods.iter().filter(is_settled) {
            volumes.grow(client, node, pod).await?;
        }
        cleaned
    }

    async fn meet(&self, pod: &Pod, need: Need) -> Result<(), Unmet> {
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let (volumes, node, uid) = (&self.node.volumes, &self.node.name, &pod.metadata.uid);
        let refusal = (need == Need::Start).then(|| self.refusal(pod)).flatten();
        match need {
            Need::Start if refusal.is_none() => self.node.begin(pod, volumes.mount(&self.client, node, pod).await?),
            Need::Finish | Need::End => {
                self.node.containers.lock().remove(uid);
                volumes.release(node, uid).await?;
            }
            Need::Nothing | Need::Start => {}
        }
        let done = match need {
            Need::Nothing => return Ok(()),
            Need::Start | Need::Finish => {
                let status = match need {
                    Need::Start => refusal.unwrap_or_else(|| self.running(pod)),
                    _ => self.succeeded(pod),
                };
                let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
                pods.patch_status(&pod.metadata.name, &Patch::Strategic(patch)).await.map(drop)
            }
            Need::End => {
                let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                pods.delete_this(&pod.metadata, now).await.map(drop)
            }
        };
        match done {
            // The pod is gone, or another has its name: the watch will say so.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            other => Ok(other?),
        }
    }

    /// The status of a pod that there is no room for.
    fn refusal(&self, pod: &Pod) -> Option<Value> {
        let (known, own) = (self.pods.list(), &pod.metadata.uid);
        let others = known.iter().map(Arc::as_ref).filter(|other| other.metadata.uid != *own);
        refusal(pod, others.filter(|other| self.node.runs(&other.metadata.uid)))
    }

    fn running(&self, pod: &Pod) -> Value {
        let now = Time::from(self.client.clock().wall()).to_string();
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let conditions: Vec<Value> =
            ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"].map(condition).into();
        let containers = containers(pod, true, &json!({"running": {"startedAt": now}}));
        let address = if pod.status.pod_ip.is_empty() { self.node.next_address() } else { pod.status.pod_ip.clone() };
        json!({
            "phase": "Running", "conditions": conditions, "containerStatuses": containers, "startTime": now,
            "podIP": address, "podIPs": [{"ip": address}],
        })
    }

    fn succeeded(&self, pod: &Pod) -> Value {
        let now = Time::from(self.client.clock().wall()).to_string();
        let condition =
            |kind: &str| json!({"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now});
        let conditions: Vec<Value> = ["Ready", "ContainersReady"].map(condition).into();
        let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}});
        json!({
            "phase": "Succeeded", "conditions": conditions,
            "containerStatuses": containers(pod, false, &state),
        })
    }
}

fn containers(pod: &Pod, ready: bool, state: &Value) -> Vec<Value> {
    let container = |container: &api_types::core_v1::Container| {
        json!({
            "name": container.name, "image": container.image, "imageID": container.image, "ready": ready,
            "started": ready, "restartCount": 0, "state": state,
            "containerID": format!("hollow://{}-{}", pod.metadata.uid, container.name),
        })
    };
    pod.spec.containers.iter().map(container).collect()
}

fn need(pod: &Pod) -> Need {
    let runs = pod.status.phase == "Running"
        && pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    if pod.metadata.deletion_timestamp.is_some() {
        Need::End
    } else if runs && pod.spec.restart_policy != "Always" {
        Need::Finish
    } else if runs || pod.status.phase == "Failed" || pod.status.phase == "Succeeded" {
        Need::Nothing
    } else {
        Need::Start
    }
}
