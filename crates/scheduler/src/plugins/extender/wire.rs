//! What extenders are asked and answer, in JSON. Questions have upstream's capitalised names; in answers, names match
//! whatever their case, as with Go's decoder, and unknown ones are passed over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api_machinery::json;
use api_machinery::value::Value;
use api_types::core_v1::Pod;

use crate::framework::{Candidate, Code, Status, StatusResult};
use crate::node_info::NodeView;

/// A text as JSON.
fn quoted(text: &str) -> String {
    json::encode_value(&Value::from(text))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A pod and nodes to judge: whole, or by name where the extender knows them itself.
pub(super) fn nodes_question(pod: &Pod, nodes: &[NodeView<'_>], by_name: bool) -> String {
    let pod = json::encode(pod);
    if by_name {
        let names = list(nodes.iter().map(|node| quoted(&node.info.name)));
        return format!(r#"{{"Pod":{pod},"Nodes":null,"NodeNames":{names}}}"#);
    }
    let items = list(nodes.iter().map(|node| json::encode(node.node)));
    format!(r#"{{"Pod":{pod},"Nodes":{{"metadata":{{}},"items":{items}}},"NodeNames":null}}"#)
}

/// A pod to bind.
pub(super) fn binding_question(pod: &Pod, node: &str) -> String {
    let meta = &pod.metadata;
    let [name, namespace, uid, node] = [&meta.name, &meta.namespace, &meta.uid, node].map(quoted);
    format!(r#"{{"PodName":{name},"PodNamespace":{namespace},"PodUID":{uid},"Node":{node}}}"#)
}

/// Victims to judge: whole, or by uid where the extender knows them itself.
pub(super) fn victims_question(pod: &Pod, candidates: &[Candidate], by_uid: bool) -> String {
    let victims = |candidate: &Candidate| {
        let pods = list(candidate.victims.iter().map(|victim| {
            if by_uid { format!(r#"{{"UID":{}}}"#, quoted(victim.uid())) } else { json::encode(&*victim.pod) }
        }));
        let (node, violations) = (quoted(&candidate.node), candidate.violations);
        format!(r#"{node}:{{"Pods":{pods},"NumPDBViolations":{violations}}}"#)
    };
    let nodes = format!("{{{}}}", candidates.iter().map(victims).collect::<Vec<_>>().join(","));
    let (whole, meta) = if by_uid { ("null", nodes.as_str()) } else { (nodes.as_str(), "null") };
    let pod = json::encode(pod);
    format!(r#"{{"Pod":{pod},"NodeNameToVictims":{whole},"NodeNameToMetaVictims":{meta}}}"#)
}

/// Which nodes an extender leaves.
pub(super) struct Filtered {
    pub(super) nodes: BTreeSet<String>,
    rejected: HashMap<String, Status>,
}

impl Filtered {
    /// A node that the extender passes over without a word has no reason; nobody can help there.
    pub(super) fn verdict(&self, node: &str) -> StatusResult {
        if self.nodes.contains(node) {
            return Ok(());
        }
        let silent = || Status::with_reasons(Code::UnschedulableAndUnresolvable, Vec::new());
        Err(self.rejected.get(node).cloned().unwrap_or_else(silent))
    }
}

/// Names count only where they were asked for.
pub(super) fn filter_answer(text: &str, by_name: bool) -> Result<Filtered, Status> {
    let answer = parsed(text)?;
    refused(&answer)?;
    let names = field(&answer, "NodeNames").and_then(Value::as_array).filter(|_| by_name);
    let nodes = match names {
        Some(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => {
            let items = field(&answer, "Nodes").and_then(|nodes| field(nodes, "items")).and_then(Value::as_array);
            let name = |node: &Value| Some(field(field(node, "metadata")?, "name")?.as_str()?.to_owned());
            items.into_iter().flatten().filter_map(name).collect()
        }
    };
    let mut rejected = HashMap::new();
    for (name, code) in
        [("FailedNodes", Code::Unschedulable), ("FailedAndUnresolvableNodes", Code::UnschedulableAndUnresolvable)]
    {
        let Some(failed) = field(&answer, name).and_then(Value::as_object) else { continue };
        for (node, message) in failed.iter() {
            let message = message.as_str().unwrap_or_default().to_owned();
            rejected.insert(node.to_string(), Status::new(code, message));
        }
    }
    Ok(Filtered { nodes, rejected })
}

/// The score of each node that has one.
pub(super) fn scores_answer(text: &str) -> Result<HashMap<String, i64>, Status> {
    let answer = parsed(text)?;
    let one = |entry: &Value| Some((field(entry, "Host")?.as_str()?.to_owned(), field(entry, "Score")?.as_i64()?));
    Ok(answer.as_array().into_iter().flatten().filter_map(one).collect())
}

pub(super) fn binding_answer(text: &str) -> StatusResult {
    refused(&parsed(text)?)
}

/// The victims that are left on a node.
pub(super) struct Victims {
    pub(super) uids: Vec<String>,
    pub(super) violations: usize,
}

pub(super) fn victims_answer(text: &str) -> Result<BTreeMap<String, Victims>, Status> {
    let answer = parsed(text)?;
    let nodes = field(&answer, "NodeNameToMetaVictims").and_then(Value::as_object);
    let uid = |pod: &Value| Some(field(pod, "UID")?.as_str()?.to_owned());
    let victims = |left: &Value| {
        let pods = field(left, "Pods").and_then(Value::as_array);
        let violations = field(left, "NumPDBViolations").and_then(Value::as_i64).unwrap_or(0);
        let uids = pods.into_iter().flatten().filter_map(uid).collect();
        Victims { uids, violations: usize::try_from(violations).unwrap_or(0) }
    };
    Ok(nodes.into_iter().flat_map(|nodes| nodes.iter()).map(|(node, left)| (node.to_string(), victims(left))).collect())
}

fn parsed(text: &str) -> Result<Value, Status> {
    json::parse_value(text).map_err(|error| Status::error(format!("decoding the extender's answer: {error}")))
}

/// The extender's own word that it failed.
fn refused(answer: &Value) -> StatusResult {
    match field(answer, "Error").and_then(Value::as_str).unwrap_or_default() {
        "" => Ok(()),
        error => Err(Status::error(error.to_owned())),
    }
}

fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = object.as_object()?;
    fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
