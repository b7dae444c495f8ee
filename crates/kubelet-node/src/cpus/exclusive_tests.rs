//! Who gets processors of its own, which ones, and where it could have them.

use super::super::machine::fixtures::{DUAL, FOUR_NODES, SINGLE, Shape};
use super::*;
use crate::topology::Hint;
use crate::topology::fixtures::{guaranteed, with_pool};

fn policy(shape: &Shape, options: CpuOptions, listed: &str) -> Static {
    let listed: CpuSet = listed.parse().unwrap();
    let milli = i64::try_from(listed.len()).unwrap() * 1000;
    Static::new(shape.processors(), options, milli, Some(listed)).unwrap()
}

fn assigned(entries: &[(&str, &str, &str)]) -> Assignments {
    let mut all = Assignments::new();
    for (uid, container, cpus) in entries {
        all.entry((*uid).to_owned()).or_default().containers.insert((*container).to_owned(), cpus.parse().unwrap());
    }
    all
}

fn nodes(numbers: &[u32]) -> NodeSet {
    numbers.iter().copied().collect()
}

#[test]
fn something_must_be_reserved() {
    let new = |milli, listed: Option<&str>| {
        let listed = listed.map(|text| text.parse().unwrap());
        let made = Static::new(SINGLE.processors(), CpuOptions::default(), milli, listed);
        made.map(|policy| policy.reserved.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(new(1200, None), Ok("0,4".to_owned()));
    assert_eq!(new(2000, Some("2-3")), Ok("2-3".to_owned()));
    let text = "[cpumanager] unable to reserve the required amount of CPUs (size of 2-3 did not equal 1)";
    assert_eq!(new(1000, Some("2-3")), Err(text.to_owned()));
    let text = "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
    assert_eq!(new(0, None), Err(text.to_owned()));
    assert!(new(9000, None).unwrap_err().contains("requested=9, available=8"));
}

#[test]
fn only_whole_processors_of_guaranteed_pods_are_exclusive() {
    let pod = guaranteed("u", &[("a", "2", "1Gi"), ("b", "1500m", "1Gi")]);
    let own = policy(&SINGLE, CpuOptions::default(), "0");
    assert_eq!([0, 1].map(|index: usize| own.wanted(&pod, &pod.spec.containers[index])), [2, 0]);
    let mut burstable = pod.clone();
    burstable.spec.containers[0].resources.limits.clear();
    assert_eq!(own.wanted(&burstable, &burstable.spec.containers[0]), 0);
    let mut of_pod = with_pool(pod, "4", "4Gi");
    assert_eq!(own.wanted(&of_pod, &of_pod.spec.containers[0]), 0);
    let gated = Static { pod_level: true, ..own };
    assert_eq!([0, 1].map(|index: usize| gated.wanted(&of_pod, &of_pod.spec.containers[index])), [2, 0]);
    of_pod.spec.containers[0].resources.limits.clear();
    assert_eq!(gated.wanted(&of_pod, &of_pod.spec.containers[0]), 0, "it may use more than it asks for");
}

#[test]
fn processors_are_chosen() {
    let usual = CpuOptions::default();
    let full = CpuOptions { full_cores: true, ..usual };
    let sockets = CpuOptions { by_socket: true, ..usual };
    let text = |shape: &Shape, options, count: &str, near: Option<&[u32]>, had: &[(&str, &str, &str)]| {
        let pod = guaranteed("u", &[("main", count, "1Gi")]);
        let chosen = policy(shape, options, "0").choose(&pod, &pod.spec.containers[0], near.map(nodes), &assigned(had));
        chosen.map(|cpus| cpus.unwrap_or_default().to_string()).unwrap_or_else(|error| error.to_string())
    };
    let few = "not enough cpus available to satisfy request: requested=8, available=7";
    let part = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2";
    let few_cores = "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, \
                     CPUs per core = 2";
    let cases: [(&str, String, &str); 10] = [
        ("none of what is reserved", text(&SINGLE, usual, "1", None, &[]), "4"),
        ("too many", text(&SINGLE, usual, "8", None, &[]), few),
        ("none of somebody else's", text(&SINGLE, usual, "2", None, &[("v", "c", "1,5")]), "2,6"),
        ("what it has already", text(&SINGLE, usual, "2", None, &[("u", "main", "3,7")]), "3,7"),
        ("a part of a core where that is not allowed", text(&SINGLE, full, "3", None, &[]), part),
        ("too few whole cores", text(&SINGLE, full, "8", None, &[]), few_cores),
        ("no core of which a part is reserved", text(&SINGLE, full, "6", None, &[]), "1-3,5-7"),
        ("near to a node", text(&DUAL, usual, "2", Some(&[1]), &[]), "3,9"),
        ("near to a node as far as that goes", text(&DUAL, usual, "8", Some(&[0]), &[]), "1-4,6-9"),
        ("in the socket of a node", text(&FOUR_NODES, sockets, "24", Some(&[1]), &[]), "1-2,10-19,41-42,50-59"),
    ];
    for (what, found, expected) in cases {
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn what_init_containers_had_is_used_again_and_what_sidecars_have_is_not() {
    let mut pod = guaranteed("u", &[("init", "2", "1Gi"), ("side", "1", "1Gi"), ("main", "6", "1Gi")]);
    let main = pod.spec.containers.split_off(2);
    pod.spec.init_containers = std::mem::replace(&mut pod.spec.containers, main);
    pod.spec.init_containers[1].restart_policy = Some("Always".into());
    let policy = policy(&SINGLE, CpuOptions::default(), "0");
    let mut all = Assignments::new();
    let mut given = Vec::new();
    for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
        let chosen = policy.choose(&pod, container, None, &all).unwrap().unwrap();
        given.push(chosen.to_string());
        all.entry("u".into()).or_default().containers.insert(container.name.clone(), chosen);
    }
    assert_eq!(given, ["1,5", "4", "1-3,5-7"]);
    assert_eq!(policy.shared(&all).to_string(), "0");
    let strict = Static { options: CpuOptions { strict: true, ..CpuOptions::default() }, ..policy };
    assert_eq!(strict.shared(&all).to_string(), "");
}

#[test]
fn places_are_where_processors_are_free() {
    let hints = |shape: &Shape, options, count: &str, had: &[(&str, &str, &str)]| -> Option<Vec<(Vec<u32>, bool)>> {
        let pod = guaranteed("u", &[("main", count, "1Gi")]);
        let answer = policy(shape, options, "0").places_of_container(&pod, &pod.spec.containers[0], &assigned(had));
        let hints = answer.get(CPU)?.clone()?;
        let mut hints: Vec<(Vec<u32>, bool)> =
            hints.into_iter().map(|Hint { nodes, preferred }| (nodes.unwrap().iter().collect(), preferred)).collect();
        hints.sort();
        Some(hints)
    };
    let usual = CpuOptions::default();
    let both = (vec![0, 1], false);
    assert_eq!(hints(&DUAL, usual, "500m", &[]), None);
    assert_eq!(hints(&DUAL, usual, "2", &[]), Some(vec![(vec![0], true), both.clone(), (vec![1], true)]));
    assert_eq!(hints(&DUAL, usual, "6", &[]), Some(vec![both.clone(), (vec![1], true)]), "one of node 0 is reserved");
    assert_eq!(hints(&DUAL, usual, "8", &[]), Some(vec![(vec![0, 1], true)]));
    assert_eq!(hints(&DUAL, usual, "6", &[("v", "c", "3")]), Some(vec![both.clone()]), "not as narrow as could be");
    assert_eq!(hints(&DUAL, usual, "12", &[]), Some(vec![]));
    assert_eq!(hints(&DUAL, usual, "2", &[("u", "main", "4,10")]), Some(vec![both, (vec![1], true)]), "as it has them");
    assert_eq!(hints(&DUAL, usual, "2", &[("u", "main", "4")]), Some(vec![]), "it asks for something else now");
    let sockets = CpuOptions { by_socket: true, ..usual };
    let preferred = |options| {
        let all = hints(&FOUR_NODES, options, "20", &[]).unwrap();
        all.into_iter().filter(|(_, preferred)| *preferred).map(|(nodes, _)| nodes).collect::<Vec<_>>()
    };
    assert_eq!(preferred(usual), [vec![1], vec![2], vec![3]]);
    assert_eq!(preferred(sockets), [vec![0, 1], vec![1], vec![2], vec![2, 3], vec![3]]);
}

#[test]
fn a_pod_asks_for_all_of_its_containers() {
    let mut pod = guaranteed("u", &[("init", "7", "1Gi"), ("a", "3", "1Gi"), ("b", "3", "1Gi")]);
    pod.spec.init_containers = vec![pod.spec.containers.remove(0)];
    let policy = policy(&DUAL, CpuOptions::default(), "0");
    let hints = |all: &Assignments| policy.places_of_pod(&pod, all).remove(CPU).unwrap().unwrap();
    assert_eq!(hints(&Assignments::new()), [Hint { nodes: Some(nodes(&[0, 1])), preferred: true }]);
    let had = assigned(&[("u", "init", "1-6,9"), ("u", "a", "1-3"), ("u", "b", "4-6")]);
    assert_eq!(hints(&had).len(), 1);
    assert!(hints(&assigned(&[("u", "init", "1-3")])).is_empty());
}
