//! Whose memory is bound to which nodes.

use std::sync::Arc;

use serde_json::json;

use super::tables::tests::{GI, block, machine, nodes};
use super::*;
use crate::topology::fixtures::{Counted, guaranteed};

fn own(root: &Path, sizes: &[u64]) -> MemoryNodes {
    let file = StateFile::new(root, &OWNER, "Static", false);
    let counts = Arc::new(Counted::default());
    MemoryNodes { machine: Some(machine(sizes)), pod_level: false, blocks: Mutex::default(), file, counts }
}

fn of_pod(container: &str, blocks: Vec<Block>) -> OfPod<Vec<Block>> {
    OfPod { whole: None, containers: [(container.to_owned(), blocks)].into() }
}

fn with(sizes: &[u64], given: &[(&str, &[u32], u64)]) -> MemoryNodes {
    let own = own(Path::new("/nowhere"), sizes);
    for (uid, numbers, gi) in given {
        own.blocks.lock().insert((*uid).to_owned(), of_pod("main", vec![block(numbers, *gi)]));
    }
    own
}

#[test]
fn memory_is_bound_to_nodes() {
    let any = Hint::ANYWHERE;
    let at = |numbers: &[u32], preferred| Hint { nodes: Some(nodes(numbers)), preferred };
    type Given<'a> = &'a [(&'a str, &'a [u32], u64)];
    type Case<'a> = (&'a str, &'a [u64], Given<'a>, &'a str, Hint, Result<&'a str, &'a str>);
    let cases: [Case<'_>; 11] = [
        ("anywhere", &[11, 11], &[], "4Gi", any, Ok("0")),
        ("where there is room", &[11, 11], &[("v", &[0], 8)], "4Gi", any, Ok("1")),
        ("where it is wanted", &[11, 11], &[], "4Gi", at(&[1], true), Ok("1")),
        ("more than one node has", &[11, 11], &[], "14Gi", any, Ok("0-1")),
        ("with more nodes than wanted", &[11, 11], &[], "14Gi", at(&[1], false), Ok("0-1")),
        (
            "together with those who are there",
            &[11, 11, 11],
            &[("v", &[0, 1], 12)],
            "8Gi",
            at(&[0, 1], false),
            Ok("0-1"),
        ),
        ("more than there is", &[11, 11], &[], "30Gi", any, Err("failed to get the default NUMA affinity")),
        (
            "only as wide as need be",
            &[11, 11],
            &[("v", &[0], 8), ("w", &[1], 8)],
            "4Gi",
            any,
            Err("failed to get the default NUMA affinity"),
        ),
        (
            "nodes of different groups",
            &[11, 11, 11],
            &[("v", &[0], 1)],
            "14Gi",
            at(&[0], true),
            Err("failed to find NUMA nodes to extend"),
        ),
        (
            "wider than need be",
            &[11, 21],
            &[("v", &[0, 1], 2)],
            "14Gi",
            any,
            Err("failed to find the default preferred"),
        ),
        (
            "in use by a group",
            &[11, 11, 11],
            &[("v", &[0, 1], 2)],
            "1Gi",
            at(&[0], true),
            Err("preferred hint violates"),
        ),
    ];
    for (what, sizes, given, amount, place, expected) in cases {
        let own = with(sizes, given);
        let pod = guaranteed("u", &[("main", "1", amount)]);
        let done = own.allocate(&pod, &pod.spec.containers[0], place).map_err(|error| error.to_string());
        match (done, expected) {
            (Ok(()), Ok(nodes)) => {
                assert_eq!(own.of_container("u", "main").unwrap_or_default().to_string(), nodes, "{what}");
            }
            (Err(error), Err(text)) => {
                assert!(error.starts_with(&format!("[memorymanager] {text}")), "{what}: {error}")
            }
            (done, expected) => panic!("{what}: {done:?}, not {expected:?}"),
        }
    }
}

#[test]
fn places_are_where_memory_is_free() {
    let hints = |own: &MemoryNodes, amount: &str| {
        let pod = guaranteed("u", &[("main", "1", amount)]);
        let answer = own.places(&pod, Some(&pod.spec.containers[0]));
        assert_eq!(answer, own.places(&pod, None), "one container is all");
        let mut hints: Vec<(Vec<u32>, bool)> = answer
            .get(MEMORY)
            .cloned()
            .flatten()
            .unwrap_or_default()
            .into_iter()
            .map(|hint| (hint.nodes.unwrap().iter().collect(), hint.preferred))
            .collect();
        hints.sort();
        hints
    };
    let both = (vec![0, 1], false);
    assert_eq!(hints(&with(&[11, 11], &[]), "4Gi"), [(vec![0], true), both.clone(), (vec![1], true)]);
    assert_eq!(hints(&with(&[11, 11], &[("v", &[0], 8)]), "4Gi"), [(vec![1], true)], "what is in use stays alone");
    assert_eq!(hints(&with(&[11, 11], &[]), "12Gi"), [(vec![0, 1], true)]);
    assert_eq!(hints(&with(&[11, 11], &[("v", &[0, 1], 12)]), "4Gi"), [both]);
    assert_eq!(hints(&with(&[11, 11], &[("u", &[1], 4)]), "4Gi"), [(vec![1], true)], "as it has it");
    assert!(hints(&with(&[11], &[]), "11Gi").is_empty());
    let burstable = {
        let mut pod = guaranteed("u", &[("main", "1", "1Gi")]);
        pod.spec.containers[0].resources.limits.clear();
        pod
    };
    assert!(with(&[11], &[]).places(&burstable, None).is_empty());
}

#[test]
fn a_restart_forgets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let first = own(dir.path(), &[11, 11]);
    first.restore().unwrap();
    let mut pod = guaranteed("u", &[("init", "1", "6Gi"), ("main", "1", "8Gi")]);
    pod.spec.init_containers = vec![pod.spec.containers.remove(0)];
    for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
        first.allocate(&pod, container, Hint::ANYWHERE).unwrap();
    }
    first.save().unwrap();
    let path = dir.path().join("memory_manager_state");
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let main = json!([{"numaAffinity": [0], "type": "memory", "size": 8 * GI}]);
    assert_eq!((&value["policyName"], &value["entries"]["u"]["main"]), (&json!("Static"), &main));
    assert_eq!(value["entries"]["u"]["init"][0]["size"], json!(0));
    let node = &value["machineState"]["0"];
    assert_eq!((&node["numberOfAssignments"], &node["cells"]), (&json!(2), &json!([0])));
    assert_eq!(
        (&node["memoryMap"]["memory"]["reserved"], &node["memoryMap"]["memory"]["free"]),
        (&json!(8 * GI), &json!(2 * GI))
    );

    let next = own(dir.path(), &[11, 11]);
    next.restore().unwrap();
    assert_eq!(*next.blocks.lock(), *first.blocks.lock());
    let error = own(dir.path(), &[11, 12]).restore().unwrap_err().to_string();
    assert!(error.contains("[memorymanager] the expected machine state is different from the real one"), "{error}");
    assert!(error.contains("delete the memory manager checkpoint file"), "{error}");
    let mut other =
        state::machine(&machine(&[11, 11]).with(&[("u".to_owned(), of_pod("c", vec![block(&[0, 1], 12)]))].into()));
    let filled = other.clone();
    for (node, reserved) in [("0", 4), ("1", 8)] {
        let table = &mut other[node]["memoryMap"]["memory"];
        (table["reserved"], table["free"]) = (json!(reserved * GI), json!((10 - reserved) * GI));
    }
    assert!(other != filled && state::is_alike(&other, &filled), "filled in another order");
    other["0"]["memoryMap"]["memory"]["free"] = json!(5 * GI);
    assert!(!state::is_alike(&other, &filled));
    let none = MemoryNodes::new(dir.path(), &MemorySettings::default(), Arc::new(Counted::default()));
    assert!(none.restore().unwrap_err().to_string().contains("configured policy \"None\" differs"));
    assert!(next.keep(&BTreeSet::new()) && next.blocks("u", "main").is_empty());
    assert_eq!(next.allocatable(), [block(&[0], 10), block(&[1], 10)]);
}
