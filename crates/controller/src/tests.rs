//! The framework with small controllers, against the fake server on paused time.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::json::parse_value;
use api_machinery::meta::ObjectMeta;
use api_machinery::value::Value;
use api_types::core_v1::{ConfigMap, Secret};
use base::{CancellationToken, TaskGroup};
use client::fake::FakeServer;
use client::{Informer, ObjectKey};
use component_base::{Feature, Gates};
use parking_lot::Mutex;

use super::*;

const MAPS: &str = "v1/configmaps";
const SECRETS: &str = "v1/secrets";

/// What the controllers of a test share, by way of the settings.
#[derive(Default)]
struct Notes {
    calls: Mutex<Vec<String>>,
    ticks: Mutex<u32>,
}

/// Makes a secret for every config map. Maps with telling names make it fail.
struct Mirror {
    maps: Informer<ConfigMap>,
    secrets: Informer<Secret>,
    notes: Arc<Notes>,
}

#[async_trait::async_trait]
impl Controller for Mirror {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        self.notes.calls.lock().push(key.name.clone());
        let Some(map) = self.maps.get(key) else { return Ok(Next::Done) };
        match key.name.as_str() {
            "panics" => panic!("a bug in a controller"),
            "fails" => return Err(ReconcileError::failed("not yet")),
            "refused" => {
                return Err(ReconcileError::failed("it is forbidden: exceeded quota: q, requested: secrets=1"));
            }
            "hopeless" => return Err(ReconcileError::permanent("never")),
            "slow" => tokio::time::sleep(Duration::from_secs(5)).await,
            "later" => return Ok(Next::After(Duration::from_secs(60))),
            _ => {}
        }
        if self.secrets.get(key).is_none() {
            let secret = Secret {
                metadata: ObjectMeta {
                    name: key.name.clone(),
                    namespace: key.namespace.clone(),
                    owner_references: vec![controller_ref::<ConfigMap>(&map.metadata)],
                    ..ObjectMeta::default()
                },
                ..Secret::default()
            };
            cx.client.namespaced::<Secret>(&key.namespace).create(&secret).await?;
        }
        Ok(Next::Done)
    }
}

fn build_mirror(build: &mut Build<'_>) -> Result<(), BuildError> {
    let notes = Arc::clone(build.settings::<Arc<Notes>>()?);
    let queue = build.queue("mirror");
    let maps = build.watch::<ConfigMap>().enqueue_self(&queue).informer();
    let secrets = build.watch::<Secret>().enqueue_owner::<ConfigMap>(&queue).informer();
    build.run(&queue, 2, Arc::new(Mirror { maps, secrets, notes })).drop_after(3);
    Ok(())
}

struct Ticker(Arc<Notes>);

#[async_trait::async_trait]
impl Controller for Ticker {
    async fn reconcile(&self, _cx: &Cx, _key: &ObjectKey) -> Result<Next, ReconcileError> {
        *self.0.ticks.lock() += 1;
        Err(ReconcileError::failed("a failure keeps the schedule"))
    }

    fn health(&self) -> Result<(), String> {
        Err("ticker is never well".to_owned())
    }
}

fn build_ticker(build: &mut Build<'_>) -> Result<(), BuildError> {
    let notes = Arc::clone(build.settings::<Arc<Notes>>()?);
    build.every("ticks", Duration::from_secs(20), Arc::new(Ticker(notes)));
    Ok(())
}

const MIRROR: Descriptor = Descriptor {
    name: "mirror-controller",
    aliases: &["mirror"],
    gates: &[],
    identity: "mirror",
    event_component: "mirror",
    disabled_by_default: false,
    build: build_mirror,
};
const TICKER: Descriptor = Descriptor {
    name: "ticker-controller",
    aliases: &[],
    gates: &[TICKING],
    identity: "ticker",
    event_component: "",
    disabled_by_default: false,
    build: build_ticker,
};
const ASLEEP: Descriptor = Descriptor {
    name: "asleep-controller",
    aliases: &["asleep"],
    disabled_by_default: true,
    build: |_| Err(BuildError::Skipped("nothing to do".to_owned())),
    ..MIRROR
};
const ALL: &[Descriptor] = &[MIRROR, TICKER, ASLEEP];
/// Any gate that is on.
const TICKING: Feature = Feature::named("WatchList");

fn map(name: &str) -> Value {
    let text = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"ns"}}}}"#);
    parse_value(&text).unwrap()
}

/// A running set of all controllers.
struct Running {
    server: FakeServer,
    notes: Arc<Notes>,
    set: Arc<ControllerSet>,
    stop: CancellationToken,
    end: Arc<Mutex<Option<Stopped>>>,
    group: TaskGroup,
}

fn run(list: &[&str]) -> Running {
    let server = FakeServer::new();
    let notes = Arc::new(Notes::default());
    let list: Vec<String> = list.iter().map(|&name| name.to_owned()).collect();
    let set = ControllerSet::new(ALL, &Selection::parse(&list, ALL).unwrap(), &Gates::default());
    let mut env = Environment::new(&server.client());
    env.settings = Arc::new(Arc::clone(&notes));
    env.follows_quotas = true;
    let (stop, end) = (CancellationToken::new(), Arc::new(Mutex::new(None)));
    let group = TaskGroup::new("test");
    let (running, token, slot) = (Arc::clone(&set), stop.clone(), Arc::clone(&end));
    group.spawn_cancellable("set", async move {
        let outcome = running.run(&env, token).await.unwrap();
        *slot.lock() = Some(outcome);
    });
    Running { server, notes, set, stop, end, group }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

impl Running {
    fn calls(&self, name: &str) -> usize {
        self.notes.calls.lock().iter().filter(|call| *call == name).count()
    }

    fn secrets(&self) -> usize {
        self.server.objects(SECRETS).len()
    }
}

#[tokio::test(start_paused = true)]
async fn changes_become_keys_and_keys_become_order() {
    let running = run(&["*"]);
    running.server.put(MAPS, map("a"));
    seconds(1).await;
    assert_eq!(running.secrets(), 1);
    running.server.put(MAPS, map("b"));
    running.server.remove(SECRETS, "ns", "a");
    seconds(1).await;
    assert_eq!(running.secrets(), 2, "a dependent that vanished is made anew");
    assert_eq!(*running.notes.ticks.lock(), 1);
    seconds(60).await;
    assert_eq!(*running.notes.ticks.lock(), 4, "every 20 s whatever the outcome");
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_as_they_ask_and_panics_are_failures() {
    let running = run(&["mirror"]);
    for name in ["panics", "fails", "hopeless", "later", "fine"] {
        running.server.put(MAPS, map(name));
    }
    seconds(30).await;
    assert_eq!(running.secrets(), 1);
    assert_eq!((running.calls("panics"), running.calls("fails")), (4, 4), "dropped after three failures");
    assert_eq!((running.calls("hopeless"), running.calls("later")), (1, 1));
    seconds(45).await;
    assert_eq!(running.calls("later"), 2);
    assert_eq!(*running.notes.ticks.lock(), 0, "not selected");
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_refused_is_tried_again_once_it_has_room() {
    let running = run(&["mirror"]);
    let quota = |used: u8| {
        let text = format!(
            r#"{{"kind":"ResourceQuota","apiVersion":"v1","metadata":{{"name":"q","namespace":"ns"}},
                "status":{{"hard":{{"secrets":"3"}},"used":{{"secrets":"{used}"}}}}}}"#
        );
        running.server.put("v1/resourcequotas", parse_value(&text).unwrap());
    };
    quota(3);
    running.server.put(MAPS, map("refused"));
    running.server.put(MAPS, map("fails"));
    seconds(3600).await;
    let calls = || (running.calls("refused"), running.calls("fails"));
    assert_eq!(calls(), (4, 4), "dropped after three failures");
    quota(2);
    seconds(1).await;
    assert!(calls().0 > 4 && calls().1 == 4, "{:?}", calls());
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_work_in_hand_finish() {
    let running = run(&["*"]);
    running.server.put(MAPS, map("slow"));
    seconds(1).await;
    running.stop.cancel();
    seconds(3).await;
    assert_eq!(*running.end.lock(), None);
    seconds(3).await;
    assert_eq!(*running.end.lock(), Some(Stopped::Cleanly));
    assert_eq!(running.secrets(), 1);
}

#[tokio::test(start_paused = true)]
async fn losing_the_leadership_ends_work_at_once() {
    let running = run(&["*"]);
    running.server.put(MAPS, map("slow"));
    seconds(1).await;
    running.group.cancel();
    seconds(30).await;
    assert_eq!((running.secrets(), running.calls("slow")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn health_is_asked_of_each_controller() {
    let running = run(&["*"]);
    seconds(1).await;
    assert_eq!(running.set.names(), ["mirror-controller", "ticker-controller"]);
    let health = |name: &str| running.set.health(name);
    assert_eq!(health("mirror-controller"), Ok(()));
    assert_eq!(health("ticker-controller"), Err("ticker is never well".to_owned()));
    assert_eq!(running.set.checks().len(), 2);
}

#[test]
fn the_flag_selects() {
    let open = Gates::default();
    let shut = open.with(TICKING, false);
    let cases: [(&[&str], &Gates, &[&str]); 7] = [
        (&["*"], &open, &["mirror-controller", "ticker-controller"]),
        (&["*"], &shut, &["mirror-controller"]),
        (&["mirror"], &open, &["mirror-controller"]),
        (&["*", "-mirror"], &open, &["ticker-controller"]),
        (&["*", "asleep"], &open, &["mirror-controller", "ticker-controller", "asleep-controller"]),
        (&["-mirror", "mirror", "*"], &open, &["ticker-controller"]),
        (&[], &open, &[]),
    ];
    for (list, gates, expected) in cases {
        let list: Vec<String> = list.iter().map(|&name| name.to_owned()).collect();
        let enabled = Selection::parse(&list, ALL).unwrap();
        let names: Vec<_> = enabled.enabled(ALL, gates).iter().map(|descriptor| descriptor.name).collect();
        assert_eq!(names, expected, "{list:?}");
    }
    let unknown = Selection::parse(&["nope".to_owned()], ALL).unwrap_err();
    assert_eq!(unknown.to_string(), "\"nope\" is not in the list of known controllers");
}

#[test]
fn several_errors_are_told_as_one_list_and_each_once() {
    let failed = |text: &str| ReconcileError::failed(text);
    let joined = |errors: Vec<ReconcileError>| ReconcileError::join(errors).map_err(|error| error.to_string());
    let nested = joined(vec![failed("a"), ReconcileError::Several(vec![failed("b"), failed("a"), failed("c")])]);
    for (errors, expected) in [
        (joined(vec![]), Ok(())),
        (joined(vec![failed("a")]), Err("a")),
        (joined(vec![failed("a"), failed("b")]), Err("[a, b]")),
        (joined(vec![failed("a"), failed("a")]), Err("a")),
        (nested, Err("[a, b, c]")),
    ] {
        assert_eq!(errors, expected.map_err(str::to_owned));
    }
}
