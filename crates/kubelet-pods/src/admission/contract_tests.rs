//! What every handler keeps to: who is refused later, or is gone, leaves nothing behind, and a restart forgets nothing.

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use parking_lot::Mutex;

use super::tests::{node, pod, quiet};
use super::*;

/// A handler as a plug-in of devices would be: it hands out numbered ones, and keeps on disk which pod has which.
struct Devices {
    taken: Arc<Mutex<BTreeMap<u32, String>>>,
    path: std::path::PathBuf,
}

const DEVICES: u32 = 2;

impl Devices {
    fn new(root: &std::path::Path) -> Self {
        Self { taken: Arc::default(), path: root.join("devices") }
    }
}

fn write(path: &std::path::Path, taken: &BTreeMap<u32, String>) {
    std::fs::write(path, serde_json::to_string(taken).unwrap()).unwrap();
}

impl Handler for Devices {
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal> {
        let mut taken = self.taken.lock();
        if taken.values().any(|uid| *uid == attempt.pod.metadata.uid) {
            return Ok(Reservation::nothing());
        }
        let free = (0..DEVICES).find(|device| !taken.contains_key(device));
        let device = free.ok_or_else(|| Refusal::new(Reason::UnexpectedAdmissionError, "no device is left"))?;
        taken.insert(device, attempt.pod.metadata.uid.clone());
        write(&self.path, &taken);
        let (all, path) = (Arc::clone(&self.taken), self.path.clone());
        Ok(Reservation::undone_by(move || {
            let mut all = all.lock();
            all.remove(&device);
            write(&path, &all);
        }))
    }

    fn restore(&self) -> Result<(), CheckpointError> {
        if let Ok(text) = std::fs::read_to_string(&self.path) {
            *self.taken.lock() = serde_json::from_str(&text).unwrap();
        }
        Ok(())
    }

    fn keep(&self, uids: &BTreeSet<String>) {
        let mut taken = self.taken.lock();
        taken.retain(|_, uid| uids.contains(uid));
        write(&self.path, &taken);
    }

    fn reserved(&self) -> String {
        format!("{:?}", self.taken.lock())
    }
}

fn named(uid: &str, cpu: &str) -> Pod {
    let mut pod = pod(cpu, 0);
    pod.metadata.uid = uid.into();
    pod.spec.containers[0].name = "main".into();
    pod
}

/// The real list, with a handler that hands out devices where upstream has it, and `refusing` at the end.
fn all(root: &std::path::Path, refusing: bool) -> Admission {
    let mut admission = Admission::new(&Arc::new(Allocations::new(root)), None);
    admission.handlers.insert(2, Box::new(Devices::new(root)));
    if refusing {
        admission.handlers.push(Box::new(Check(|_| Err(Refusal::new(Reason::NodeName, "no")))));
    }
    admission.restore().unwrap();
    admission
}

/// What each handler has, in this process and for the next.
fn state(admission: &Admission, root: &std::path::Path) -> [Vec<String>; 2] {
    [admission, &all(root, false)].map(|all| all.handlers.iter().map(|handler| handler.reserved()).collect())
}

fn ask(admission: &Admission, pod: &Pod, operation: Operation) -> Result<Admitted, Refusal> {
    let node = node();
    admission.admit(&Attempt { pod, operation, room: Room::Counted, situation: quiet(&node, &[]) })
}

/// Each operation, with the cpu that the pod asks for.
const OPERATIONS: [(Operation, &str, &str); 3] =
    [(Operation::Add, "new", "1"), (Operation::Add, "old", "1"), (Operation::Resize, "old", "2")];

#[test]
fn who_is_refused_later_leaves_nothing_behind() {
    for (operation, uid, cpu) in OPERATIONS {
        let dir = tempfile::tempdir().unwrap();
        ask(&all(dir.path(), false), &named("old", "1"), Operation::Add).unwrap().commit();
        let refusing = all(dir.path(), true);
        let before = state(&refusing, dir.path());
        assert_eq!(ask(&refusing, &named(uid, cpu), operation).err().unwrap().reason, Reason::NodeName);
        assert_eq!(state(&refusing, dir.path()), before, "{operation:?} {uid}");
        let willing = all(dir.path(), false);
        let before = state(&willing, dir.path());
        drop(ask(&willing, &named(uid, cpu), operation).unwrap());
        assert_eq!(state(&willing, dir.path()), before, "{operation:?} {uid}: not committed");
    }
}

#[test]
fn every_place_in_the_list_may_refuse() {
    let dir = tempfile::tempdir().unwrap();
    for place in 0..=all(dir.path(), false).handlers.len() {
        let mut admission = all(dir.path(), false);
        admission.handlers.insert(place, Box::new(Check(|_| Err(Refusal::new(Reason::NodeName, "no")))));
        let before = state(&admission, dir.path());
        assert!(ask(&admission, &named("new", "1"), Operation::Add).is_err());
        assert_eq!(state(&admission, dir.path()), before, "refused at {place}");
    }
}

#[test]
fn what_is_committed_outlives_the_kubelet_and_goes_with_the_pod() {
    for (operation, uid, cpu) in OPERATIONS {
        let dir = tempfile::tempdir().unwrap();
        let admission = all(dir.path(), false);
        let empty = state(&admission, dir.path());
        ask(&admission, &named("old", "1"), Operation::Add).unwrap().commit();
        ask(&admission, &named(uid, cpu), operation).unwrap().commit();
        let [here, restored] = state(&admission, dir.path());
        assert_eq!(here, restored, "{operation:?} {uid}");
        let changed = |place: usize| here[place] != empty[0][place];
        assert!(changed(2) && changed(here.len() - 1), "those that reserve have reserved: {here:?}");
        let again = all(dir.path(), false);
        ask(&again, &named(uid, cpu), Operation::Add).unwrap().commit();
        assert_eq!(state(&again, dir.path())[0], here, "asked again after a restart, it has what it had");
        again.keep(&["old".to_owned(), "new".to_owned()].into());
        assert_eq!(state(&again, dir.path())[0], here, "who is there keeps it");
        again.keep(&BTreeSet::new());
        assert_eq!(state(&again, dir.path()), empty, "{operation:?} {uid}");
    }
}

#[test]
fn what_is_given_back_can_be_given_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let admission = all(dir.path(), false);
    for uid in ["a", "b"] {
        ask(&admission, &named(uid, "0"), Operation::Add).unwrap().commit();
    }
    assert!(ask(&admission, &named("c", "0"), Operation::Add).is_err(), "no device is left");
    admission.keep(&["a".to_owned()].into());
    ask(&admission, &named("c", "0"), Operation::Add).unwrap().commit();
}

#[test]
fn a_resize_that_is_not_committed_is_as_if_it_had_never_been() {
    let dir = tempfile::tempdir().unwrap();
    let allocations = Arc::new(Allocations::new(dir.path()));
    let admission = Admission::new(&allocations, None);
    let cpu = |pod: &Pod| {
        let pod = allocations.given(&Arc::new(pod.clone()));
        pod.spec.containers[0].resources.requests["cpu"].clone()
    };
    let (small, large) = (named("u", "1"), named("u", "2"));
    ask(&admission, &small, Operation::Add).unwrap().commit();
    let held = ask(&admission, &large, Operation::Resize).unwrap();
    assert_eq!(cpu(&small), Quantity::parse("2").unwrap());
    drop(held);
    assert_eq!((cpu(&large), allocations.state("u").in_progress), (Quantity::parse("1").unwrap(), false));
    ask(&admission, &large, Operation::Resize).unwrap().commit();
    assert_eq!((cpu(&small), allocations.state("u").in_progress), (Quantity::parse("2").unwrap(), true));
}
