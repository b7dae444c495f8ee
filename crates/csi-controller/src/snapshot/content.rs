//! Has the driver take snapshots and remove them, as the contents in the cluster say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::SecretReference;
use api_types::snapshot_v1::{VolumeSnapshotClass, VolumeSnapshotContent};
use client::{Change, Informer, ObjectKey, Patch};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::RpcError;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use node_api::csi::v1::{CreateSnapshotRequest, DeleteSnapshotRequest, ListSnapshotsRequest, Snapshot};
use serde_json::json;

use crate::driver::Driver;
use crate::names::{RESERVED, snapshot as names};
use crate::secrets::{self, Purpose, Terms};
use crate::settings::{Place, Settings};
use crate::{finalizers, notice};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-snapshotter",
    aliases: &[],
    gates: &[],
    identity: "csi-snapshotter",
    event_component: "csi-snapshotter",
    disabled_by_default: false,
    build,
};

/// How often a snapshot that is not ready yet is asked for.
const UNREADY: Duration = Duration::from_secs(5);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    if !driver.can(Can::CreateDeleteSnapshot) {
        return Err(BuildError::Skipped("the driver takes no snapshots".into()));
    }
    let queue = build.queue_with("contents", settings.retry.clone());
    let contents = build.watch::<VolumeSnapshotContent>();
    let contents = contents.enqueue_keys(&queue, |change| is_news(change).then(|| change.key())).informer();
    let classes = build.watch::<VolumeSnapshotClass>().informer();
    let snapshotter =
        Snapshotter { driver, place: settings.place, tells_names: settings.tells_names, contents, classes };
    build.run(&queue, settings.workers, Arc::new(snapshotter));
    Ok(())
}

/// Whether a change is more than what is written here of how far it is.
fn is_news(change: &Change<VolumeSnapshotContent>) -> bool {
    let now = change.object();
    let being_deleted =
        |content: &VolumeSnapshotContent| content.metadata.annotations.contains_key(names::BEING_DELETED);
    change.is_resync()
        || change.old().is_none_or(|old| {
            old.metadata.deletion_timestamp != now.metadata.deletion_timestamp
                || being_deleted(old) != being_deleted(now)
                || old.metadata.labels != now.metadata.labels
                || old.spec.deletion_policy != now.spec.deletion_policy
        })
}

struct Snapshotter {
    driver: Driver,
    place: Place,
    tells_names: bool,
    contents: Informer<VolumeSnapshotContent>,
    classes: Informer<VolumeSnapshotClass>,
}

/// What is to be done about a content.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// The driver takes a snapshot of this volume.
    Take(String),
    /// The driver has this one already.
    Find(String),
    /// The driver removes this one.
    Remove(String),
    /// There is nothing that the driver would have to remove.
    LetGo,
}

fn plan(content: &VolumeSnapshotContent) -> Plan {
    let status = content.status.as_ref();
    let handle = status.and_then(|status| status.snapshot_handle.clone());
    let given = content.spec.source.snapshot_handle.clone();
    if content.metadata.deletion_timestamp.is_some() {
        if !finalizers::has(content, names::CONTENT) {
            return Plan::Nothing;
        }
        let is_free = content.metadata.annotations.contains_key(names::BEING_DELETED)
            || content.spec.volume_snapshot_ref.uid.is_empty();
        if !is_free {
            // Its snapshot has to go first.
            return Plan::Nothing;
        }
        return match (content.spec.deletion_policy.as_str(), handle.or(given)) {
            ("Delete", Some(handle)) => Plan::Remove(handle),
            // It may be that the driver has it, and nobody has heard of that.
            ("Delete", None) if content.metadata.annotations.contains_key(names::BEING_CREATED) => {
                content.spec.source.volume_handle.clone().map_or(Plan::LetGo, Plan::Take)
            }
            _ => Plan::LetGo,
        };
    }
    if status.is_some_and(|status| status.ready_to_use == Some(true)) {
        return Plan::Nothing;
    }
    match (given, content.spec.source.volume_handle.clone()) {
        (Some(given), _) => Plan::Find(given),
        (None, Some(volume)) => Plan::Take(volume),
        (None, None) => Plan::Nothing,
    }
}

#[async_trait::async_trait]
impl Controller for Snapshotter {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if !self.contents.get(key).is_some_and(|content| self.is_ours(&content)) {
            return Ok(Next::Done);
        }
        // What was written last may not be in the cache yet, and says whether a call was begun.
        let Some(content) = cx.client.all::<VolumeSnapshotContent>().get_opt(&key.name).await? else {
            return Ok(Next::Done);
        };
        match plan(&content) {
            Plan::Nothing => Ok(Next::Done),
            Plan::Take(volume) => self.take(cx, &content, volume).await,
            Plan::Find(handle) => self.find(cx, &content, handle).await,
            Plan::Remove(handle) => self.remove(cx, &content, handle).await.map(|()| Next::Done),
            Plan::LetGo => finalizers::set(cx, &content, &[names::CONTENT], false).await.map(|()| Next::Done),
        }
    }
}

impl Snapshotter {
    fn is_ours(&self, content: &VolumeSnapshotContent) -> bool {
        let manager = content.metadata.labels.get(names::MANAGED_BY);
        content.spec.driver == self.driver.name
            && self.place.node().is_none_or(|node| manager.is_some_and(|manager| manager == node))
    }

    async fn take(&self, cx: &Cx, content: &VolumeSnapshotContent, volume: String) -> Result<Next, ReconcileError> {
        let reference = &content.spec.volume_snapshot_ref;
        let class = content.spec.volume_snapshot_class_name.as_deref().and_then(|name| self.classes.find("", name));
        let parameters = class.map(|class| class.parameters.clone()).unwrap_or_default();
        let content = &annotate(cx, content, names::BEING_CREATED, Some("yes")).await?;
        let request = CreateSnapshotRequest {
            source_volume_id: volume,
            name: format!("snapshot-{}", reference.uid),
            secrets: self.secrets(cx, content, &parameters).await?,
            parameters: self.parameters(content, &parameters),
        };
        match self.driver.calls.create_snapshot(request).await {
            Ok(answer) => self.taken(cx, content, answer.snapshot.unwrap_or_default()).await,
            Err(error) => self.failed(cx, content, &error).await,
        }
    }

    /// What a driver is told, but for what is the snapshotter's.
    fn parameters(
        &self,
        content: &VolumeSnapshotContent,
        parameters: &BTreeMap<String, String>,
    ) -> std::collections::HashMap<String, String> {
        let own = parameters.iter().filter(|(key, _)| !key.starts_with(RESERVED));
        let mut told: std::collections::HashMap<_, _> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        if self.tells_names {
            let reference = &content.spec.volume_snapshot_ref;
            let names = [
                ("volumesnapshot/name", &reference.name),
                ("volumesnapshot/namespace", &reference.namespace),
                ("volumesnapshotcontent/name", &content.metadata.name),
            ];
            told.extend(names.map(|(key, value)| (format!("{RESERVED}{key}"), value.clone())));
        }
        told
    }

    async fn secrets(
        &self,
        cx: &Cx,
        content: &VolumeSnapshotContent,
        parameters: &BTreeMap<String, String>,
    ) -> Result<std::collections::HashMap<String, String>, ReconcileError> {
        let reference = &content.spec.volume_snapshot_ref;
        let terms = Terms::of_snapshot(&content.metadata.name, &reference.namespace, &reference.name);
        let secret = secrets::resolve(Purpose::Snapshot, parameters, &terms);
        secrets::read(cx, secret.map_err(|error| ReconcileError::failed(error.to_string()))?.as_ref()).await
    }

    /// Writes down what the driver has taken.
    async fn taken(&self, cx: &Cx, content: &VolumeSnapshotContent, made: Snapshot) -> Result<Next, ReconcileError> {
        if made.snapshot_id.is_empty() {
            let error = RpcError::new(tonic::Code::Internal, "the driver answered without a snapshot's id");
            return self.failed(cx, content, &error).await;
        }
        let time =
            made.creation_time.map(|time| time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos.into()));
        let status = json!({
            "snapshotHandle": made.snapshot_id,
            "creationTime": time.unwrap_or_else(|| nanoseconds(cx)),
            "restoreSize": made.size_bytes,
            "readyToUse": made.ready_to_use,
            "error": null,
        });
        write_status(cx, content, status).await?;
        annotate(cx, content, names::BEING_CREATED, None).await?;
        Ok(match (content.metadata.deletion_timestamp.is_some(), made.ready_to_use) {
            // What it has now is known, and can be removed.
            (true, _) => Next::After(Duration::ZERO),
            (false, false) => Next::After(UNREADY),
            (false, true) => Next::Done,
        })
    }

    async fn failed(&self, cx: &Cx, content: &VolumeSnapshotContent, error: &RpcError) -> Result<Next, ReconcileError> {
        let name = &content.metadata.name;
        let reason =
            format!("Failed to check and update snapshot content: failed to take snapshot of the volume: {error}");
        notice::warning(cx, content, "SnapshotCreationFailed", format!("Failed to create snapshot {name}: {error}"));
        let time = Time::from(cx.clock.wall()).to_string();
        write_status(cx, content, json!({"readyToUse": false, "error": {"message": reason, "time": time}})).await?;
        if error.is_final() {
            annotate(cx, content, names::BEING_CREATED, None).await?;
        }
        Err(ReconcileError::failed(reason))
    }

    /// Looks for a snapshot that somebody says the driver has.
    async fn find(&self, cx: &Cx, content: &VolumeSnapshotContent, handle: String) -> Result<Next, ReconcileError> {
        if !self.driver.can(Can::ListSnapshots) {
            // It has to be believed.
            let status = json!({"snapshotHandle": handle, "creationTime": nanoseconds(cx), "restoreSize": 0, "readyToUse": true});
            return write_status(cx, content, status).await.map(|()| Next::Done);
        }
        let request = ListSnapshotsRequest { snapshot_id: handle.clone(), ..ListSnapshotsRequest::default() };
        let answer = self.driver.calls.list_snapshots(request).await;
        let found = match answer {
            Ok(answer) => {
                answer.entries.into_iter().filter_map(|entry| entry.snapshot).find(|own| own.snapshot_id == handle)
            }
            Err(error) => return self.failed(cx, content, &error).await,
        };
        match found {
            Some(found) => self.taken(cx, content, found).await,
            None => {
                let error =
                    RpcError::new(tonic::Code::NotFound, format!("can not find snapshot for snapshotID {handle}"));
                self.failed(cx, content, &error).await
            }
        }
    }

    async fn remove(&self, cx: &Cx, content: &VolumeSnapshotContent, handle: String) -> Result<(), ReconcileError> {
        let annotation = |key| content.metadata.annotations.get(key).cloned();
        let secret = match (annotation(names::DELETION_SECRET_NAME), annotation(names::DELETION_SECRET_NAMESPACE)) {
            (Some(name), Some(namespace)) => Some(SecretReference { name, namespace }),
            _ => None,
        };
        let secrets = secrets::read(cx, secret.as_ref()).await?;
        let removed = self.driver.calls.delete_snapshot(DeleteSnapshotRequest { snapshot_id: handle, secrets }).await;
        if let Err(error) = removed {
            notice::warning(cx, content, "SnapshotDeleteError", "Failed to delete snapshot");
            return Err(ReconcileError::failed(format!("failed to delete snapshot: {error}")));
        }
        finalizers::set(cx, content, &[names::CONTENT], false).await
    }
}

fn nanoseconds(cx: &Cx) -> i64 {
    let since = cx.clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

async fn write_status(cx: &Cx, content: &VolumeSnapshotContent, status: Value) -> Result<(), ReconcileError> {
    let patch = Patch::Merge(json!({"status": status}));
    match cx.client.all::<VolumeSnapshotContent>().patch_status(&content.metadata.name, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// Sets an annotation, or takes it away; the content is as it is then.
async fn annotate(
    cx: &Cx,
    content: &VolumeSnapshotContent,
    key: &str,
    value: Option<&str>,
) -> Result<VolumeSnapshotContent, ReconcileError> {
    if content.metadata.annotations.get(key).map(String::as_str) == value {
        return Ok(content.clone());
    }
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    Ok(cx.client.all::<VolumeSnapshotContent>().patch(&content.metadata.name, &patch).await?)
}

#[cfg(test)]
mod tests {
    use api_types::snapshot_v1::VolumeSnapshotContentStatus;

    use super::*;

    #[test]
    fn contents_are_taken_found_and_removed() {
        let content = |volume: Option<&str>, given: Option<&str>, handle: Option<&str>, ready: bool| {
            let mut content = VolumeSnapshotContent::default();
            content.spec.source.volume_handle = volume.map(Into::into);
            content.spec.source.snapshot_handle = given.map(Into::into);
            content.spec.deletion_policy = "Delete".into();
            content.spec.volume_snapshot_ref.uid = "u".into();
            content.status = handle.map(|handle| VolumeSnapshotContentStatus {
                snapshot_handle: Some(handle.into()),
                ready_to_use: Some(ready),
                ..VolumeSnapshotContentStatus::default()
            });
            content
        };
        let going = |mut content: VolumeSnapshotContent, annotation: &str, policy: &str| {
            content.metadata.deletion_timestamp = Some(Time::default());
            content.metadata.finalizers.push(names::CONTENT.into());
            content.metadata.annotations.insert(annotation.into(), "yes".into());
            content.spec.deletion_policy = policy.into();
            content
        };
        let of_volume = || content(Some("v"), None, None, false);
        let ready = || content(Some("v"), None, Some("s"), true);
        let mut both = going(of_volume(), names::BEING_DELETED, "Delete");
        both.metadata.annotations.insert(names::BEING_CREATED.into(), "yes".into());
        for (name, content, expected) in [
            ("new", of_volume(), Plan::Take("v".into())),
            ("not ready", content(Some("v"), None, Some("s"), false), Plan::Take("v".into())),
            ("ready", ready(), Plan::Nothing),
            ("given", content(None, Some("s"), None, false), Plan::Find("s".into())),
            ("goes", going(ready(), names::BEING_DELETED, "Delete"), Plan::Remove("s".into())),
            ("its snapshot is there", going(ready(), "other", "Delete"), Plan::Nothing),
            ("is kept", going(ready(), names::BEING_DELETED, "Retain"), Plan::LetGo),
            ("was never begun", going(of_volume(), names::BEING_DELETED, "Delete"), Plan::LetGo),
            ("may have been taken", both, Plan::Take("v".into())),
        ] {
            assert_eq!(plan(&content), expected, "{name}");
        }
    }
}
