//! Objects that cannot be read: what is told of them, and how they go (KEP-3926).

use api_machinery::meta::DeleteOptions;
use api_machinery::status::ApiError;
use async_trait::async_trait;
use storage::{Backend as _, Expect, Write};

use super::values::{Shifted, gated};
use super::*;
use crate::Hooks;

const UNREADABLE: &str = "/registry/configmaps/default/b";

/// A map that can be read, and one that cannot be.
async fn with_one_unreadable(cached: bool, unsafe_deletion: bool) -> Fixture {
    let fixture = gated(&Arc::new(Shifted { newest: 1.into() }), cached, unsafe_deletion).await;
    let cx = fixture.cx("default");
    fixture.resource("configmaps").create(&cx, config_map("a", "x"), &Hooks::none()).await.unwrap();
    fixture.store.txn(&UNREADABLE.into(), Expect::Absent, Write::put(&b"\x09what"[..])).await.unwrap();
    fixture
}

fn unread() -> DeleteOptions {
    DeleteOptions { ignore_store_read_error_with_cluster_breaking_potential: Some(true), ..DeleteOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_apart() {
    let fixture = with_one_unreadable(false, true).await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let why = format!(
        "StorageError: corrupt object, Code: 7, Key: {UNREADABLE}, ResourceVersion: 0, AdditionalErrorMsg: data from \
         the storage is not transformable revision=0: no matching key"
    );
    let error = maps.get(&cx, "b", "").await.unwrap_err();
    assert_eq!((&*error.reason, error.message), ("InternalError", format!("Internal error occurred: {why}")));
    let error = maps.list(&cx, &ListOptions::default()).await.unwrap_err();
    let expected = "failed to read one or more configmaps from the storage";
    assert_eq!((error.code, &*error.reason, &*error.message), (500, "StorageReadError", expected));
    let details = error.details.unwrap();
    assert_eq!((&*details.name, &*details.kind), ("list", "configmaps"));
    let causes = details.causes.iter().map(|own| (&*own.reason, &*own.field, &*own.message));
    assert_eq!(causes.collect::<Vec<_>>(), [("UnexpectedServerResponse", UNREADABLE, &*why)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_tells_of_a_hundred_that_cannot_be_read() {
    let fixture = with_one_unreadable(false, true).await;
    for number in 0..100 {
        let key = format!("/registry/configmaps/default/c{number:03}");
        fixture.store.txn(&key.as_str().into(), Expect::Absent, Write::put(&b"\x09what"[..])).await.unwrap();
    }
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let causes = maps.list(&cx, &ListOptions::default()).await.unwrap_err().details.unwrap().causes;
    assert_eq!((causes.len(), &*causes[99].field), (101, "/registry/configmaps/default/c098"));
    let last = (&*causes[100].reason, &*causes[100].message);
    assert_eq!(last, ("FieldValueTooMany", "too many errors, the list is truncated"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_deleted_unread() {
    for cached in [true, false] {
        let fixture = with_one_unreadable(cached, true).await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let error = maps.delete(&cx, "b", &DeleteOptions::default(), &Hooks::none()).await.unwrap_err();
        assert!(error.message.contains("corrupt object"), "{error}");
        for readable in ["a", "missing"] {
            let error = maps.delete(&cx, readable, &unread(), &Hooks::none()).await.unwrap_err();
            assert_eq!(error.code, 422);
            assert!(error.message.contains("is exclusively used to delete corrupt object(s)"), "{error}");
        }
        let deletion = maps.delete(&cx, "b", &unread(), &Hooks::none()).await.unwrap();
        let crate::Deleted::Status(status) = deletion.body else { panic!("there is no object to show") };
        let details = status.details.unwrap();
        assert_eq!((&*status.status, &*details.name, &*details.kind), ("Success", "b", "ConfigMap"));
        assert_eq!(maps.get(&cx, "b", "").await.unwrap_err().code, 404);
        // The cache is filled anew.
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        assert_eq!(names(&maps.list(&cx, &ListOptions::default()).await.unwrap()), ["a"]);
    }
}

/// Refuses every deletion.
struct Refusing;

#[async_trait]
impl crate::Admission for Refusing {
    async fn validate(
        &self,
        operation: crate::Operation,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        assert!(operation == crate::Operation::Delete && object.is_none());
        let old = old.expect("an object without content");
        Err(ApiError::bad_request(format!("no {:?}", old.meta().name)))
    }
}

#[tokio::test(start_paused = true)]
async fn only_one_object_by_its_name_is_deleted_unread() {
    let fixture = with_one_unreadable(true, true).await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let hooks = Hooks { admission: &Refusing, track: None };
    assert_eq!(maps.delete(&cx, "b", &unread(), &hooks).await.unwrap_err().message, "no \"\"");
    let all = maps.delete_collection(&cx, &ListOptions::default(), &unread(), &Hooks::none()).await;
    let message = all.unwrap_err().message;
    assert!(message.contains("is not allowed with DELETECOLLECTION, try again after removing the option"), "{message}");
    let mut eviction = api_types::policy_v1::Eviction { delete_options: Some(unread()), ..Default::default() };
    eviction.metadata.name = "p".into();
    let evicted = crate::evict(&fixture.registry, &cx, "p", &eviction, &Hooks::none()).await;
    let message = evicted.unwrap_err().message;
    assert!(message.contains("can not be set for pod eviction, try after removing the option"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_the_deletion_of_what_it_could_not_read() {
    for (on, reason, text) in [
        (
            true,
            "StorageReadError",
            "saw a DELETED event, but object data is corrupt - data from the storage is not transformable \
             revision=0: no matching key",
        ),
        (
            false,
            "InternalError",
            "Internal error occurred: unable to transform key \"/registry/configmaps/default/b\": no matching key",
        ),
    ] {
        let fixture = with_one_unreadable(false, on).await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let resource_version = fixture.store.current_revision().await.unwrap().to_string();
        let options = ListOptions { resource_version, ..ListOptions::default() };
        let mut watch = maps.watch(&cx, &options, None).await.unwrap();
        fixture.store.txn(&UNREADABLE.into(), Expect::Any, Write::Delete).await.unwrap();
        let Some(watch_cache::Event::Error(fault)) = watch.next().await else { panic!("an end") };
        let error = crate::watch_fault(&fault, &maps.rule_context().gates);
        assert_eq!((error.code, &*error.reason, &*error.message), (500, reason, text));
    }
}
