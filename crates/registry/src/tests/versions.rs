//! Versions that are served beside the one that is kept: what was converted is shared, and who is asked for it is asked
//! once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api_machinery::status::ApiError;
use api_types::coordination_v1beta1::LeaseCandidate;
use api_types::events_v1;
use async_trait::async_trait;

use super::*;
use crate::context::{Hooks, RulesRef};
use crate::{Conversion, ConvertElsewhere, Event, Setup};

fn event(name: &str) -> Box<dyn Object> {
    let mut event = api_types::core_v1::Event::default();
    (event.metadata.name, event.metadata.namespace) = (name.into(), "default".into());
    event.involved_object.namespace = "default".into();
    event.involved_object.kind = "Pod".into();
    (event.reason, event.type_) = ("Greeting".into(), "Normal".into());
    Box::new(event)
}

/// Served beside ConfigMaps by somebody else, who shouts and counts how often it is asked about how many.
#[derive(Default)]
struct Shouting {
    questions: AtomicUsize,
    objects: AtomicUsize,
    /// The questions that wait for their answers now, and the most of them that there were.
    waiting: AtomicUsize,
    most_waiting: AtomicUsize,
    fails: bool,
    /// Whether questions about the object `stuck` get no answer.
    hangs: AtomicBool,
}

#[async_trait]
impl ConvertElsewhere for Shouting {
    async fn to_served(&self, stored: &[Arc<Stored>]) -> Result<Vec<Box<dyn Object>>, ApiError> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.objects.fetch_add(stored.len(), Ordering::Relaxed);
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_waiting.fetch_max(waiting, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) && stored.iter().any(|item| item.object().meta().name == "stuck") {
            return std::future::pending().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if self.fails {
            return Err(ApiError::internal("nobody answers"));
        }
        Ok(stored.iter().map(|item| config_map(&item.object().meta().name, &value(item).to_uppercase())).collect())
    }

    async fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        Ok(served.clone_object())
    }
}

/// ConfigMaps, and the same as somebody else shows them.
async fn shown_by(converter: Shouting) -> (Fixture, Arc<Resource>, Arc<Resource>, Arc<Shouting>) {
    let fixture = Fixture::new().await;
    let (maps, converter) = (fixture.resource("configmaps"), Arc::new(converter));
    let rules = RulesRef::Static(kinds::find("", "v1", "configmaps").unwrap());
    let conversion = Some(Conversion::elsewhere(Arc::clone(&converter) as Arc<dyn ConvertElsewhere>));
    let setup = Setup { conversion, shared_with: Some(Arc::clone(&maps)), ..Setup::default() };
    let shouted = fixture.registry.make(rules, setup);
    (fixture, maps, shouted, converter)
}

async fn next(watch: &mut crate::Watch) -> crate::ChangeEvent {
    match watch.next().await {
        Some(Event::Change(change)) => change,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_converted_object_and_its_frames_are_made_once() {
    let fixture = Fixture::with(|options| options.uncached.clear()).await;
    let (core, cx) = (fixture.resource("events"), fixture.cx("default"));
    let served = fixture.registry.resource("events.k8s.io", "v1", "events").unwrap();
    let mut watches = Vec::new();
    for _ in 0..2 {
        watches.push(served.watch(&cx, &ListOptions::default(), None).await.unwrap());
    }
    let mut of_core = core.watch(&cx, &ListOptions::default(), None).await.unwrap();
    core.create(&cx, event("e"), &Hooks::none()).await.unwrap();
    let [one, other] = [
        served.list(&cx, &ListOptions::default()).await.unwrap(),
        served.list(&cx, &ListOptions::default()).await.unwrap(),
    ];
    assert!(Arc::ptr_eq(&one.items[0], &other.items[0]));
    assert!(one.items[0].object().downcast_ref::<events_v1::Event>().is_some());
    assert_eq!(one.items[0].json_item().as_ptr(), served.get(&cx, "e", "0").await.unwrap().json_item().as_ptr());
    assert!(Arc::ptr_eq(&served.at_hand("default").unwrap()[0], &one.items[0]));
    let [first, second] = watches.as_mut_slice() else { panic!("two") };
    let (first, second) = (next(first).await, next(second).await);
    assert_eq!(first.json_frame().as_ptr(), second.json_frame().as_ptr());
    let all = served.all_at_hand().unwrap();
    assert!(Arc::ptr_eq(&all, &served.all_at_hand().unwrap()), "nothing has changed");
    core.create(&cx, event("f"), &Hooks::none()).await.unwrap();
    served.list(&cx, &ListOptions::default()).await.unwrap();
    let more = served.all_at_hand().unwrap();
    assert_eq!((all.len(), more.len(), served.has_any_at_hand()), (1, 2, Some(true)));
    assert!(Arc::ptr_eq(&all[0], &more[0]), "what did not change is the same");
    assert_eq!(first.protobuf_frame().as_ptr(), second.protobuf_frame().as_ptr());
    let text = |change: &crate::ChangeEvent| String::from_utf8(change.json_frame().to_vec()).unwrap();
    assert!(text(&first).contains("\"apiVersion\":\"events.k8s.io/v1\""));
    assert!(text(&next(&mut of_core).await).contains("\"apiVersion\":\"v1\""));
}

#[tokio::test(start_paused = true)]
async fn a_converted_watch_has_events_at_hand() {
    let fixture = Fixture::with(|options| options.uncached.clear()).await;
    let (core, cx) = (fixture.resource("events"), fixture.cx("default"));
    let served = fixture.registry.resource("events.k8s.io", "v1", "events").unwrap();
    let mut watch = served.watch(&cx, &ListOptions::default(), None).await.unwrap();
    for name in ["a", "b"] {
        core.create(&cx, event(name), &Hooks::none()).await.unwrap();
    }
    core.list(&cx, &ListOptions::default()).await.unwrap();
    assert_eq!(next(&mut watch).await.item.object().meta().name, "a");
    let Some(Event::Change(change)) = watch.try_next() else { panic!("the second is there") };
    assert!(change.item.object().downcast_ref::<events_v1::Event>().is_some());
}

#[tokio::test(start_paused = true)]
async fn somebody_else_is_asked_once_for_all_readers() {
    let (fixture, maps, shouted, converter) = shown_by(Shouting::default()).await;
    let cx = fixture.cx("default");
    for number in 0..20 {
        maps.create(&cx, config_map(&format!("m{number:02}"), "quiet"), &Hooks::none()).await.unwrap();
    }
    let list = || async { shouted.list(&cx, &ListOptions::default()).await.unwrap() };
    let (one, two, three) = tokio::join!(list(), list(), list());
    for list in [one, two, three] {
        assert!(list.items.iter().all(|item| value(item) == "QUIET") && list.items.len() == 20);
    }
    let asked = || (converter.questions.load(Ordering::Relaxed), converter.objects.load(Ordering::Relaxed));
    assert_eq!(asked(), (1, 20));
    let initial = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
    let mut watches = Vec::new();
    for _ in 0..2 {
        let mut watch = shouted.watch(&cx, &initial, None).await.unwrap();
        for _ in 0..20 {
            assert_eq!(value(&next(&mut watch).await.item), "QUIET");
        }
        watches.push(watch);
    }
    assert_eq!(asked(), (1, 20), "what the lists brought back serves the watches");
    for number in 20..40 {
        maps.create(&cx, config_map(&format!("m{number}"), "loud"), &Hooks::none()).await.unwrap();
    }
    maps.list(&cx, &ListOptions::default()).await.unwrap();
    for watch in &mut watches {
        for number in 20..40 {
            let item = next(watch).await.item;
            assert_eq!((value(&item).as_str(), item.object().meta().name.clone()), ("LOUD", format!("m{number}")));
        }
    }
    assert_eq!(asked(), (2, 40), "a batch of events is one question, for both watches");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_holds_up_only_who_needs_it() {
    let hanging = Shouting { hangs: true.into(), ..Shouting::default() };
    let (fixture, maps, shouted, converter) = shown_by(hanging).await;
    let cx = fixture.cx("default");
    let mut seen = String::new();
    for name in ["a", "stuck", "z"] {
        let made = maps.create(&cx, config_map(name, "x"), &Hooks::none()).await.unwrap();
        seen.clone_from(&made.item.object().meta().resource_version);
    }
    let since = ListOptions { resource_version: seen, ..ListOptions::default() };
    let mut watch = shouted.watch(&cx, &since, None).await.unwrap();
    let (list_options, patience) = (ListOptions::default(), Duration::from_secs(20));
    let all = || tokio::time::timeout(patience, shouted.list(&cx, &list_options));
    let get = |name: &'static str| tokio::time::timeout(patience, shouted.get(&cx, name, ""));
    let others = async {
        // The list asked about all of them before.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (a, z, stuck, again) = tokio::join!(get("a"), get("z"), get("stuck"), get("stuck"));
        assert_eq!((value(&a.unwrap().unwrap()), value(&z.unwrap().unwrap())), ("X".into(), "X".into()));
        assert!(stuck.is_err() && again.is_err());
    };
    let (list, ()) = tokio::join!(all(), others);
    assert!(list.is_err(), "it needs all");
    assert_eq!(converter.questions.load(Ordering::Relaxed), 4, "those who want the same share a question");
    maps.create(&cx, config_map("later", "x"), &Hooks::none()).await.unwrap();
    assert_eq!(next(&mut watch).await.item.object().meta().name, "later");

    // Who waited for a question that was given up asks himself.
    let impatient = tokio::time::timeout(Duration::from_secs(1), shouted.get(&cx, "stuck", ""));
    let patient = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let found = get("stuck");
        converter.hangs.store(false, Ordering::Relaxed);
        found.await.unwrap().unwrap()
    };
    let (gave_up, found) = tokio::join!(impatient, patient);
    assert!(gave_up.is_err() && value(&found) == "X");
}

#[tokio::test(start_paused = true)]
async fn many_questions_are_asked_side_by_side_but_not_any_number() {
    let (fixture, maps, shouted, converter) = shown_by(Shouting::default()).await;
    let cx = fixture.cx("default");
    let names: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    for name in &names {
        maps.create(&cx, config_map(name, "x"), &Hooks::none()).await.unwrap();
    }
    let began = tokio::time::Instant::now();
    let read = futures_util::future::join_all(names.iter().map(|name| shouted.get(&cx, name, ""))).await;
    assert!(read.iter().all(|item| value(item.as_ref().unwrap()) == "X"));
    assert_eq!(converter.most_waiting.load(Ordering::Relaxed), 32);
    assert!(began.elapsed() < Duration::from_millis(4 * 50 + 40), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_known_waits_for_the_one_before_it() {
    let (fixture, maps, shouted, converter) = shown_by(Shouting::default()).await;
    let cx = fixture.cx("default");
    let mut watch = shouted.watch(&cx, &ListOptions::default(), None).await.unwrap();
    for name in ["first", "second"] {
        maps.create(&cx, config_map(name, "x"), &Hooks::none()).await.unwrap();
    }
    shouted.get(&cx, "second", "").await.unwrap();
    assert_eq!(converter.objects.load(Ordering::Relaxed), 1);
    assert!(watch.try_next().is_none(), "the first is not known yet");
    for name in ["first", "second"] {
        assert_eq!(next(&mut watch).await.item.object().meta().name, name);
    }
}

#[tokio::test(start_paused = true)]
async fn an_impatient_reader_of_a_watch_loses_nothing() {
    let (fixture, maps, shouted, _) = shown_by(Shouting::default()).await;
    let cx = fixture.cx("default");
    let mut watch = shouted.watch(&cx, &ListOptions::default(), None).await.unwrap();
    for name in ["a", "b", "c"] {
        maps.create(&cx, config_map(name, "x"), &Hooks::none()).await.unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let patience = Duration::from_millis(20 + 10 * seen.len() as u64);
        if let Ok(event) = tokio::time::timeout(patience, watch.next()).await {
            let Some(Event::Change(change)) = event else { panic!("a change") };
            seen.push(change.item.object().meta().name.clone());
        } else if watch.try_next().is_none() {
            // Whoever has no time at all never gets anything: give it a chance, as a client that waits has.
            seen.push(next(&mut watch).await.item.object().meta().name.clone());
        }
    }
    assert_eq!(seen, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_shown_fails_lists_and_ends_watches() {
    let (fixture, maps, shouted, _) = shown_by(Shouting { fails: true, ..Shouting::default() }).await;
    let cx = fixture.cx("default");
    let mut watch = shouted.watch(&cx, &ListOptions::default(), None).await.unwrap();
    maps.create(&cx, config_map("a", "x"), &Hooks::none()).await.unwrap();
    assert_eq!(shouted.list(&cx, &ListOptions::default()).await.unwrap_err().code, 500);
    assert!(shouted.at_hand("default").is_none());
    assert!(matches!(watch.next().await, Some(Event::Error(_))));
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn versions_of_the_same_form_share_their_bytes() {
    let fixture = Fixture::new().await;
    let cx = fixture.cx("default");
    let [kept, older] = ["v1beta1", "v1alpha2"]
        .map(|version| fixture.registry.resource("coordination.k8s.io", version, "leasecandidates").unwrap());
    let mut candidate = older.rules().new_object();
    (candidate.meta_mut().name, candidate.meta_mut().namespace) = ("c".into(), "default".into());
    let spec = &mut candidate.downcast_mut::<LeaseCandidate>().unwrap().spec;
    spec.lease_name = "l".into();
    (spec.binary_version, spec.strategy) = ("1.36.0".into(), "example.com/own".into());
    let written = older.create(&cx, candidate, &Hooks::none()).await.unwrap();
    assert_eq!(written.item.object().api_version(), "coordination.k8s.io/v1alpha2");
    let list = async |resource: &Resource| resource.list(&cx, &ListOptions::default()).await.unwrap().items[0].clone();
    let (of_kept, of_older) = (list(&kept).await, list(&older).await);
    assert_eq!(of_kept.object().api_version(), "coordination.k8s.io/v1beta1");
    assert_eq!(of_kept.json_item().as_ptr(), of_older.json_item().as_ptr());
    assert_eq!(of_kept.protobuf_item().as_ptr(), of_older.protobuf_item().as_ptr());
    assert!(
        of_older.json().starts_with(b"{\"kind\":\"LeaseCandidate\",\"apiVersion\":\"coordination.k8s.io/v1alpha2\"")
    );
    let update = |object: &dyn Object| {
        let mut object = object.clone_object();
        object.meta_mut().labels.insert("a".into(), "b".into());
        Ok(object)
    };
    let change = crate::context::Patch(update);
    let changed = older.update(&cx, "c", kinds::rules::Endpoint::Main, &change, &Hooks::none()).await.unwrap();
    assert_eq!(changed.item.object().meta().labels["a"], "b");
    assert!(of_kept.object().meta().labels.is_empty(), "what others hold stays as it was");
}
