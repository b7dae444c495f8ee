use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionVersion};
use api_types::core_v1::Pod;
use base::{CancellationToken, TaskGroup};
use client::Client;
use client::fake::FakeServer;
use component_base::Gates;
use controller::{ControllerSet, Environment, Selection};

use super::turns::{Turn, due, intent};
use super::*;
use crate::workloads::fixtures::{WithDiscovery, at, meta, stored};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const MIGRATIONS: &str = "storagemigration.k8s.io/v1beta1/storageversionmigrations";
const DEFINITIONS: &str = "apiextensions.k8s.io/v1/customresourcedefinitions";

/// A migration with conditions that are true.
fn migration(name: &str, created: Time, resource: &str, conditions: &[&str]) -> StorageVersionMigration {
    let mut own = StorageVersionMigration::default();
    own.metadata.name = name.to_owned();
    own.metadata.creation_timestamp = created;
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    own.spec.resource.resource = resource.to_owned();
    own.spec.resource.group = group.to_owned();
    let condition =
        |name: &&str| Condition { type_: (*name).to_owned(), status: "True".to_owned(), ..Condition::default() };
    own.status.conditions = conditions.iter().map(condition).collect();
    own
}

/// Has the migrator work on a server.
fn start(server: &FakeServer) -> (TaskGroup, Client) {
    let client = server.client_over(Arc::new(WithDiscovery(server.transport())));
    let mut env = Environment::new(&client);
    env.settings = Arc::new(Settings::default());
    env.gates = Gates::default().with(STORAGE_VERSION_MIGRATOR, true);
    let set = ControllerSet::new(KNOWN, &Selection::all(), &env.gates);
    let group = TaskGroup::new("test");
    group.spawn_cancellable("controllers", async move {
        set.run(&env, CancellationToken::new()).await.unwrap();
    });
    (group, client)
}

/// The conditions of a migration: type, status, and the message or reason.
async fn told(client: &Client, name: &str) -> Vec<String> {
    let own = client.all::<StorageVersionMigration>().get(name).await.unwrap();
    let one = |own: &Condition| format!("{} {} {}: {}", own.type_, own.status, own.reason, own.message);
    own.status.conditions.iter().map(one).collect()
}

fn patched(server: &FakeServer) -> Vec<String> {
    let patches = server.requests().into_iter().filter(|line| line.starts_with("PATCH") && line.contains("/pods/"));
    let mut names: Vec<String> =
        patches.filter_map(|line| Some(line.split('?').next()?.rsplit('/').next()?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn the_oldest_migration_of_a_resource_has_its_turn() {
    let make =
        |name: &str, created: i64, conditions: &[&str]| Arc::new(migration(name, at(created), "pods", conditions));
    for (migrations, ended, next) in [
        (vec![make("b", 2, &[]), make("a", 2, &[]), make("c", 3, &[])], vec![], Some("a")),
        (vec![make("b", 2, &[RUNNING]), make("a", 1, &[])], vec![], None),
        (vec![make("b", 2, &[RUNNING, SUCCEEDED]), make("a", 3, &[])], vec!["b"], Some("a")),
        (vec![make("b", 2, &[RUNNING, FAILED]), make("a", 1, &[SUCCEEDED])], vec!["b"], None),
        (vec![make("b", 2, &[FAILED])], vec![], None),
    ] {
        let found = due(migrations);
        let names: Vec<&str> = found.ended.iter().map(|own| own.metadata.name.as_str()).collect();
        assert_eq!((names, found.next.as_ref().map(|own| own.metadata.name.as_str())), (ended, next));
    }
}

#[test]
fn a_definition_stores_one_version_once_all_has_been_written() {
    let mut definition = CustomResourceDefinition::default();
    definition.metadata.generation = 3;
    definition.status.stored_versions = vec!["v1".into(), "v2".into()];
    for (name, storage) in [("v1", false), ("v2", true)] {
        let version = CustomResourceDefinitionVersion { name: name.into(), storage, ..Default::default() };
        definition.spec.versions.push(version);
    }
    let condition = |definition: &CustomResourceDefinition, told: &Turn<'_>| {
        let status = intent(definition, told, at(9))["status"].clone();
        let own = &status["conditions"][0];
        let said = ["status", "reason", "message"].map(|name| own[name].as_str().unwrap().to_owned());
        (said.join(" "), status["storedVersions"].clone(), own["observedGeneration"].as_i64())
    };
    let begun = condition(&definition, &Turn::Begin("m"));
    let both = serde_json::json!(["v1", "v2"]);
    assert_eq!(begun, ("True MigrationRunning Migration m is running".to_owned(), both.clone(), Some(3)));

    let recorded = intent(&definition, &Turn::Begin("m"), at(5));
    definition.status.conditions = vec![api_types::apiextensions_v1::CustomResourceDefinitionCondition {
        type_: "StorageMigrating".into(),
        status: "True".into(),
        observed_generation: recorded["status"]["conditions"][0]["observedGeneration"].as_i64().unwrap(),
        last_transition_time: at(5),
        ..Default::default()
    }];
    let (said, versions, _) = condition(&definition, &Turn::End { succeeded: true });
    let updated = "The migration has succeeded and the stored versions have been updated";
    assert_eq!((said, versions), (format!("False MigrationSucceeded {updated}"), serde_json::json!(["v2"])));
    // What lies there as before would be lost.
    let (said, versions, _) = condition(&definition, &Turn::End { succeeded: false });
    assert_eq!((said.as_str(), versions), ("False MigrationFailed The migration has failed", both.clone()));

    definition.metadata.generation = 4;
    let (said, versions, _) = condition(&definition, &Turn::End { succeeded: true });
    assert!(said.ends_with("have not been updated due to a generation mismatch"), "{said}");
    assert_eq!(versions, both);
}

#[tokio::test(start_paused = true)]
async fn objects_are_written_again_one_migration_after_another() {
    let server = FakeServer::new();
    for name in ["p1", "p2"] {
        server.put("v1/pods", stored(&Pod { metadata: meta(name), ..Pod::default() }));
    }
    server.put(MIGRATIONS, stored(&migration("first", at(1), "pods", &[])));
    server.put(MIGRATIONS, stored(&migration("second", at(2), "pods", &[])));
    let (_group, client) = start(&server);
    tokio::time::sleep(Duration::from_secs(200)).await;
    for name in ["first", "second"] {
        assert_eq!(
            told(&client, name).await,
            [
                "Running False MigrationCompleted: Migration completed",
                "Succeeded True StorageVersionMigrationSucceeded: "
            ],
            "{name}"
        );
    }
    assert_eq!(patched(&server), ["p1", "p1", "p2", "p2"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_since_is_passed_over() {
    let server = FakeServer::new();
    let pod = |name: &str| stored(&Pod { metadata: meta(name), ..Pod::default() });
    server.put("v1/pods", pod("old"));
    let version = server.objects("v1/pods")[0]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.put("v1/pods", pod("new"));
    let mut running = migration("m", at(1), "pods", &[RUNNING]);
    running.status.resource_version = version;
    server.put(MIGRATIONS, stored(&running));
    let (_group, client) = start(&server);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(patched(&server), ["old"]);
    assert_eq!(told(&client, "m").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_migrated_fails_and_says_why() {
    let server = FakeServer::new();
    let (_group, client) = start(&server);
    let now: Time = client.clock().wall().into();
    let mut definition = CustomResourceDefinition::default();
    definition.metadata.name = "apples.example.com".into();
    server.put(DEFINITIONS, stored(&definition));
    server.put(MIGRATIONS, stored(&migration("read-only", now, "configmaps", &[])));
    server.put(MIGRATIONS, stored(&migration("unknown", now, "apples.example.com", &[])));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let unsupported = "Failed True StorageVersionMigrationFailed: resource \"/v1, Resource=configmaps\" does not support \
                       discovery operations: [update patch list]";
    assert_eq!(
        told(&client, "read-only").await,
        ["Running False MigrationCompleted: Migration completed", unsupported]
    );
    assert_eq!(told(&client, "unknown").await, ["Running True MigrationRunning: The migration is running"]);
    // It is asked again ever more rarely.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let unknown = "Failed True StorageVersionMigrationFailed: resource does not exist in discovery";
    assert_eq!(told(&client, "unknown").await.last().map(String::as_str), Some(unknown));
    let definition = client.all::<CustomResourceDefinition>().get("apples.example.com").await.unwrap();
    let condition = definition.status.conditions.first().expect("a condition");
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("MigrationFailed", "The migration has failed")
    );
}
