//! Notes the version that a resource is at when its migration begins: what is newer has been written as it should be.

use api_machinery::gvk::GroupVersionResource;
use api_machinery::meta::ListOptions;
use api_types::storagemigration_v1beta1::StorageVersionMigration;
use client::{Informer, ObjectKey, RestMapper};
use controller::{Controller, Cx, Next, ReconcileError};

use super::{fail, is_running, may_come, number, resource_of, served};

/// What must be possible with the objects.
const VERBS: [&str; 3] = ["update", "patch", "list"];
/// No namespace can be called so: a list of it tells the version, and no objects.
const NOWHERE: &str = "@fake:svm_ns!";

/// Notes versions.
pub(super) struct Version {
    pub(super) migrations: Informer<StorageVersionMigration>,
    pub(super) mapper: RestMapper,
}

fn unsupported(resource: &GroupVersionResource) -> String {
    format!("resource \"{resource}\" does not support discovery operations: [{}]", VERBS.join(" "))
}

#[async_trait::async_trait]
impl Controller for Version {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(migration) = self.migrations.get(key) else { return Ok(Next::Done) };
        if !is_running(&migration) || !migration.status.resource_version.is_empty() {
            return Ok(Next::Done);
        }
        let Some(served) = served(&self.mapper, &resource_of(&migration)).await? else {
            if may_come(cx, &migration) {
                return Err(ReconcileError::failed("resource does not exist in discovery, requeuing to attempt again"));
            }
            fail(cx, &migration, "resource does not exist in discovery").await?;
            return Ok(Next::Done);
        };
        let resource = &served.info.resource;
        if !served.supports(&VERBS) {
            fail(cx, &migration, &unsupported(resource)).await?;
            return Ok(Next::Done);
        }
        let namespace = if served.info.namespaced { NOWHERE } else { "" };
        let options = ListOptions { limit: 1, ..ListOptions::default() };
        let list = match cx.client.metadata(&served.info, namespace).list(&options).await {
            Err(error) if error.is_not_found() => {
                fail(cx, &migration, &unsupported(resource)).await?;
                return Ok(Next::Done);
            }
            list => list?,
        };
        let version = list.metadata.resource_version;
        if number(&version).is_none() {
            let why = format!("resource version is not well formed: {version}");
            fail(cx, &migration, &format!("latest resourceVersion for {resource} is not valid: {why}")).await?;
            return Ok(Next::Done);
        }
        let mut next = StorageVersionMigration::clone(&migration);
        next.status.resource_version = version;
        cx.client.all::<StorageVersionMigration>().update_status(&next).await?;
        Ok(Next::Done)
    }
}
