//! Writes every object of a resource again without changing it: the server stores it as the version that it stores now. No
//! progress is noted; what has been written already is newer than what has to be, and is passed over.

use std::time::Duration;

use api_machinery::meta::{ObjectMeta, PartialObjectMetadata, PatchOptions};
use api_types::storagemigration_v1beta1::StorageVersionMigration;
use api_types::storagemigration_v1beta1::constants::migration_condition_type::SUCCEEDED;
use client::{Client, ClientError, Informer, Informers, ObjectKey, Patch, ResourceInfo, RestMapper};
use controller::{Controller, Cx, Next, ReconcileError};
use serde_json::json;

use super::{fail, is_running, may_come, number, resource_of, say, served};

const FIELD_MANAGER: &str = "storage-version-migrator-controller";
/// How long the objects of a resource may take to be listed.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// Writes objects again.
pub(super) struct Rewrite {
    pub(super) migrations: Informer<StorageVersionMigration>,
    pub(super) mapper: RestMapper,
    /// Those of the garbage collector, which has most resources already.
    pub(super) informers: Informers,
    pub(super) client: Client,
}

/// Why a migration cannot go on now.
enum Stop {
    /// It is tried again from the beginning.
    Later(ReconcileError),
    /// For good.
    Failed(String),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        if may_pass(&error) { Self::Later(error.into()) } else { Self::Failed(error.to_string()) }
    }
}

/// Whether the same request may do later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { .. } | ClientError::Timeout { .. } | ClientError::Body(_) => true,
        ClientError::Api(answer) => error.is_timeout() || matches!(answer.code, 429 | 500 | 503),
        ClientError::Decode { .. } | ClientError::Invalid(_) => false,
    }
}

impl Rewrite {
    async fn rewrite(&self, cx: &Cx, migration: &StorageVersionMigration) -> Result<(), Stop> {
        let later = |why: &str| Stop::Later(ReconcileError::failed(format!("{why}, requeuing to attempt again")));
        let unknown = |why: &str| if may_come(cx, migration) { later(why) } else { Stop::Failed(why.to_owned()) };
        let resource =
            served(&self.mapper, &resource_of(migration)).await.map_err(|error| Stop::Later(error.into()))?;
        let Some(info) = resource.map(|served| served.info) else {
            return Err(unknown("unable to obtain GVR from discovery"));
        };
        let share = self.informers.share_metadata(&info);
        let objects = share.informer();
        objects.start();
        if tokio::time::timeout(LIST_LIMIT, objects.wait_synced()).await.is_err() {
            return Err(unknown("resource does not exist in GC: timed out waiting for the condition"));
        }
        let (have, want) = (objects.resource_version(), &migration.status.resource_version);
        let Some(limit) = number(want) else {
            return Err(Stop::Failed(format!("resource version is not well formed: {want}")));
        };
        if number(&have).is_none_or(|have| have < limit) {
            let why = format!(
                "GC cache is not up to date, requeuing to attempt again. gcListResourceVersion: {have}, \
                 listResourceVersion: {want}"
            );
            return Err(Stop::Later(ReconcileError::failed(why)));
        }
        for object in objects.list() {
            if number(&object.metadata.resource_version).is_some_and(|version| version <= limit) {
                self.write(&info, &object.metadata).await?;
            }
        }
        Ok(())
    }

    /// Writes an object as it is. One that somebody has changed or deleted meanwhile needs it no more.
    async fn write(&self, info: &ResourceInfo, meta: &ObjectMeta) -> Result<(), ClientError> {
        let intent = json!({
            "apiVersion": info.api_version(),
            "kind": info.kind,
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        });
        let options = PatchOptions { field_manager: FIELD_MANAGER.to_owned(), ..PatchOptions::default() };
        let api = self.client.metadata(info, &meta.namespace);
        let written: Result<PartialObjectMetadata, ClientError> =
            api.patch_with(&meta.name, &Patch::Apply(intent), &options).await;
        match written {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Controller for Rewrite {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(migration) = self.migrations.get(key) else { return Ok(Next::Done) };
        if !is_running(&migration) || migration.status.resource_version.is_empty() {
            return Ok(Next::Done);
        }
        match self.rewrite(cx, &migration).await {
            Ok(()) => say(cx, &migration, (SUCCEEDED, "True"), ("StorageVersionMigrationSucceeded", "")).await?,
            Err(Stop::Failed(why)) => {
                fail(cx, &migration, &format!("migration encountered unhandled error: {why}")).await?;
            }
            Err(Stop::Later(error)) => return Err(error),
        }
        Ok(Next::Done)
    }
}
