//! Create and update.

use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::ConfigMap;
use async_trait::async_trait;
use kinds::rules::Endpoint;
use storage::Backend as _;

use super::*;
use crate::{Admission, Change, Hooks, Operation, Patch, Replace};

#[tokio::test(start_paused = true)]
async fn creation_fills_in_what_is_the_servers() {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    let mut map = config_map("one", "a");
    map.meta_mut().uid = "mine".into();
    map.meta_mut().deletion_grace_period_seconds = Some(7);
    let written = maps.create(&fixture.cx("default"), map, &Hooks::none()).await.unwrap();
    let meta = written.item.object().meta();
    assert!(written.created && meta.uid.len() == 36 && meta.deletion_grace_period_seconds.is_none());
    assert_eq!(meta.creation_timestamp.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(meta.resource_version, written.item.revision().to_string());
    let read = maps.get(&fixture.cx("default"), "one", "").await.unwrap();
    assert_eq!(read.json(), written.item.json());

    let raw = fixture.store.get(&"/registry/configmaps/default/one".into()).await.unwrap().kv.unwrap();
    assert!(raw.value.starts_with(b"k8s\0"), "built-in kinds are stored as protobuf");
}

/// As an etcd that was taken over has them.
#[tokio::test(start_paused = true)]
async fn objects_of_older_versions_are_read_or_refused() {
    let fixture = Fixture::new().await;
    let put = async |resource: &str, name: &str, value: Vec<u8>| {
        let key = storage::Key::from(format!("/registry/{resource}/default/{name}"));
        fixture.store.txn(&key, storage::Expect::Any, storage::Write::put(value)).await.unwrap();
        key
    };
    let mut lease = api_types::coordination_v1::Lease::default();
    (lease.metadata.name, lease.metadata.namespace) = ("old".into(), "default".into());
    lease.spec.holder_identity = Some("somebody".into());
    let message = api_machinery::protobuf::encode(&lease);
    let sealed = api_machinery::protobuf::seal("coordination.k8s.io/v1beta1", "Lease", |out| out.raw(&message));
    let key = put("leases", "old", sealed).await;
    let leases = fixture.registry.resource("coordination.k8s.io", "v1", "leases").unwrap();
    let read = leases.get(&fixture.cx("default"), "old", "").await.unwrap();
    assert!(read.json().starts_with(b"{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\""));

    // An update that changes nothing brings the stored form up to date.
    let same = Replace(read.object().clone_object());
    leases.update(&fixture.cx("default"), "old", Endpoint::Main, &same, &Hooks::none()).await.unwrap();
    let raw = fixture.store.get(&key).await.unwrap().kv.unwrap().value;
    assert_eq!(api_machinery::protobuf::open(&raw).unwrap().api_version, "coordination.k8s.io/v1");

    let ingress = br#"{"apiVersion":"networking.k8s.io/v1beta1","kind":"Ingress","metadata":{"name":"old","namespace":"default"},"spec":{"backend":{"serviceName":"a","servicePort":80}}}"#;
    put("ingress", "old", ingress.to_vec()).await;
    let ingresses = fixture.registry.resource("networking.k8s.io", "v1", "ingresses").unwrap();
    let read = ingresses.get(&fixture.cx("default"), "old", "").await.unwrap();
    let text = String::from_utf8_lossy(&read.json()).into_owned();
    assert!(text.contains(r#""defaultBackend":{"service":{"name":"a","port":{"number":80}}}"#), "{text}");

    let job = br#"{"apiVersion":"batch/v2alpha1","kind":"CronJob","metadata":{"name":"old","namespace":"default"}}"#;
    put("cronjobs", "old", job.to_vec()).await;
    let jobs = fixture.registry.resource("batch", "v1", "cronjobs").unwrap();
    let error = jobs.get(&fixture.cx("default"), "old", "").await.unwrap_err();
    assert!(error.code == 500 && error.message.contains("CronJob is stored as batch/v2alpha1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn creation_refuses_in_upstreams_words() {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    maps.create(&fixture.cx("default"), config_map("taken", ""), &Hooks::none()).await.unwrap();
    let mut versioned = config_map("versioned", "");
    versioned.meta_mut().resource_version = "5".into();
    let mut nameless = config_map("", "");
    nameless.meta_mut().generate_name.clear();
    let cases: Vec<(&str, Box<dyn Object>, u16, &str)> = vec![
        ("taken", config_map("taken", ""), 409, "configmaps \"taken\" already exists"),
        ("version", versioned, 500, "resourceVersion should not be set on objects to be created"),
        ("no name", nameless, 422, "metadata.name: Required value: name or generateName is required"),
        ("bad name", config_map("A_b", ""), 422, "metadata.name: Invalid value: \"A_b\""),
    ];
    for (case, object, code, text) in cases {
        let error = maps.create(&fixture.cx("default"), object, &Hooks::none()).await.unwrap_err();
        assert_eq!(error.code, code, "{case}: {error}");
        assert!(error.message.contains(text), "{case}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_does_not_mind_a_version() {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    let mut versioned = config_map("versioned", "");
    versioned.meta_mut().resource_version = "5".into();
    let cx = crate::RequestCx { dry_run: true, ..fixture.cx("default") };
    let written = maps.create(&cx, versioned, &Hooks::none()).await.unwrap();
    assert_eq!(written.item.object().meta().resource_version, "5", "it is left as it came");
}

#[tokio::test(start_paused = true)]
async fn events_are_refused_as_of_the_core_group() {
    let fixture = Fixture::new().await;
    let events = fixture.registry.resource("events.k8s.io", "v1", "events").unwrap();
    let mut nameless = api_types::events_v1::Event::default();
    nameless.metadata.namespace = "default".into();
    let error = events.create(&fixture.cx("default"), Box::new(nameless), &Hooks::none()).await.unwrap_err();
    assert!(error.message.starts_with("Event \"\" is invalid: "), "{error}");
    assert_eq!(error.details.unwrap().group, "");
}

#[tokio::test(start_paused = true)]
async fn limit_ranges_need_no_name() {
    let fixture = Fixture::new().await;
    let mut nameless = api_types::core_v1::LimitRange::default();
    nameless.metadata.namespace = "default".into();
    let ranges = fixture.resource("limitranges");
    let written = ranges.create(&fixture.cx("default"), Box::new(nameless), &Hooks::none()).await.unwrap();
    assert_eq!(written.item.object().meta().name.len(), 36, "a name that no other has is made up");
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_until_one_is_free() {
    let fixture = Fixture::new().await;
    let maps = fixture.resource("configmaps");
    let mut wanted = config_map("", "");
    wanted.meta_mut().generate_name = "web-".into();
    let one = maps.create(&fixture.cx("default"), wanted.clone(), &Hooks::none()).await.unwrap();
    let two = maps.create(&fixture.cx("default"), wanted.clone(), &Hooks::none()).await.unwrap();
    assert_ne!(one.item.object().meta().name, two.item.object().meta().name);
    // A name given together with a prefix clashes like a generated one.
    wanted.meta_mut().name = one.item.object().meta().name.clone();
    let error = maps.create(&fixture.cx("default"), wanted, &Hooks::none()).await.unwrap_err();
    assert!(error.message.ends_with("was not able to generate a unique name for the object"), "{error}");
    assert_eq!(error.retry_after_seconds(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn updates_respect_versions_and_uids() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let first = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    let update =
        async |object: Box<dyn Object>| maps.update(&cx, "one", Endpoint::Main, &Replace(object), &Hooks::none()).await;
    let unconditional = update(config_map("one", "b")).await.unwrap();
    assert!(!unconditional.created && value(&unconditional.item) == "b");
    assert_eq!(unconditional.item.object().meta().uid, first.object().meta().uid, "the uid is filled in");

    let stale = update(first.object().clone_object()).await.unwrap_err();
    assert_eq!(stale.code, 409);
    assert!(stale.message.ends_with("please apply your changes to the latest version and try again"), "{stale}");
    let mut other = config_map("one", "c");
    other.meta_mut().uid = "other".into();
    let wrong = update(other).await.unwrap_err();
    assert!(wrong.code == 409 && wrong.message.contains("Precondition failed: UID in precondition: other"), "{wrong}");
    assert!(wrong.message.contains("Key: /registry/configmaps/default/one"), "{wrong}");
    let misnamed = update(config_map("two", "c")).await.unwrap_err();
    assert!(
        misnamed.code == 400 && misnamed.message.contains("does not match the name on the URL (one)"),
        "{misnamed}"
    );
    let missing = maps.update(&cx, "none", Endpoint::Main, &Replace(config_map("none", "")), &Hooks::none()).await;
    assert_eq!(missing.unwrap_err().code, 404);
    let mut unreadable = config_map("one", "c");
    unreadable.meta_mut().resource_version = "x".into();
    assert_eq!(update(unreadable).await.unwrap_err().code, 500);
}

#[tokio::test(start_paused = true)]
async fn clients_mark_nothing_as_deleted() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap();
    let mut marked = config_map("one", "b");
    marked.meta_mut().deletion_timestamp = Some(api_machinery::time::Time::from_unix_seconds(1));
    let refused = maps.update(&cx, "one", Endpoint::Main, &Replace(marked), &Hooks::none()).await.unwrap_err();
    let text = "metadata.deletionTimestamp: Invalid value: \"1970-01-01T00:00:01Z\": field is immutable";
    assert!(refused.code == 422 && refused.message.ends_with(text), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn writing_what_is_there_writes_nothing() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let first = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    for wait in [false, true] {
        if wait {
            // Now the cache has it, and the guess comes from there.
            maps.list(&cx, &ListOptions::default()).await.unwrap();
        }
        let same = Replace(config_map("one", "a"));
        let again = maps.update(&cx, "one", Endpoint::Main, &same, &Hooks::none()).await.unwrap();
        assert_eq!(again.item.revision(), first.revision());
    }
    assert_eq!(fixture.store.current_revision().await.unwrap(), first.revision());
}

#[tokio::test(start_paused = true)]
async fn kinds_that_allow_it_are_created_by_put() {
    let fixture = Fixture::new().await;
    let leases = fixture.registry.resource("coordination.k8s.io", "v1", "leases").unwrap();
    let mut lease = api_types::coordination_v1::Lease::default();
    lease.metadata.name = "leader".into();
    lease.metadata.namespace = "default".into();
    let put = Replace(Box::new(lease.clone()));
    let written = leases.update(&fixture.cx("default"), "leader", Endpoint::Main, &put, &Hooks::none()).await.unwrap();
    assert!(written.created && !written.item.object().meta().uid.is_empty());
    let blind =
        leases.update(&fixture.cx("default"), "leader", Endpoint::Main, &put, &Hooks::none()).await.unwrap_err();
    assert!(
        blind.message.starts_with(
            "leases.coordination.k8s.io \"leader\" is invalid: metadata.resourceVersion: Invalid value: 0"
        )
    );
    lease.metadata.resource_version = written.item.revision().to_string();
    let put = Replace(Box::new(lease));
    assert!(
        !leases.update(&fixture.cx("default"), "leader", Endpoint::Main, &put, &Hooks::none()).await.unwrap().created
    );
}

/// Counts its calls and lets someone else write during the first one.
struct Meddler<'a> {
    fixture: &'a Fixture,
    calls: AtomicUsize,
}

#[async_trait]
impl Admission for Meddler<'_> {
    async fn validate(
        &self,
        _operation: Operation,
        _object: Option<&dyn Object>,
        _old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            let maps = self.fixture.resource("configmaps");
            let change = Replace(config_map("one", "theirs"));
            maps.update(&self.fixture.cx("default"), "one", Endpoint::Main, &change, &Hooks::none()).await?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_race_runs_everything_again() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap();
    let meddler = Meddler { fixture: &fixture, calls: AtomicUsize::new(0) };
    let append = Patch(|live: &dyn Object| {
        let mut map = live.downcast_ref::<ConfigMap>().unwrap().clone();
        map.data.entry("key".into()).or_default().push_str("+mine");
        Ok(Box::new(map) as Box<dyn Object>)
    });
    let hooks = Hooks { admission: &meddler, track: None };
    let written = maps.update(&cx, "one", Endpoint::Main, &append, &hooks).await.unwrap();
    assert_eq!(value(&written.item), "theirs+mine");
    assert!(meddler.calls.load(Ordering::SeqCst) >= 2, "admission saw what was written");
}

#[tokio::test(start_paused = true)]
async fn a_pinned_version_is_not_retried() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let first = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    let meddler = Meddler { fixture: &fixture, calls: AtomicUsize::new(0) };
    let mut pinned = config_map("one", "mine");
    pinned.meta_mut().resource_version = first.revision().to_string();
    let hooks = Hooks { admission: &meddler, track: None };
    let error = maps.update(&cx, "one", Endpoint::Main, &Replace(pinned), &hooks).await.unwrap_err();
    assert_eq!(error.code, 409);
    assert_eq!(value(&maps.get(&cx, "one", "").await.unwrap()), "theirs");
}

#[tokio::test(start_paused = true)]
async fn of_many_writers_with_one_version_one_wins() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let first = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    let attempts = (0..20).map(|writer| {
        let mut object = config_map("one", &format!("writer {writer}"));
        object.meta_mut().resource_version = first.revision().to_string();
        let (maps, cx) = (Arc::clone(&maps), cx.clone());
        async move { maps.update(&cx, "one", Endpoint::Main, &Replace(object), &Hooks::none()).await }
    });
    let outcomes = futures_util::future::join_all(attempts).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).all(|error| error.code == 409));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_leaves_no_trace() {
    let fixture = Fixture::new().await;
    let (maps, cx, dry) = (fixture.resource("configmaps"), fixture.cx("default"), fixture.dry("default"));
    let created = maps.create(&dry, config_map("one", "a"), &Hooks::none()).await.unwrap();
    assert!(created.item.object().meta().resource_version.is_empty() && !created.item.object().meta().uid.is_empty());
    assert_eq!(maps.get(&cx, "one", "").await.unwrap_err().code, 404);
    // It is the store that minds a version, and a dry run does not get there.
    let versioned = || {
        let mut map = config_map("one", "a");
        map.meta_mut().resource_version = "1".into();
        map
    };
    maps.create(&dry, versioned(), &Hooks::none()).await.unwrap();
    assert_eq!(maps.create(&cx, versioned(), &Hooks::none()).await.unwrap_err().code, 500);
    let real = maps.create(&cx, config_map("one", "a"), &Hooks::none()).await.unwrap().item;
    assert_eq!(maps.create(&dry, config_map("one", "a"), &Hooks::none()).await.unwrap_err().code, 409);
    let change = Replace(config_map("one", "b"));
    let updated = maps.update(&dry, "one", Endpoint::Main, &change, &Hooks::none()).await.unwrap().item;
    assert_eq!((value(&updated).as_str(), updated.revision()), ("b", real.revision()));
    maps.delete(&dry, "one", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(maps.get(&cx, "one", "").await.unwrap().revision(), real.revision());
    assert_eq!(fixture.store.current_revision().await.unwrap(), real.revision());
}

#[tokio::test(start_paused = true)]
async fn field_times_alone_are_no_change() {
    let fixture = Fixture::new().await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    let stamp = |_: Option<&dyn Object>, new: &mut dyn Object| {
        new.meta_mut().managed_fields = vec![api_machinery::meta::ManagedFieldsEntry {
            manager: "tester".into(),
            operation: "Update".into(),
            time: Some(api_machinery::time::Time::from_unix_seconds(
                1_000_000 + i64::try_from(tokio::time::Instant::now().elapsed().as_secs()).unwrap(),
            )),
            ..Default::default()
        }];
        Ok(())
    };
    let hooks = Hooks { admission: &crate::AdmitAll, track: Some(&stamp) };
    let first = maps.create(&cx, config_map("one", "a"), &hooks).await.unwrap().item;
    let later = |_: Option<&dyn Object>, new: &mut dyn Object| {
        new.meta_mut().managed_fields = vec![api_machinery::meta::ManagedFieldsEntry {
            manager: "tester".into(),
            operation: "Update".into(),
            time: Some(api_machinery::time::Time::from_unix_seconds(2_000_000)),
            ..Default::default()
        }];
        Ok(())
    };
    let hooks = Hooks { admission: &crate::AdmitAll, track: Some(&later) };
    let again = maps.update(&cx, "one", Endpoint::Main, &Replace(config_map("one", "a")), &hooks).await.unwrap().item;
    assert_eq!(again.revision(), first.revision());
    let changed = maps.update(&cx, "one", Endpoint::Main, &Replace(config_map("one", "b")), &hooks).await.unwrap().item;
    let time = changed.object().meta().managed_fields[0].time.unwrap();
    assert_eq!(time.unix_seconds(), Some(2_000_000));
}

/// Not only `Patch`: any change may say that it never creates.
#[tokio::test(start_paused = true)]
async fn patches_never_create() {
    let fixture = Fixture::new().await;
    let leases = fixture.registry.resource("coordination.k8s.io", "v1", "leases").unwrap();
    let patch = Patch(|live: &dyn Object| Ok(live.clone_object()));
    assert_eq!(patch.creates(), crate::CreateWhenAbsent::Never);
    let error =
        leases.update(&fixture.cx("default"), "none", Endpoint::Main, &patch, &Hooks::none()).await.unwrap_err();
    assert_eq!(error.code, 404);
}

/// Jobs are checked as new ones between the two looks at their metadata.
#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_in_the_order_of_the_rules() {
    let fixture = Fixture::new().await;
    let jobs = fixture.registry.resource("batch", "v1", "jobs").unwrap();
    let text = r#"{"metadata":{"name":"j","namespace":"default"},"spec":{"template":{"spec":{"restartPolicy":"Never",
        "containers":[{"name":"c","image":"i"}]}}}}"#;
    let mut job = api_types::batch_v1::Job::default();
    api_machinery::json::decode(text.as_bytes(), &mut job).unwrap();
    jobs.rules().set_defaults(&mut job);
    jobs.create(&fixture.cx("default"), Box::new(job.clone()), &Hooks::none()).await.unwrap();
    job.metadata.labels.insert("a".into(), "-".into());
    job.spec.parallelism = Some(-1);
    let change = Replace(Box::new(job));
    let refused = jobs.update(&fixture.cx("default"), "j", Endpoint::Main, &change, &Hooks::none()).await.unwrap_err();
    let causes = refused.details.unwrap_or_default().causes;
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    let spec = ["spec.parallelism", "spec.selector"];
    assert_eq!(fields[..2], ["metadata.labels"; 2], "what every kind is told: {fields:?}");
    assert_eq!(fields[2], "metadata.labels", "{fields:?}");
    assert_eq!(fields[3..5], spec, "{fields:?}");
    let again = fields.iter().rposition(|field| *field == "metadata.labels").unwrap();
    assert!(again > 4 && fields[again + 1..again + 3] == spec, "{fields:?}");
}
