//! Hollow nodes and a hollow driver: what kubelets and the sidecars of a CSI driver do about pods, claims and attachments,
//! as soon as they see them. They look at what changed alone: on a real cluster their work is other machines'.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use api_machinery::object::{Kind, Object};
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::VolumeAttachment;
use client::{Client, Informer, InformerOptions, Informers, Patch};
use component_helpers::volumes::attaching::unique_name;
use component_helpers::volumes::names::{SELECTED_NODE, STORAGE_PROVISIONER};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use super::objects::{self, DRIVER, NAMESPACE};
use crate::sample::Stopwatch;

/// How long a pod takes to start once it has its volumes.
const START: Duration = Duration::from_millis(500);
/// When this is over and pods do not run, something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is seen of the cluster.
pub(super) struct Hollow {
    api: Client,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    attachments: Informer<VolumeAttachment>,
    changes: Arc<Changes>,
}

/// Something that changed: the kind of thing, and a name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    Pod(String),
    Claim(String),
    /// A volume, by the claim that it is for.
    VolumeOf(String),
    Attachment(String),
    Node(String),
}

/// What changed since somebody looked.
#[derive(Default)]
struct Changes {
    these: Mutex<BTreeSet<Changed>>,
    some: Notify,
}

/// Something to do.
enum Step {
    /// The driver makes the volume of a claim.
    Provision(Arc<PersistentVolumeClaim>),
    /// The driver attaches a volume.
    Attach(Arc<VolumeAttachment>),
    /// A kubelet tells which volumes it uses.
    Use(String, BTreeSet<String>),
    /// A kubelet starts a pod.
    Start(Arc<Pod>),
}

/// How far all is, so that nothing is begun again before it is seen.
struct Begun {
    watch: Stopwatch,
    provisioned: BTreeSet<String>,
    attached: BTreeSet<String>,
    used: BTreeMap<String, Used>,
    /// Pods that have a node.
    placed: BTreeSet<String>,
    /// The same by their claims.
    pods_of: BTreeMap<String, String>,
    /// Those of them that have not started, by their nodes.
    waiting: BTreeMap<String, BTreeSet<String>>,
    /// When each was seen to run.
    running: BTreeMap<String, Duration>,
}

/// The volumes that a kubelet uses.
#[derive(Default)]
struct Used {
    volumes: BTreeSet<String>,
    told: usize,
    /// It is telling them: one that told two things at a time might be heard in the wrong order.
    is_telling: bool,
}

impl Used {
    /// What is to be told, if anything is and nothing is being told.
    fn tell(&mut self) -> Option<BTreeSet<String>> {
        if self.is_telling || self.told == self.volumes.len() {
            return None;
        }
        (self.is_telling, self.told) = (true, self.volumes.len());
        Some(self.volumes.clone())
    }
}

impl Begun {
    fn since(watch: Stopwatch) -> Self {
        Self {
            watch,
            provisioned: BTreeSet::new(),
            attached: BTreeSet::new(),
            used: BTreeMap::new(),
            placed: BTreeSet::new(),
            pods_of: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
        }
    }

    /// Notes a pod that has a node.
    fn place(&mut self, pod: &Pod) {
        let name = &pod.metadata.name;
        if self.placed.insert(name.clone()) {
            self.pods_of.extend(claims_of(pod).map(|claim| (claim.to_owned(), name.clone())));
            self.waiting.entry(pod.spec.node_name.clone()).or_default().insert(name.clone());
        }
    }

    fn tell(&mut self, node: &str) -> Option<Step> {
        let volumes = self.used.get_mut(node)?.tell()?;
        Some(Step::Use(node.to_owned(), volumes))
    }
}

impl Hollow {
    /// Looks at the cluster from now on.
    pub(super) async fn start(api: &Client) -> Self {
        let informers = Informers::new(api, InformerOptions::default());
        let changes = Arc::new(Changes::default());
        let name_of_claim = |volume: &PersistentVolume| {
            volume.spec.claim_ref.as_ref().map(|claim| claim.name.clone()).unwrap_or_default()
        };
        let this = Self {
            api: api.clone(),
            pods: seen(&informers, &changes, |pod: &Pod| Changed::Pod(pod.metadata.name.clone())),
            nodes: seen(&informers, &changes, |node: &Node| Changed::Node(node.metadata.name.clone())),
            claims: seen(&informers, &changes, |claim: &PersistentVolumeClaim| {
                Changed::Claim(claim.metadata.name.clone())
            }),
            volumes: seen(&informers, &changes, move |volume| Changed::VolumeOf(name_of_claim(volume))),
            attachments: seen(&informers, &changes, |attachment: &VolumeAttachment| {
                Changed::Attachment(attachment.metadata.name.clone())
            }),
            changes,
        };
        informers.start();
        informers.wait_synced().await;
        this
    }

    /// Does what is to be done until so many pods run. Gives when each of them did, by its name.
    pub(super) async fn until_running(&self, pods: usize, watch: Stopwatch) -> Result<BTreeMap<String, Duration>> {
        let mut begun = Begun::since(watch);
        let outcome = tokio::time::timeout(PATIENCE, self.run(pods, &mut begun)).await;
        outcome.unwrap_or_else(|_| bail!("only {} pods run", begun.running.len()))?;
        Ok(begun.running)
    }

    async fn run(&self, pods: usize, begun: &mut Begun) -> Result<()> {
        let mut doing = FuturesUnordered::new();
        while begun.running.len() < pods {
            let mut steps = Vec::new();
            tokio::select! {
                biased;
                Some(done) = doing.next() => {
                    let Some(node): Option<String> = done? else { continue };
                    begun.used.entry(node.clone()).or_default().is_telling = false;
                    steps.extend(begun.tell(&node));
                }
                () = self.changes.some.notified() => {
                    for changed in std::mem::take(&mut *self.changes.these.lock()) {
                        self.look(&changed, begun, &mut steps);
                    }
                }
            }
            doing.extend(steps.into_iter().map(|step| self.take(step)));
        }
        Ok(())
    }

    /// Adds to `steps` what is to be done because something changed.
    fn look(&self, changed: &Changed, begun: &mut Begun, steps: &mut Vec<Step>) {
        match changed {
            Changed::Pod(name) => self.look_at_pod(name, begun, steps),
            Changed::Claim(name) => {
                let claim = self.claims.find(NAMESPACE, name).filter(|claim| is_to_be_provisioned(claim));
                steps.extend(claim.filter(|_| begun.provisioned.insert(name.clone())).map(Step::Provision));
                self.look_at_pod_of(name, begun, steps);
            }
            Changed::VolumeOf(claim) => self.look_at_pod_of(claim, begun, steps),
            Changed::Attachment(name) => {
                let attachment = self.attachments.find("", name).filter(|attachment| !attachment.status.attached);
                steps.extend(attachment.filter(|_| begun.attached.insert(name.clone())).map(Step::Attach));
            }
            Changed::Node(name) => {
                let waiting = begun.waiting.get(name).into_iter().flatten().cloned().collect::<Vec<_>>();
                self.start_ready(name, &waiting, begun, steps);
            }
        }
    }

    fn look_at_pod_of(&self, claim: &str, begun: &mut Begun, steps: &mut Vec<Step>) {
        if let Some(pod) = begun.pods_of.get(claim).cloned() {
            self.look_at_pod(&pod, begun, steps);
        }
    }

    fn look_at_pod(&self, name: &str, begun: &mut Begun, steps: &mut Vec<Step>) {
        let Some(pod) = self.pods.find(NAMESPACE, name).filter(|pod| !pod.spec.node_name.is_empty()) else { return };
        if pod.status.phase == "Running" {
            let ran = begun.watch.elapsed();
            begun.running.entry(name.to_owned()).or_insert(ran);
            return;
        }
        begun.place(&pod);
        let Some(volumes) = self.volumes_of(&pod) else { return };
        let node = &pod.spec.node_name;
        begun.used.entry(node.clone()).or_default().volumes.extend(volumes);
        steps.extend(begun.tell(node));
        self.start_ready(node, &[name.to_owned()], begun, steps);
    }

    /// Starts those of a node's pods that wait for nothing any more.
    fn start_ready(&self, node: &str, pods: &[String], begun: &mut Begun, steps: &mut Vec<Step>) {
        let Some(status) = self.nodes.find("", node).map(|node| node.status.clone()) else { return };
        // Attached, and in use so that they stay.
        let used = status.volumes_in_use.iter().map(String::as_str).collect::<HashSet<_>>();
        let attached = status.volumes_attached.iter().map(|volume| volume.name.as_str());
        let ready = attached.filter(|name| used.contains(name)).collect::<HashSet<_>>();
        for name in pods {
            let Some(pod) = self.pods.find(NAMESPACE, name) else { continue };
            let Some(volumes) = self.volumes_of(&pod) else { continue };
            let is_ready = volumes.iter().all(|volume| ready.contains(volume.as_str()));
            if is_ready && begun.waiting.get_mut(node).is_some_and(|waiting| waiting.remove(name)) {
                steps.push(Step::Start(pod));
            }
        }
    }

    /// The names of a pod's volumes; nothing while one of its claims has none.
    fn volumes_of(&self, pod: &Pod) -> Option<Vec<String>> {
        let name = |claim: &str| {
            let claim = self.claims.find(NAMESPACE, claim).filter(|claim| claim.status.phase == "Bound")?;
            let volume = self.volumes.find("", &claim.spec.volume_name)?;
            let csi = volume.spec.persistent_volume_source.csi.as_ref()?;
            Some(unique_name(&csi.driver, &csi.volume_handle))
        };
        claims_of(pod).map(name).collect()
    }

    /// Takes a step. Gives the node whose kubelet has told what it uses.
    async fn take(&self, step: Step) -> Result<Option<String>> {
        match step {
            Step::Provision(claim) => {
                self.api.all::<PersistentVolume>().create(&objects::volume(&claim)?).await?;
            }
            Step::Attach(attachment) => {
                let patch = Patch::Merge(json!({"status": {"attached": true}}));
                self.api.all::<VolumeAttachment>().patch_status(&attachment.metadata.name, &patch).await?;
            }
            Step::Use(node, volumes) => {
                let patch = Patch::Merge(json!({"status": {"volumesInUse": volumes}}));
                self.api.all::<Node>().patch_status(&node, &patch).await?;
                return Ok(Some(node));
            }
            Step::Start(pod) => {
                tokio::time::sleep(START).await;
                let patch = Patch::Strategic(objects::running(&pod));
                self.api.namespaced::<Pod>(NAMESPACE).patch_status(&pod.metadata.name, &patch).await?;
            }
        }
        Ok(None)
    }
}

fn seen<T: Kind + Object>(
    informers: &Informers,
    changes: &Arc<Changes>,
    changed: impl Fn(&T) -> Changed + Send + 'static,
) -> Informer<T> {
    let (informer, changes) = (informers.of::<T>(), Arc::clone(changes));
    informer.subscribe(move |change| {
        changes.these.lock().insert(changed(change.object()));
        changes.some.notify_one();
    });
    informer
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let claims = pod.spec.volumes.iter().filter_map(|volume| volume.volume_source.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.as_str())
}

fn is_to_be_provisioned(claim: &PersistentVolumeClaim) -> bool {
    let annotations = &claim.metadata.annotations;
    claim.spec.volume_name.is_empty()
        && annotations.contains_key(SELECTED_NODE)
        && annotations.get(STORAGE_PROVISIONER).is_some_and(|driver| driver == DRIVER)
}
