//! Uids against what Go's `spew` and `hash/fnv` made of the same pods, and the layout against the API's tables.

use std::collections::BTreeSet;

use super::amount::Amount;
use super::layout::{Found, Layout};
use super::*;
use crate::pod::manifest;

const FILE: &str = "/etc/kubernetes/manifests/pod.yaml";
const URL: &str = "https://pods.example.com/pod";

fn manifests() -> impl Iterator<Item = &'static str> {
    include_str!("testdata/manifests.yaml").split("\n---\n")
}

fn reading(source: Source, origin: &'static str) -> Reading<'static> {
    Reading { source, origin, node_name: "node-1", refuse_references: false }
}

fn parsed(text: &str) -> (Pod, Value) {
    let manifest = api_machinery::yaml::parse(text).expect("a manifest").value;
    let mut pod: Pod = api_machinery::object::from_value(&manifest).expect("a pod");
    kinds::find("", "v1", "pods").expect("pods").set_defaults(&mut pod);
    (pod, manifest)
}

#[test]
fn uids_are_those_of_go() {
    let mut expected = include_str!("testdata/dumps.txt").lines();
    for text in manifests() {
        let (pod, manifest) = parsed(text);
        let name = &pod.metadata.name;
        let mut words = expected.next().expect("a line for each manifest").splitn(3, ' ');
        let mut next = || words.next().expect("two uids and a text");
        let (file, url, dump) = (next(), next(), next());
        let mut printed = String::new();
        print::pod(&mut printed, &written::merged(struct_to_map(&pod), &manifest)).expect("a text");
        let same = printed.chars().zip(dump.chars()).take_while(|(own, theirs)| own == theirs).count();
        let from = same.saturating_sub(60);
        assert!(printed == dump, "{name}: {:?} for {:?}", printed.get(from..same + 60), dump.get(from..same + 60));
        assert_eq!(of(&pod, &manifest, &reading(Source::File, FILE)), file, "{name}");
        assert_eq!(of(&pod, &manifest, &reading(Source::Http, URL)), url, "{name}");
    }
    assert_eq!(expected.next(), None);
}

/// The way that a kubelet reads manifests, from the text on.
#[test]
fn manifests_get_their_uids() {
    let read = |index: usize, source, origin| {
        let text = manifests().nth(index).expect("a manifest");
        manifest::read(text, &reading(source, origin)).expect("a pod").metadata.uid
    };
    for (index, line) in include_str!("testdata/dumps.txt").lines().enumerate().take(2) {
        let uids: Vec<&str> = line.splitn(3, ' ').take(2).collect();
        assert_eq!([read(index, Source::File, FILE), read(index, Source::Http, URL)], uids[..]);
        assert_ne!(read(index, Source::File, "/etc/kubernetes/manifests/other.yaml"), uids[0]);
    }
    let stated = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: own}\nspec: {containers: [{name: c, image: i}]}";
    assert_eq!(manifest::read(stated, &reading(Source::File, FILE)).expect("a pod").metadata.uid, "own");
}

/// Members of the API that are elsewhere inside, or not there.
const ELSEWHERE: &[(&str, &str)] = &[
    ("PodSpec", "serviceAccount"),
    ("PodSpec", "hostNetwork"),
    ("PodSpec", "hostPID"),
    ("PodSpec", "hostIPC"),
    ("PodSpec", "shareProcessNamespace"),
    ("PodSpec", "hostUsers"),
    ("PodStatus", "podIP"),
];

#[test]
fn every_field_of_the_release_has_its_place() {
    let tables = [("core", test_facts::facts("types/core_v1.json")), ("v1", test_facts::facts("types/meta_v1.json"))];
    for (go_type, members) in Layout::get().structs() {
        let (package, name) = go_type.split_once('.').expect("a package");
        let (_, table) = tables.iter().find(|(own, _)| *own == package).expect("a known package");
        let mut types = table["types"].as_array().expect("types").iter();
        let fact = types.find(|fact| fact["name"] == name).unwrap_or_else(|| panic!("{go_type} is in no table"));
        let fields = fact["fields"].as_array().expect("fields").iter();
        let named = |field: &Value| field["json"].as_str().map(str::to_owned);
        let mut wanted: BTreeSet<String> = fields.filter(|field| field["inline"] != true).filter_map(named).collect();
        wanted.retain(|field| field != "-" && !ELSEWHERE.contains(&(name, field.as_str())));
        let own = members.iter().filter_map(|member| match &member.found {
            Found::Under(names) => names.first().map(|name| (*name).to_owned()),
            _ => None,
        });
        assert_eq!(own.collect::<BTreeSet<_>>(), wanted, "{go_type}");
        for member in members {
            let base = member.go_type.trim_start_matches(['*', '[', ']']);
            let is_struct = tables.iter().any(|(package, table)| {
                let mut types = table["types"].as_array().into_iter().flatten();
                types.any(|fact| {
                    fact["kind"] == "struct" && base == format!("{package}.{}", fact["name"].as_str().unwrap_or(""))
                })
            });
            let special = matches!(base, "v1.Time" | "v1.MicroTime");
            assert_eq!(Layout::get().members(base).is_some(), is_struct && !special, "{go_type}.{}", member.name);
        }
    }
}

#[test]
fn nothing_that_is_written_is_too_much() {
    for text in [
        "",
        "-",
        "1e",
        "1e99999999999",
        "1x",
        &"9".repeat(100),
        "1e-2000000000",
        "0.0000000000000000000000000000000000000000001",
        "-9223372036854775808Ei",
    ] {
        let mut out = String::new();
        Amount::read(text).rounded().print(&mut out).expect("a text");
        assert!(out.starts_with("{i:(resource.int64Amount)"), "{text}");
    }
}
