//! Has the objects of a resource written again, so that they are stored as the version that is stored now: one migration of a
//! resource at a time, as `StorageVersionMigration` objects ask for it.
//! <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/>
//!
//! Three parts follow one another: [`turns`] lets the oldest migration of a resource run, and tells of it in the definition of
//! custom ones; [`version`] notes up to which version objects need writing; [`rewrite`] writes them, without changing them.

mod rewrite;
#[cfg(test)]
mod tests;
mod turns;
mod version;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_machinery::meta::Condition;
use api_types::storagemigration_v1beta1::StorageVersionMigration;
use api_types::storagemigration_v1beta1::constants::migration_condition_type::{FAILED, RUNNING, SUCCEEDED};
use client::{Change, ClientError, ObjectKey, RestMapper, ServedResource};
use component_base::shared_gates::STORAGE_VERSION_MIGRATOR;
use component_helpers::conditions::{find, is_true, set};
use controller::{Build, BuildError, Cx, Descriptor};

use crate::Settings;
use rewrite::Rewrite;
use turns::Turns;
use version::Version;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "storage-version-migrator-controller",
    aliases: &["svm"],
    // As upstream: it looks itself.
    gates: &[],
    identity: "storage-version-migrator-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// How long a migration waits for its resource to be known, from its creation on.
const PATIENCE: Duration = Duration::from_secs(60);
const REWRITERS: usize = 5;
/// How many times as much may be asked as by other controllers: every object is a request.
const RATE: (f64, u32) = (20.0, 100);
/// The reason of a migration that failed.
const HAS_FAILED: &str = "StorageVersionMigrationFailed";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    if !build.gates().enabled(STORAGE_VERSION_MIGRATOR) {
        return Err(BuildError::Skipped("the feature gate StorageVersionMigrator is off".to_owned()));
    }
    if !build.settings::<Settings>()?.garbage_collector {
        return Err(BuildError::Failed("storage version migrator requires garbage collector".to_owned()));
    }
    let (turns, versions) = (build.queue("migration-runner-controller"), build.queue("resource-version-controller"));
    let rewrites = build.queue("storage-version-migrator-controller");
    let of_resource = |change: &Change<StorageVersionMigration>| Some(ObjectKey::cluster(place(change.object())));
    let watching = build.watch::<StorageVersionMigration>().enqueue_keys(&turns, of_resource);
    let migrations = watching.enqueue_self(&versions).enqueue_self(&rewrites).informer();
    let mapper = build.mapper().clone();
    let client = build.client().derive(|config| {
        let (qps, burst) = (config.qps * RATE.0, config.burst.saturating_mul(RATE.1));
        config.with_rate(qps, burst)
    })?;
    let informers = build.metadata_informers().clone();
    build.run(&turns, 1, Arc::new(Turns(migrations.clone())));
    build.run(&versions, 1, Arc::new(Version { migrations: migrations.clone(), mapper: mapper.clone() }));
    build.run(&rewrites, REWRITERS, Arc::new(Rewrite { migrations, mapper, informers, client }));
    Ok(())
}

fn resource_of(migration: &StorageVersionMigration) -> GroupResource {
    let own = &migration.spec.resource;
    GroupResource::named(&own.group, &own.resource)
}

/// The resource of a migration, as a key.
fn place(migration: &StorageVersionMigration) -> String {
    resource_of(migration).to_string()
}

fn is_over(migration: &StorageVersionMigration) -> bool {
    [SUCCEEDED, FAILED].iter().any(|end| is_true(&migration.status.conditions, end))
}

/// Whether a migration has its turn, and has not ended.
fn is_running(migration: &StorageVersionMigration) -> bool {
    is_true(&migration.status.conditions, RUNNING) && !is_over(migration)
}

/// Whether a resource that is not known may still come to be.
fn may_come(cx: &Cx, migration: &StorageVersionMigration) -> bool {
    let now = api_machinery::time::Time::from(cx.clock.wall());
    now.since(migration.metadata.creation_timestamp) < PATIENCE
}

/// The resource in the version that its group prefers. One that is not known may have come since the server was asked.
async fn served(mapper: &RestMapper, resource: &GroupResource) -> Result<Option<ServedResource>, ClientError> {
    let find = |discovered: &client::Discovered| {
        discovered.preferred().find(|served| served.info.resource.group_resource() == *resource).cloned()
    };
    if let Some(known) = find(&mapper.discovered()) {
        return Ok(Some(known));
    }
    let discovered = mapper.refresh().await?;
    Ok(find(&discovered))
}

/// Writes a condition of a migration.
async fn say(
    cx: &Cx,
    migration: &StorageVersionMigration,
    (type_, status): (&str, &str),
    (reason, message): (&str, &str),
) -> Result<(), ClientError> {
    let mut next = migration.clone();
    let condition = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    };
    set(&mut next.status.conditions, condition, cx.clock.wall().into());
    cx.client.all::<StorageVersionMigration>().update_status(&next).await.map(drop)
}

/// Ends a migration, which stays as it has ended first.
async fn fail(cx: &Cx, migration: &StorageVersionMigration, message: &str) -> Result<(), ClientError> {
    if find(&migration.status.conditions, FAILED).is_some() {
        return Ok(());
    }
    tracing::warn!(migration = migration.metadata.name, message, "A storage version migration has failed");
    say(cx, migration, (FAILED, "True"), (HAS_FAILED, message)).await
}

/// A resource version as a number, if it is one.
fn number(version: &str) -> Option<u64> {
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    version.parse().ok().filter(|_| is_number)
}
