//! Ties snapshots to contents, whichever driver has them.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Kind as _;
use api_machinery::time::Time;
use api_types::core_v1::constants::persistent_volume_claim_phase as phase;
use api_types::core_v1::{Node, ObjectReference, PersistentVolume, PersistentVolumeClaim};
use api_types::snapshot_v1::{
    VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent, VolumeSnapshotContentSource, VolumeSnapshotError,
    VolumeSnapshotStatus,
};
use client::{Informer, ObjectKey, Patch};
use component_helpers::volumes::matching::is_accessible_from;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use serde_json::json;

use super::mirror::{self, News};
use super::release::Sources;
use crate::names::snapshot as names;
use crate::secrets::{Purpose, Terms, resolve};
use crate::settings::Settings;
use crate::{finalizers, notice};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "snapshot-controller",
    aliases: &[],
    gates: &[],
    identity: "snapshot-controller",
    event_component: "snapshot-controller",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let (queue, sources) =
        (build.queue_with("snapshots", settings.retry.clone()), build.queue_with("sources", settings.retry));
    let snapshots = build
        .watch::<VolumeSnapshot>()
        .enqueue_self(&queue)
        .enqueue_keys(&sources, |change| {
            let source = &change.object().spec.source.persistent_volume_claim_name;
            source.clone().map(|name| ObjectKey::new(change.key().namespace, name))
        })
        .informer();
    let contents = build
        .watch::<VolumeSnapshotContent>()
        .enqueue_keys(&queue, |change| {
            let reference = &change.object().spec.volume_snapshot_ref;
            Some(ObjectKey::new(reference.namespace.clone(), reference.name.clone()))
        })
        .informer();
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_self(&sources).informer();
    let controller = Snapshots {
        claims: claims.clone(),
        volumes: build.watch::<PersistentVolume>().informer(),
        nodes: build.watch::<Node>().informer(),
        classes: build.watch::<VolumeSnapshotClass>().informer(),
        contents,
        snapshots: snapshots.clone(),
    };
    build.run(&queue, settings.workers, Arc::new(controller));
    build.run(&sources, 1, Arc::new(Sources { claims, snapshots }));
    Ok(())
}

pub(super) struct Snapshots {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    nodes: Informer<Node>,
    classes: Informer<VolumeSnapshotClass>,
    pub(super) contents: Informer<VolumeSnapshotContent>,
    snapshots: Informer<VolumeSnapshot>,
}

/// Why a snapshot has no content, with an event's reason.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{1}")]
    Told(&'static str, String),
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
}

impl From<client::ClientError> for Failure {
    fn from(error: client::ClientError) -> Self {
        Self::Reconcile(error.into())
    }
}

fn told<T>(reason: &'static str, message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Told(reason, message.into()))
}

#[async_trait::async_trait]
impl Controller for Snapshots {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(snapshot) = self.snapshots.get(key) else { return Ok(Next::Done) };
        if snapshot.metadata.deletion_timestamp.is_some() {
            return self.release(cx, &snapshot).await;
        }
        finalizers::set(cx, &*snapshot, &[names::AS_SOURCE, names::BOUND], true).await?;
        match self.content(cx, &snapshot).await {
            Ok(content) => {
                let wanted = mirror::status(&content);
                for news in mirror::news(&snapshot, &wanted) {
                    let (reason, what) = match news {
                        News::Taken => ("SnapshotCreated", "was successfully created by the CSI driver"),
                        News::Ready => ("SnapshotReady", "is ready to use"),
                    };
                    notice::normal(cx, &*snapshot, reason, format!("Snapshot {key} {what}."));
                }
                show(cx, &snapshot, &wanted).await?;
                Ok(Next::Done)
            }
            Err(Failure::Reconcile(error)) => Err(error),
            Err(Failure::Told(reason, message)) => {
                notice::warning(cx, &*snapshot, reason, message.clone());
                let time = Some(Time::from(cx.clock.wall()));
                let error = Some(VolumeSnapshotError { time, message: Some(message.clone()) });
                let shown = snapshot.status.clone().unwrap_or_default();
                show(cx, &snapshot, &VolumeSnapshotStatus { ready_to_use: Some(false), error, ..shown }).await?;
                Err(ReconcileError::failed(message))
            }
        }
    }
}

async fn show(cx: &Cx, snapshot: &VolumeSnapshot, wanted: &VolumeSnapshotStatus) -> Result<(), ReconcileError> {
    let Some(change) = mirror::change(snapshot, wanted) else { return Ok(()) };
    let api = cx.client.namespaced::<VolumeSnapshot>(&snapshot.metadata.namespace);
    api.patch_status(&snapshot.metadata.name, &Patch::Merge(change)).await?;
    Ok(())
}

/// The content of a snapshot that is taken on demand.
pub(super) fn content_name(snapshot: &VolumeSnapshot) -> String {
    format!("snapcontent-{}", snapshot.metadata.uid)
}

impl Snapshots {
    /// The content of a snapshot, made where there is none.
    async fn content(&self, cx: &Cx, snapshot: &VolumeSnapshot) -> Result<Arc<VolumeSnapshotContent>, Failure> {
        let source = &snapshot.spec.source;
        match (&source.persistent_volume_claim_name, &source.volume_snapshot_content_name) {
            (Some(claim), None) => match self.contents.find("", &content_name(snapshot)) {
                Some(content) => Ok(content),
                None => self.make(cx, snapshot, claim).await.map(Arc::new),
            },
            (None, Some(content)) => self.bind(cx, snapshot, content).await,
            _ => told(
                "SnapshotValidationError",
                "Exactly one of volumeSnapshotContentName and persistentVolumeClaimName should be specified",
            ),
        }
    }

    /// Ties a snapshot to a content that was there before.
    async fn bind(
        &self,
        cx: &Cx,
        snapshot: &VolumeSnapshot,
        name: &str,
    ) -> Result<Arc<VolumeSnapshotContent>, Failure> {
        let Some(content) = self.contents.find("", name) else {
            return told("SnapshotContentMissing", "VolumeSnapshotContent is missing");
        };
        let (reference, meta) = (&content.spec.volume_snapshot_ref, &snapshot.metadata);
        let is_ours = (&reference.namespace, &reference.name) == (&meta.namespace, &meta.name)
            && (reference.uid.is_empty() || reference.uid == meta.uid);
        if !is_ours {
            return told("SnapshotContentMisbound", "VolumeSnapshotContent is bound to a different VolumeSnapshot");
        }
        if reference.uid.is_empty() {
            let patch = json!({
                "metadata": {"resourceVersion": content.metadata.resource_version},
                "spec": {"volumeSnapshotRef": {"uid": meta.uid}},
            });
            cx.client.all::<VolumeSnapshotContent>().patch(name, &Patch::Merge(patch)).await?;
            let now = cx.client.all::<VolumeSnapshotContent>().get(name).await?;
            finalizers::set(cx, &now, &[names::CONTENT], true).await?;
            return Ok(Arc::new(now));
        }
        finalizers::set(cx, &*content, &[names::CONTENT], true).await?;
        Ok(content)
    }

    async fn make(&self, cx: &Cx, snapshot: &VolumeSnapshot, claim: &str) -> Result<VolumeSnapshotContent, Failure> {
        let (claim, volume) = self.source(snapshot, claim)?;
        let class = self.class(cx, snapshot, &volume).await?;
        finalizers::set(cx, &*claim, &[names::CLAIM_AS_SOURCE], true).await?;
        let content = new_content(snapshot, &class, &volume, self.manager(&volume))?;
        let meta = &snapshot.metadata;
        let created = match cx.client.all::<VolumeSnapshotContent>().create(&content).await {
            Err(error) if error.is_already_exists() => {
                cx.client.all::<VolumeSnapshotContent>().get(&content.metadata.name).await?
            }
            created => created?,
        };
        let message =
            format!("Waiting for a snapshot {}/{} to be created by the CSI driver.", meta.namespace, meta.name);
        notice::normal(cx, snapshot, "CreatingSnapshot", message);
        Ok(created)
    }

    fn source(
        &self,
        snapshot: &VolumeSnapshot,
        name: &str,
    ) -> Result<(Arc<PersistentVolumeClaim>, Arc<PersistentVolume>), Failure> {
        const REASON: &str = "SnapshotContentCreationFailed";
        let failed = |why: String| Failure::Told(REASON, format!("Failed to create snapshot content with error {why}"));
        let missing = || {
            failed(format!(
                "failed to get input parameters to create snapshot {}: cannot get claim {name}",
                snapshot.metadata.name
            ))
        };
        let claim = self.claims.find(&snapshot.metadata.namespace, name).ok_or_else(missing)?;
        if claim.status.phase != phase::BOUND {
            return Err(failed(format!(
                "the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"
            )));
        }
        let volume = self.volumes.find("", &claim.spec.volume_name);
        let volume = volume.ok_or_else(|| failed(format!("cannot get volume {}", claim.spec.volume_name)))?;
        if volume.spec.persistent_volume_source.csi.is_none() {
            return Err(failed(format!("cannot find CSI PersistentVolumeSource for volume {}", volume.metadata.name)));
        }
        Ok((claim, volume))
    }

    /// The class of a snapshot: the one that it names, or the default one of the driver, which it names from then on.
    async fn class(
        &self,
        cx: &Cx,
        snapshot: &VolumeSnapshot,
        volume: &PersistentVolume,
    ) -> Result<Arc<VolumeSnapshotClass>, Failure> {
        let csi = volume.spec.persistent_volume_source.csi.as_ref();
        let driver = csi.map(|csi| csi.driver.as_str()).unwrap_or_default();
        if let Some(name) = snapshot.spec.volume_snapshot_class_name.as_deref() {
            let Some(class) = self.classes.find("", name) else {
                let why = format!("volumesnapshotclass.snapshot.storage.k8s.io \"{name}\" not found");
                return told("GetSnapshotClassFailed", format!("Failed to get snapshot class with error {why}"));
            };
            if class.driver != driver {
                let why = format!("snapshot class {name} is of driver {}, the volume of {driver}", class.driver);
                return told(
                    "SnapshotContentCreationFailed",
                    format!("Failed to create snapshot content with error {why}"),
                );
            }
            return Ok(class);
        }
        let is_default = |class: &Arc<VolumeSnapshotClass>| {
            let marked = class.metadata.annotations.get(names::IS_DEFAULT).is_some_and(|value| value == "true");
            marked && class.driver == driver
        };
        let mut found: Vec<_> = self.classes.list().into_iter().filter(is_default).collect();
        let class = match (found.pop(), found.len()) {
            (Some(class), 0) => class,
            (None, _) => {
                return told(
                    "SetDefaultSnapshotClassFailed",
                    "Failed to set default snapshot class with error cannot find default snapshot class",
                );
            }
            (Some(_), more) => {
                let why = format!("{} default snapshot classes were found", more + 1);
                return told(
                    "SetDefaultSnapshotClassFailed",
                    format!("Failed to set default snapshot class with error {why}"),
                );
            }
        };
        let patch = Patch::Merge(json!({"spec": {"volumeSnapshotClassName": class.metadata.name}}));
        cx.client
            .namespaced::<VolumeSnapshot>(&snapshot.metadata.namespace)
            .patch(&snapshot.metadata.name, &patch)
            .await?;
        Ok(class)
    }

    /// The one node that can reach a volume, whose driver takes its snapshots where drivers run on each node.
    fn manager(&self, volume: &PersistentVolume) -> Option<String> {
        volume.spec.node_affinity.as_ref()?;
        let nodes = self.nodes.list();
        let mut near = nodes.iter().filter(|node| is_accessible_from(volume, &node.metadata.labels));
        match (near.next(), near.next()) {
            (Some(node), None) => Some(node.metadata.name.clone()),
            _ => None,
        }
    }
}

fn new_content(
    snapshot: &VolumeSnapshot,
    class: &VolumeSnapshotClass,
    volume: &PersistentVolume,
    manager: Option<String>,
) -> Result<VolumeSnapshotContent, Failure> {
    let meta = &snapshot.metadata;
    let mut content = VolumeSnapshotContent::default();
    content.metadata.name = content_name(snapshot);
    content.metadata.finalizers.push(names::CONTENT.to_owned());
    content.metadata.labels.extend(manager.map(|node| (names::MANAGED_BY.to_owned(), node)));
    let terms = Terms::of_snapshot(&content.metadata.name, &meta.namespace, &meta.name);
    let secret = resolve(Purpose::Snapshot, &class.parameters, &terms);
    let secret = secret.or_else(|error| told("SnapshotContentCreationFailed", error.to_string()))?;
    if let Some(secret) = secret {
        let annotations = &mut content.metadata.annotations;
        annotations.insert(names::DELETION_SECRET_NAME.to_owned(), secret.name);
        annotations.insert(names::DELETION_SECRET_NAMESPACE.to_owned(), secret.namespace);
    }
    let csi = volume.spec.persistent_volume_source.csi.as_ref();
    content.spec.volume_snapshot_ref = ObjectReference {
        kind: VolumeSnapshot::TYPE.kind.to_owned(),
        api_version: VolumeSnapshot::TYPE.api_version(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: String::new(),
    };
    content.spec.driver.clone_from(&class.driver);
    content.spec.deletion_policy.clone_from(&class.deletion_policy);
    content.spec.volume_snapshot_class_name = Some(class.metadata.name.clone());
    content.spec.source =
        VolumeSnapshotContentSource { volume_handle: csi.map(|csi| csi.volume_handle.clone()), snapshot_handle: None };
    content.spec.source_volume_mode = Some(volume.spec.volume_mode.clone().unwrap_or_else(|| "Filesystem".into()));
    Ok(content)
}

/// How soon something that holds a snapshot is looked at again.
pub(super) const HELD: Duration = Duration::from_secs(5);
