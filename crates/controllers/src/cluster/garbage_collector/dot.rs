//! The graph as Graphviz draws it: who is owned by whom, for whoever wonders why something stays or went.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api_machinery::gvk::GroupVersion;
use api_machinery::meta::OwnerReference;

use super::graph::{Graph, Node};
use super::object::Identity;

/// What a picture shows of an object.
struct Vertex<'a> {
    identity: &'a Identity,
    being_deleted: bool,
    deleting_dependents: bool,
    is_virtual: bool,
}

/// The picture of all objects that own or are owned, or of those around some.
pub(super) fn picture(graph: &Graph, around: &[&str]) -> String {
    let nodes: BTreeMap<&str, &Node> =
        if around.is_empty() { graph.iter().collect() } else { connected(graph, around) };
    let drawn = |node: &&Node| !node.owners.is_empty() || !node.dependents.is_empty();
    let nodes: BTreeMap<&str, &Node> = nodes.into_iter().filter(|(_, node)| drawn(node)).collect();
    let missing: BTreeMap<&str, Identity> = nodes
        .values()
        .flat_map(|node| &node.owners)
        .filter(|owner| !nodes.contains_key(owner.uid.as_str()))
        .map(|owner: &OwnerReference| (owner.uid.as_str(), Identity::of_owner(owner, "")))
        .collect();
    let mut out = "strict digraph full {\n".to_owned();
    if !nodes.is_empty() {
        out.push_str("  // Node definitions.\n");
    }
    let known = nodes.iter().map(|(uid, node)| (*uid, text_of(&Vertex::of(node), false)));
    let unknown = missing.iter().map(|(uid, identity)| (*uid, text_of(&Vertex::missing(identity), true)));
    for text in known.chain(unknown).collect::<BTreeMap<_, _>>().values() {
        out.push_str(text);
    }
    out.push_str(&edges(&nodes));
    out.push_str("}\n");
    out
}

/// All nodes that some are connected with, these included.
fn connected<'a>(graph: &'a Graph, around: &[&str]) -> BTreeMap<&'a str, &'a Node> {
    let mut found = BTreeMap::new();
    let mut left: Vec<&str> = around.to_vec();
    while let Some(uid) = left.pop() {
        let Some((uid, node)) = graph.get(uid).filter(|(uid, _)| !found.contains_key(uid)) else { continue };
        found.insert(uid, node);
        left.extend(node.owners.iter().map(|owner| owner.uid.as_str()));
        left.extend(node.dependents.iter().map(String::as_str));
    }
    found
}

fn edges(nodes: &BTreeMap<&str, &Node>) -> String {
    let owned = nodes.iter().flat_map(|(uid, node)| node.owners.iter().map(move |owner| (*uid, owner.uid.as_str())));
    let mut pairs: Vec<(&str, &str)> = owned.collect();
    pairs.sort_unstable();
    let mut out = String::new();
    if !pairs.is_empty() {
        out.push_str("  // Edge definitions.\n");
    }
    for (dependent, owner) in pairs {
        // Writing to a string does not fail.
        let _ = writeln!(out, "  {dependent:?} -> {owner:?};");
    }
    out
}

impl<'a> Vertex<'a> {
    fn of(node: &'a Node) -> Self {
        let Node { identity, being_deleted, deleting_dependents, is_virtual, .. } = node;
        let (being_deleted, deleting_dependents, is_virtual) = (*being_deleted, *deleting_dependents, *is_virtual);
        Self { identity, being_deleted, deleting_dependents, is_virtual }
    }

    /// Of an owner that is not in the graph.
    fn missing(identity: &'a Identity) -> Self {
        Self { identity, being_deleted: false, deleting_dependents: false, is_virtual: false }
    }
}

/// A vertex with its attributes; only the label means something to Graphviz, the others are for who reads the text.
fn text_of(vertex: &Vertex<'_>, is_missing: bool) -> String {
    let Identity { kind, api_version, namespace, name, uid } = vertex.identity;
    let GroupVersion { group, version } =
        GroupVersion::parse(api_version).unwrap_or_else(|_| GroupVersion::new("", ""));
    let dot = if group.is_empty() { "" } else { "." };
    let states = [
        (vertex.being_deleted, "beingDeleted"),
        (vertex.deleting_dependents, "deletingDependents"),
        (vertex.is_virtual, "virtual"),
        (is_missing, "missingFromGraph"),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect();
    let mut label = format!("uid={uid}\nnamespace={namespace}\n{kind}.{version}{dot}{group}/{name}\n");
    if !states.is_empty() {
        label.push_str(&states.join(","));
        label.push('\n');
    }
    let attributes = [
        ("label", label),
        ("group", group.to_string()),
        ("version", version.to_string()),
        ("kind", kind.clone()),
        ("namespace", namespace.clone()),
        ("name", name.clone()),
        ("uid", uid.clone()),
        ("missing", is_missing.to_string()),
        ("beingDeleted", vertex.being_deleted.to_string()),
        ("deletingDependents", vertex.deleting_dependents.to_string()),
        ("virtual", vertex.is_virtual.to_string()),
    ];
    let lines: String = attributes.iter().map(|(key, value)| format!("    {key}={value:?}\n")).collect();
    format!("  {uid:?} [\n{lines}  ];\n")
}
