//! Informers under faults, on paused time, against the fake server.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::json::parse_value;
use api_types::core_v1::Pod;
use base::Rng;
use component_base::Gates;
use parking_lot::Mutex;

use super::*;
use crate::fake::FakeServer;
use crate::features::WATCH_LIST;
use crate::object_key::ObjectKey;
use crate::transport::{FaultLayer, Faults};

const PODS: &str = "v1/pods";

fn pod(name: &str, node: &str) -> api_machinery::value::Value {
    let text = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"ns"}},"spec":{{"nodeName":"{node}"}}}}"#
    );
    parse_value(&text).unwrap()
}

fn informers(server: &FakeServer) -> Informers {
    Informers::new(&server.client(), InformerOptions::default())
}

/// Writes down what a handler is told.
fn record(informer: &Informer<Pod>) -> Arc<Mutex<Vec<String>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    informer.subscribe(move |change| {
        let name = &change.object().metadata.name;
        lines.lock().push(match change {
            Change::Added { initial, .. } => format!("+{name}{}", if *initial { " initial" } else { "" }),
            Change::Updated { old, new } => format!("{name} {}>{}", old.spec.node_name, new.spec.node_name),
            Change::Deleted { stale, .. } => format!("-{name}{}", if *stale { " stale" } else { "" }),
        });
    });
    log
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn watches(server: &FakeServer) -> usize {
    server.requests().iter().filter(|line| line.contains("watch=true") && !line.contains("sendInitial")).count()
}

fn lists(server: &FakeServer) -> usize {
    server.requests().iter().filter(|line| line.starts_with("GET") && !line.contains("watch=true")).count()
}

#[tokio::test(start_paused = true)]
async fn a_process_may_have_the_fill_by_watch_off() {
    for on in [true, false] {
        let server = FakeServer::new();
        server.set_initial_events(true);
        server.put(PODS, pod("a", "n1"));
        let client = server.client();
        let cx = client.cx().clone().obeying(&Gates::default().with(WATCH_LIST, on));
        let client = Client::with_transport(server.transport(), client.config().clone(), cx).unwrap();
        let informers = Informers::new(&client, InformerOptions::default());
        let pods = informers.of::<Pod>();
        informers.start();
        informers.wait_synced().await;
        assert_eq!((pods.list().len(), lists(&server)), (1, usize::from(!on)), "{on}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_follows_the_server() {
    for stream in [false, true] {
        let server = FakeServer::new();
        server.set_initial_events(stream);
        server.put(PODS, pod("a", "n1"));
        let informers = informers(&server);
        let pods = informers.of::<Pod>();
        pods.add_index("node", |pod| vec![pod.spec.node_name.clone()]);
        let log = record(&pods);
        informers.start();
        informers.wait_synced().await;
        server.put(PODS, pod("b", "n1"));
        server.put(PODS, pod("a", "n2"));
        server.remove(PODS, "ns", "b");
        settle().await;
        assert_eq!(*log.lock(), ["+a initial", "+b", "a n1>n2", "-b"], "stream fill: {stream}");
        assert_eq!(pods.by_index("node", "n2").len(), 1);
        assert_eq!(pods.by_index("node", "n1").len(), 0);
        assert_eq!(lists(&server), usize::from(!stream));
        let late = record(&pods);
        assert_eq!(*late.lock(), ["+a initial"], "late handlers get what is there");
        assert!(Arc::ptr_eq(&pods.get(&ObjectKey::new("ns", "a")).unwrap(), &informers.of::<Pod>().list()[0]));
    }
}

#[tokio::test(start_paused = true)]
async fn who_keeps_objects_itself_lets_the_store_forget_them() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", "n1"));
    let options = InformerOptions { identities_only: true, ..InformerOptions::default() };
    let informers = Informers::new(&server.client(), options);
    let pods = informers.of::<Pod>();
    let (log, told) = (record(&pods), Arc::new(Mutex::new(None)));
    let newest = Arc::clone(&told);
    pods.subscribe(move |change| *newest.lock() = Some(Arc::clone(change.object())));
    informers.start();
    informers.wait_synced().await;
    let kept = || Arc::into_inner(told.lock().take().unwrap()).expect("nobody else holds it").spec.node_name;
    assert_eq!(kept(), "n1");
    server.put(PODS, pod("a", "n2"));
    settle().await;
    assert_eq!(kept(), "n2");
    // What went while nobody watched is still found out.
    server.put(PODS, pod("b", "n1"));
    server.remove(PODS, "ns", "a");
    server.compact();
    server.cut_watches();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lock()[..2], ["+a initial", "a >n2"], "the former state is an identity");
    let mut rest = log.lock()[2..].to_vec();
    rest.sort();
    assert!(rest == ["+b", "-a"] || rest == ["+b", "-a stale"], "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_resumes_without_a_list() {
    let server = FakeServer::new();
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    let log = record(&pods);
    informers.start();
    informers.wait_synced().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        server.cut_watches();
        server.put(PODS, pod(name, ""));
        settle().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(log.lock().len(), round + 1);
    }
    assert_eq!((lists(&server), watches(&server)), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_move_the_version_so_that_compaction_does_no_harm() {
    let server = FakeServer::new();
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    informers.start();
    informers.wait_synced().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.put("v1/secrets", pod("unrelated", ""));
    server.send_bookmarks();
    settle().await;
    assert_eq!(pods.resource_version(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_gone_is_listed_anew_and_deletions_are_told() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", ""));
    server.put(PODS, pod("b", ""));
    server.put(PODS, pod("d", ""));
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    let log = record(&pods);
    informers.start();
    informers.wait_synced().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    log.lock().clear();
    server.cut_watches();
    server.remove(PODS, "ns", "a");
    server.remove(PODS, "ns", "d");
    server.put(PODS, pod("d", ""));
    server.put(PODS, pod("c", ""));
    server.compact();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Unchanged objects are not told again; another object of the same name is not the old one changed.
    assert_eq!(*log.lock(), ["-a stale", "+c", "-d stale", "+d"]);
    server.put(PODS, pod("e", ""));
    settle().await;
    assert_eq!(log.lock().last().map(String::as_str), Some("+e"));
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_end() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", ""));
    server.fail_next("GET", &[500, 500, 403, 500]);
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    let start = tokio::time::Instant::now();
    informers.start();
    informers.wait_synced().await;
    assert_eq!(pods.len(), 1);
    // The first failure is that of the stream, which a list follows at once.
    assert!(start.elapsed() > Duration::from_millis(800), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn handlers_see_every_object_under_injected_faults() {
    for seed in 0..5 {
        let server = FakeServer::new();
        let faults = Faults {
            drop_request: 0.1,
            drop_response: 0.1,
            error: 0.1,
            statuses: vec![http::StatusCode::TOO_MANY_REQUESTS, http::StatusCode::INTERNAL_SERVER_ERROR],
            cut_watch: 0.2,
            delay: 0.5,
            delay_limit: Duration::from_secs(1),
            ..Faults::default()
        };
        let layer = Arc::new(FaultLayer::new(server.transport(), faults, Rng::seeded(seed)));
        let client = server.client_over(Arc::<FaultLayer>::clone(&layer));
        let informers = Informers::new(&client, InformerOptions::default());
        let pods = informers.of::<Pod>();
        informers.start();
        for index in 0..40 {
            server.put(PODS, pod(&format!("p{}", index % 13), &format!("n{index}")));
            if index % 5 == 0 {
                server.remove(PODS, "ns", &format!("p{}", index % 7));
            }
            if index % 11 == 0 {
                server.compact();
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        layer.set(Faults::default());
        tokio::time::sleep(Duration::from_secs(300)).await;
        let names = |list: Vec<(String, String)>| list;
        let held: Vec<_> =
            pods.list().iter().map(|pod| (pod.metadata.name.clone(), pod.metadata.resource_version.clone())).collect();
        let stored: Vec<_> = server
            .client()
            .all::<Pod>()
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .iter()
            .map(|pod| (pod.metadata.name.clone(), pod.metadata.resource_version.clone()))
            .collect();
        assert_eq!(names(held), stored, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn resync_tells_everything_again_to_those_who_asked() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", ""));
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    let (often, never) = (Arc::new(Mutex::new(0)), record(&pods));
    let count = Arc::clone(&often);
    pods.subscribe_with_resync(Duration::from_secs(10), move |change| *count.lock() += u32::from(change.is_resync()));
    informers.start();
    informers.wait_synced().await;
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!((*often.lock(), never.lock().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn scopes_and_metadata_have_stores_of_their_own() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", "n1"));
    server.put(PODS, pod("b", "n2"));
    let informers = informers(&server);
    let scoped = informers.scoped::<Pod>(&Scope::fields("spec.nodeName=n2"));
    let metadata = informers.metadata(&ResourceInfo::of::<Pod>());
    let free = informers.dynamic(&ResourceInfo::of::<Pod>());
    informers.start();
    informers.wait_synced().await;
    assert_eq!(scoped.keys(), [ObjectKey::new("ns", "b")]);
    assert_eq!((metadata.len(), free.len()), (2, 2));
    assert_eq!(free.list()[0].type_meta.kind, "Pod");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_does_not_stop_the_others() {
    let server = FakeServer::new();
    let informers = informers(&server);
    let pods = informers.of::<Pod>();
    pods.subscribe(|_| panic!("a bug in a handler"));
    let log = record(&pods);
    server.put(PODS, pod("a", ""));
    informers.start();
    informers.wait_synced().await;
    assert_eq!(log.lock().len(), 1);
}

/// A controller's handler holds the controller, which holds the informer.
#[tokio::test(start_paused = true)]
async fn what_handlers_hold_goes_when_the_informer_ends() {
    let server = FakeServer::new();
    let client = server.client();
    server.put(PODS, pod("a", ""));
    let informers = Informers::new(&client, InformerOptions::default());
    let pods = informers.of::<Pod>();
    let subscribe = || {
        let held = Arc::new((pods.clone(), Mutex::new(0)));
        let weak = Arc::downgrade(&held);
        pods.subscribe(move |_| *held.1.lock() += 1);
        weak
    };
    let early = subscribe();
    informers.start();
    informers.wait_synced().await;
    assert_eq!(early.upgrade().map(|held| *held.1.lock()), Some(1));
    client.tasks().shutdown(Duration::from_secs(1)).await;
    let late = subscribe();
    assert!(early.upgrade().is_none() && late.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_calls_everything_expired_is_not_flooded() {
    for stream in [false, true] {
        let server = FakeServer::new();
        server.set_initial_events(stream);
        server.fail_next("GET", &[410; 2000]);
        let informers = informers(&server);
        let pods = informers.of::<Pod>();
        informers.start();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let asked = server.requests().len();
        assert!((2..20).contains(&asked), "{asked} requests in a minute");
        assert!(!pods.has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn a_shared_informer_runs_while_somebody_has_a_share() {
    let server = FakeServer::new();
    server.put(PODS, pod("a", "n"));
    let informers = informers(&server);
    let info = Codec::typed::<Pod>().info;
    let told = |share: &Share<PartialObjectMetadata>| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        share.subscribe(move |change| lines.lock().push(change.object().metadata.name.clone()));
        log
    };
    let (first, second) = (informers.share_metadata(&info), informers.share_metadata(&info));
    let (of_first, of_second) = (told(&first), told(&second));
    informers.start();
    settle().await;
    drop(first);
    server.put(PODS, pod("b", "n"));
    settle().await;
    assert_eq!((of_first.lock().len(), second.informer().len()), (1, 2), "the other one still follows");
    assert_eq!(*of_second.lock(), ["a", "b"]);
    let former = second.informer().clone();
    drop(second);
    server.put(PODS, pod("c", "n"));
    settle().await;
    assert_eq!((former.len(), of_second.lock().len()), (2, 2), "nobody follows");
    let third = informers.share_metadata(&info);
    informers.start();
    settle().await;
    assert_eq!(third.informer().len(), 3, "who comes later finds all that is there");
}
