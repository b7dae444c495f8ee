//! Hollow nodes and a hollow driver: what kubelets and the sidecars of a CSI driver do about pods, claims and attachments,
//! as soon as they see them.

use std::collections::{BTreeMap, BTreeSet};
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
use serde_json::json;
use tokio::sync::Notify;

use super::objects::{self, DRIVER, NAMESPACE};

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
    changed: Arc<Notify>,
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

/// What was begun already, so that it is not begun again before it is seen.
#[derive(Default)]
struct Begun {
    provisioned: BTreeSet<String>,
    attached: BTreeSet<String>,
    used: BTreeMap<String, BTreeSet<String>>,
    /// Kubelets that are telling what they use: one that told two things at a time might be heard in the wrong order.
    telling: BTreeSet<String>,
    started: BTreeSet<String>,
}

impl Hollow {
    /// Looks at the cluster from now on.
    pub(super) async fn start(api: &Client) -> Self {
        let informers = Informers::new(api, InformerOptions::default());
        let changed = Arc::new(Notify::new());
        let this = Self {
            api: api.clone(),
            pods: seen(&informers, &changed),
            nodes: seen(&informers, &changed),
            claims: seen(&informers, &changed),
            volumes: seen(&informers, &changed),
            attachments: seen(&informers, &changed),
            changed,
        };
        informers.start();
        informers.wait_synced().await;
        this
    }

    /// Does what is to be done until so many pods run.
    pub(super) async fn until_running(&self, pods: usize) -> Result<()> {
        let outcome = tokio::time::timeout(PATIENCE, self.run(pods)).await;
        outcome.unwrap_or_else(|_| bail!("only {} pods run", self.running()))
    }

    async fn run(&self, pods: usize) -> Result<()> {
        let (mut begun, mut doing) = (Begun::default(), FuturesUnordered::new());
        while self.running() < pods {
            tokio::select! {
                biased;
                Some(done) = doing.next() => match done? {
                    Some(node) => drop(begun.telling.remove(&node)),
                    None => continue,
                },
                () = self.changed.notified() => {}
            }
            doing.extend(self.due(&mut begun).into_iter().map(|step| self.take(step)));
        }
        Ok(())
    }

    fn running(&self) -> usize {
        self.pods.list().iter().filter(|pod| pod.status.phase == "Running").count()
    }

    fn due(&self, begun: &mut Begun) -> Vec<Step> {
        let mut steps = Vec::new();
        let claims = self.claims.list().into_iter().filter(|claim| is_to_be_provisioned(claim));
        let new = claims.filter(|claim| begun.provisioned.insert(claim.metadata.name.clone()));
        steps.extend(new.map(Step::Provision));
        let waiting = self.attachments.list().into_iter().filter(|attachment| !attachment.status.attached);
        let new = waiting.filter(|attachment| begun.attached.insert(attachment.metadata.name.clone()));
        steps.extend(new.map(Step::Attach));

        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for pod in self.pods.list().into_iter().filter(|pod| !pod.spec.node_name.is_empty()) {
            let Some(volumes) = self.volumes_of(&pod) else { continue };
            if self.are_attached(&pod.spec.node_name, &volumes) && begun.started.insert(pod.metadata.name.clone()) {
                steps.push(Step::Start(Arc::clone(&pod)));
            }
            used.entry(pod.spec.node_name.clone()).or_default().extend(volumes);
        }
        for (node, volumes) in used {
            let told = begun.used.entry(node.clone()).or_default();
            if *told != volumes && begun.telling.insert(node.clone()) {
                told.clone_from(&volumes);
                steps.push(Step::Use(node, volumes));
            }
        }
        steps
    }

    /// The names of a pod's volumes; nothing while one of its claims has none.
    fn volumes_of(&self, pod: &Pod) -> Option<BTreeSet<String>> {
        let claims = pod.spec.volumes.iter().filter_map(|volume| volume.volume_source.persistent_volume_claim.as_ref());
        let name = |claim: &str| {
            let claim = self.claims.find(NAMESPACE, claim).filter(|claim| claim.status.phase == "Bound")?;
            let volume = self.volumes.find("", &claim.spec.volume_name)?;
            let csi = volume.spec.persistent_volume_source.csi.as_ref()?;
            Some(unique_name(&csi.driver, &csi.volume_handle))
        };
        claims.map(|source| name(&source.claim_name)).collect()
    }

    /// Whether a node's status says that volumes are attached, and in use so that they stay.
    fn are_attached(&self, node: &str, volumes: &BTreeSet<String>) -> bool {
        let Some(node) = self.nodes.find("", node) else { return false };
        let (attached, used) = (&node.status.volumes_attached, &node.status.volumes_in_use);
        volumes.iter().all(|name| used.contains(name) && attached.iter().any(|own| own.name == *name))
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

fn seen<T: Kind + Object>(informers: &Informers, changed: &Arc<Notify>) -> Informer<T> {
    let (informer, changed) = (informers.of::<T>(), Arc::clone(changed));
    informer.subscribe(move |_| changed.notify_one());
    informer
}

fn is_to_be_provisioned(claim: &PersistentVolumeClaim) -> bool {
    let annotations = &claim.metadata.annotations;
    claim.spec.volume_name.is_empty()
        && annotations.contains_key(SELECTED_NODE)
        && annotations.get(STORAGE_PROVISIONER).is_some_and(|driver| driver == DRIVER)
}
