//! One migration of a resource at a time: the oldest has its turn. The definition of a custom resource tells of it, and in
//! the end which versions are stored.

use std::sync::Arc;

use api_machinery::meta::PatchOptions;
use api_machinery::time::Time;
use api_types::apiextensions_v1::constants::custom_resource_definition_condition_type::STORAGE_MIGRATING;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionCondition};
use api_types::storagemigration_v1beta1::StorageVersionMigration;
use api_types::storagemigration_v1beta1::constants::migration_condition_type::{RUNNING, SUCCEEDED};
use client::{ClientError, Informer, ObjectKey, Patch, retry_on_conflict};
use component_helpers::conditions::is_true;
use controller::{Controller, Cx, Next, ReconcileError};
use serde_json::{Value, json};

use super::{is_over, is_running, place, say};

/// Who owns what is told in a definition.
const FIELD_MANAGER: &str = "migration-runner-controller";
/// What is told of a migration that has its turn, beside its name.
const IS_RUNNING: (&str, &str) = ("MigrationRunning", "The migration is running");
const IS_COMPLETED: (&str, &str) = ("MigrationCompleted", "Migration completed");

/// Gives turns.
pub(super) struct Turns(pub(super) Informer<StorageVersionMigration>);

/// What is due for the migrations of a resource.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// These have ended, and still have their turn.
    pub(super) ended: Vec<Arc<StorageVersionMigration>>,
    /// This one's turn comes.
    pub(super) next: Option<Arc<StorageVersionMigration>>,
}

pub(super) fn due(migrations: Vec<Arc<StorageVersionMigration>>) -> Due {
    let is_taken = migrations.iter().any(|own| is_running(own));
    let waiting = migrations.iter().filter(|own| !is_over(own) && !is_taken);
    let age = |own: &&Arc<StorageVersionMigration>| (own.metadata.creation_timestamp, own.metadata.name.clone());
    let next = waiting.min_by_key(age).cloned();
    let has_turn = |own: &Arc<StorageVersionMigration>| is_true(&own.status.conditions, RUNNING) && is_over(own);
    Due { ended: migrations.into_iter().filter(has_turn).collect(), next }
}

#[async_trait::async_trait]
impl Controller for Turns {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let mut migrations = self.0.list();
        migrations.retain(|own| place(own) == key.name);
        let Due { ended, next } = due(migrations);
        for migration in ended {
            tell(cx, key, &Turn::End { succeeded: is_true(&migration.status.conditions, SUCCEEDED) }).await?;
            say(cx, &migration, (RUNNING, "False"), IS_COMPLETED).await?;
        }
        if let Some(migration) = next {
            tell(cx, key, &Turn::Begin(&migration.metadata.name)).await?;
            say(cx, &migration, (RUNNING, "True"), IS_RUNNING).await?;
        }
        Ok(Next::Done)
    }
}

/// What a definition is told of a migration.
pub(super) enum Turn<'a> {
    /// The one of this name has its turn.
    Begin(&'a str),
    End {
        succeeded: bool,
    },
}

/// Tells the definition of a custom resource; other resources have none.
async fn tell(cx: &Cx, key: &ObjectKey, told: &Turn<'_>) -> Result<(), ClientError> {
    let api = cx.client.all::<CustomResourceDefinition>();
    let options =
        PatchOptions { field_manager: FIELD_MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
    retry_on_conflict(&cx.rng, || async {
        let Some(definition) = api.get_opt(&key.name).await? else { return Ok(()) };
        let patch = Patch::Apply(intent(&definition, told, cx.clock.wall().into()));
        api.patch_subresource(&key.name, "status", &patch, &options).await.map(drop)
    })
    .await
}

/// What is told, as an intent to apply. The list of stored versions goes with it whether it changes or not: whoever applies
/// without it what it has applied before takes it away.
pub(super) fn intent(definition: &CustomResourceDefinition, told: &Turn<'_>, now: Time) -> Value {
    let (meta, status) = (&definition.metadata, &definition.status);
    let former = status.conditions.iter().find(|own| own.type_ == STORAGE_MIGRATING);
    let changed_since = former.is_none_or(|former| former.observed_generation != meta.generation);
    let (said, reason, message) = match told {
        Turn::Begin(name) => ("True", "MigrationRunning", format!("Migration {name} is running")),
        Turn::End { succeeded } => {
            let (reason, message) = match (succeeded, changed_since) {
                (true, false) => {
                    ("MigrationSucceeded", "The migration has succeeded and the stored versions have been updated")
                }
                (true, true) => (
                    "MigrationSucceeded",
                    "The migration has succeeded but the stored versions have not been updated due to a generation \
                     mismatch",
                ),
                (false, _) => ("MigrationFailed", "The migration has failed"),
            };
            ("False", reason, message.to_owned())
        }
    };
    let stored = definition.spec.versions.iter().find(|version| version.storage).map(|version| version.name.clone());
    let is_migrated = matches!(told, Turn::End { succeeded: true }) && !changed_since;
    let stored_versions = match stored.filter(|_| is_migrated) {
        Some(stored) => vec![stored],
        None => status.stored_versions.clone(),
    };
    let unchanged = former.filter(|former: &&CustomResourceDefinitionCondition| former.status == said);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": meta.name, "resourceVersion": meta.resource_version},
        "status": {
            "conditions": [{
                "type": STORAGE_MIGRATING,
                "status": said,
                "reason": reason,
                "message": message,
                "observedGeneration": meta.generation,
                "lastTransitionTime": unchanged.map_or(now, |former| former.last_transition_time).to_string(),
            }],
            "storedVersions": stored_versions,
        },
    })
}
