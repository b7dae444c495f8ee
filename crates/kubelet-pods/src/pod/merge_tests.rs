//! What deliveries change, and that events and whole sets come to the same.

use std::cell::Cell;

use base::{Rng, SharedRng};
use client::Change;

use super::super::mailbox::Mailbox;
use super::*;

thread_local! {
    /// Pods compared with what was known of them, on this thread.
    pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
}

fn pod(uid: &str, name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid = uid.into();
    pod.metadata.name = name.into();
    pod
}

fn set(source: Source, pods: &[Pod], whole: bool) -> Delivery {
    let pods = pods.iter().cloned().map(Arc::new).collect();
    Delivery::All(SourceSet { source, pods, whole, written: BTreeMap::new() })
}

fn is(pod: &Pod) -> PodEvent {
    PodEvent::Is(Arc::new(pod.clone()))
}

fn told(ops: &[Op]) -> Vec<String> {
    let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>().join(",");
    let text = |op: &Op| match op {
        Op::Remove(pods) => format!("remove {}", names(pods)),
        Op::Add(pods) => format!("add {}", names(pods)),
        Op::Update(pods) => format!("update {}", names(pods)),
        Op::Delete(pods) => format!("delete {}", names(pods)),
        Op::Reconcile(pods) => format!("reconcile {}", names(pods)),
    };
    ops.iter().map(text).collect()
}

fn apply(merger: &mut Merger, delivery: Delivery) -> Vec<String> {
    told(&merger.apply(delivery, Time::from_unix_seconds(1)).ops)
}

#[test]
fn changes_are_told_apart() {
    let mut merger = Merger::default();
    let mut all = |pods: &[Pod]| apply(&mut merger, set(Source::Api, pods, true));
    assert_eq!(all(&[]), ["add "], "the first set is told of even when it is empty");
    let mut one = pod("1", "a");
    assert_eq!(all(&[one.clone(), pod("2", "b")]), ["add a,b"]);
    assert_eq!(all(&[one.clone(), pod("2", "b")]), Vec::<String>::new());
    one.status.phase = "Running".into();
    assert_eq!(all(&[one.clone(), pod("2", "b")]), ["reconcile a"]);
    one.metadata.labels.insert("k".into(), "v".into());
    assert_eq!(all(&[one.clone()]), ["remove b", "update a"]);
    one.metadata.deletion_timestamp = Some(Time::from_unix_seconds(5));
    assert_eq!(all(&[one.clone(), pod("3", "c")]), ["add c", "delete a"]);
}

#[test]
fn events_are_told_apart() {
    let running = |mut pod: Pod| {
        pod.status.phase = "Running".into();
        pod
    };
    let going = |mut pod: Pod| {
        pod.metadata.deletion_timestamp = Some(Time::from_unix_seconds(5));
        pod
    };
    let (one, gone) = (|| pod("1", "a"), || PodEvent::Gone("1".into()));
    let cases: [(&str, Vec<PodEvent>, &[&str]); 9] = [
        ("nothing", vec![], &[]),
        ("as it was", vec![is(&one())], &[]),
        ("its status", vec![is(&running(one()))], &["reconcile a"]),
        ("it shall go", vec![is(&going(one()))], &["delete a"]),
        ("it went", vec![gone()], &["remove a"]),
        ("it went, told twice", vec![gone(), gone()], &["remove a"]),
        ("one that nobody knows went", vec![PodEvent::Gone("9".into())], &[]),
        ("another of its name came", vec![gone(), is(&running(pod("9", "a")))], &["remove a", "add a"]),
        ("a new one that shall go", vec![is(&going(pod("9", "c")))], &["add c"]),
    ];
    for (name, events, expected) in cases {
        let mut merger = Merger::default();
        apply(&mut merger, set(Source::Api, &[one(), pod("2", "b")], true));
        assert_eq!(apply(&mut merger, Delivery::Changes(events)), expected, "{name}");
        assert!(merger.known[&Source::Api].contains_key("2"), "{name}: the other stays");
    }
}

#[test]
fn a_source_is_seen_once_it_has_told_all() {
    let mut merger = Merger::default();
    for (whole, seen) in [(false, 0), (true, 1), (false, 1)] {
        merger.apply(set(Source::File, &[pod("1", "a")], whole), Time::from_unix_seconds(1));
        assert_eq!(merger.seen().count(), seen);
    }
    merger.apply(Delivery::Changes(vec![is(&pod("2", "b"))]), Time::from_unix_seconds(1));
    assert_eq!(merger.seen().collect::<Vec<_>>(), [Source::File], "changes are not all");
}

#[test]
fn names_are_unique_within_a_set() {
    let mut merger = Merger::default();
    let set = set(Source::File, &[pod("1", "a"), pod("2", "a")], true);
    let changes = merger.apply(set, Time::from_unix_seconds(1));
    assert_eq!(changes.duplicates.len(), 1);
    let Some(Op::Add(added)) = changes.ops.first() else { panic!("{:?}", changes.ops) };
    assert_eq!(added[0].metadata.annotations[CONFIG_SOURCE], "file");
    assert!(super::super::is_static(&added[0]));
}

#[test]
fn the_first_sighting_stays_on_a_pod() {
    let mut merger = Merger::default();
    merger.apply(set(Source::Api, &[pod("1", "a")], true), Time::from_unix_seconds(1));
    let mut changed = pod("1", "a");
    changed.metadata.annotations.insert("own".into(), "1".into());
    changed.metadata.annotations.insert(CONFIG_SEEN.into(), "never".into());
    changed.metadata.resource_version = "7".into();
    merger.apply(Delivery::Changes(vec![is(&changed)]), Time::from_unix_seconds(9));
    let meta = &merger.known[&Source::Api]["1"].metadata;
    assert_eq!(meta.annotations[CONFIG_SEEN], Time::from_unix_seconds(1).to_string());
    assert_eq!((meta.annotations["own"].as_str(), meta.annotations[CONFIG_SOURCE].as_str()), ("1", "api"));
    assert_eq!(meta.resource_version, "7");
}

#[test]
fn one_event_among_many_pods_touches_one() {
    let pods: Vec<Pod> = (0..500).map(|index| pod(&format!("u{index}"), &format!("p{index}"))).collect();
    let mut merger = Merger::default();
    merger.apply(set(Source::Api, &pods, true), Time::from_unix_seconds(1));
    let before = merger.known[&Source::Api].clone();
    let mut changed = pods[250].clone();
    changed.status.phase = "Running".into();
    COMPARED.set(0);
    assert_eq!(apply(&mut merger, Delivery::Changes(vec![is(&changed)])), ["reconcile p250"]);
    assert_eq!(COMPARED.get(), 1, "compared");
    let after = &merger.known[&Source::Api];
    let copied = before.iter().filter(|(uid, pod)| !Arc::ptr_eq(pod, &after[*uid])).count();
    assert_eq!(copied, 1, "copied");
}

/// Pods as an API server and an informer have them, by name.
#[derive(Default)]
struct World {
    pods: BTreeMap<String, Arc<Pod>>,
    version: u64,
}

impl World {
    /// Does one thing to one pod, and says what an informer would tell of it.
    fn step(&mut self, rng: &SharedRng) -> Vec<Change<Pod>> {
        self.version += 1;
        let name = format!("p{}", rng.below(6));
        let Some(old) = self.pods.get(&name).cloned() else {
            return vec![self.come(&name)];
        };
        let mut new = Pod::clone(&old);
        new.metadata.resource_version = self.version.to_string();
        match rng.below(8) {
            0 => return vec![self.go(&name, &old)],
            // While nobody watched, another one of its name came.
            1 => return vec![self.go(&name, &old), self.come(&name)],
            2 => new.metadata.deletion_timestamp = Some(Time::from_unix_seconds(5)),
            3 => new.spec.active_deadline_seconds = Some(i64::from(rng.below(2) == 0) + 1),
            4 => drop(new.metadata.annotations.insert("own".into(), rng.below(3).to_string())),
            5 => {}
            _ => new.status.phase = ["Pending", "Running"][usize::from(rng.below(2) == 0)].into(),
        }
        let new = Arc::new(new);
        self.pods.insert(name, Arc::clone(&new));
        vec![Change::Updated { old, new }]
    }

    fn come(&mut self, name: &str) -> Change<Pod> {
        let object = Arc::new(pod(&format!("u{}", self.version), name));
        self.pods.insert(name.to_owned(), Arc::clone(&object));
        Change::Added { object, initial: false }
    }

    fn go(&mut self, name: &str, old: &Arc<Pod>) -> Change<Pod> {
        self.pods.remove(name);
        Change::Deleted { object: Arc::clone(old), stale: false }
    }

    fn set(&self) -> Delivery {
        let pods = self.pods.values().cloned().collect();
        Delivery::All(SourceSet { source: Source::Api, pods, whole: true, written: BTreeMap::new() })
    }
}

#[test]
fn events_and_whole_sets_come_to_the_same() {
    for seed in 0..300 {
        let rng = Rng::seeded(seed);
        let (mut world, mailbox) = (World::default(), Mailbox::default());
        let (mut by_events, mut by_sets) = (Merger::default(), Merger::default());
        for merger in [&mut by_events, &mut by_sets] {
            apply(merger, world.set());
        }
        for round in 0..30 {
            for _ in 0..rng.below(6) {
                world.step(&rng).iter().for_each(|change| mailbox.put(change));
            }
            let now = Time::from_unix_seconds(round);
            let events = by_events.apply(Delivery::Changes(mailbox.take()), now);
            let sets = by_sets.apply(world.set(), now);
            assert_eq!(by_events.known, by_sets.known, "seed {seed}, round {round}");
            assert_eq!(in_order(events.ops), in_order(sets.ops), "seed {seed}, round {round}");
        }
    }
}

/// The order among pods that go is nobody's concern.
fn in_order(mut ops: Vec<Op>) -> Vec<Op> {
    for op in &mut ops {
        if let Op::Remove(pods) = op {
            pods.sort_by(|a, b| a.metadata.uid.cmp(&b.metadata.uid));
        }
    }
    ops
}
