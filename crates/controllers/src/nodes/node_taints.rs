//! Changing the taints of a node without losing what others change meanwhile.

use std::time::Duration;

use api_machinery::time::Time;
use api_machinery::value::{ValueMap, to_value};
use api_types::core_v1::{Node, Taint};
use client::{Client, ClientError, Patch};
use controller::Cx;

/// Tries after conflicts, and the pause before each: once to twice this.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// The taint of a key and effect.
pub(super) fn taint(key: &str, effect: &str, now: Time) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), time_added: Some(now), ..Taint::default() }
}

/// Whether two taints are the same but for value and time.
pub(super) fn same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

/// Whether a node has a taint of this key and effect.
pub(super) fn has(node: &Node, key: &str, effect: &str) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == key && taint.effect == effect)
}

/// The taints after adding and removing; nothing where they stay as they are. One that is there already stays as it is.
pub(super) fn changed(present: &[Taint], add: &[Taint], remove: &[Taint]) -> Option<Vec<Taint>> {
    let mut taints: Vec<Taint> =
        present.iter().filter(|taint| !remove.iter().any(|one| same(one, taint))).cloned().collect();
    for new in add {
        if !taints.iter().any(|taint| same(taint, new)) {
            taints.push(new.clone());
        }
    }
    (taints != present).then_some(taints)
}

/// Adds and removes taints of the node as it is now. A node that is gone is no error.
///
/// # Errors
/// When the node cannot be read or written, or is changed by others all the time.
pub(super) async fn change(cx: &Cx, name: &str, add: &[Taint], remove: &[Taint]) -> Result<(), ClientError> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match change_once(&cx.client, name, add, remove).await {
            Err(error) if error.is_conflict() && left > 0 => {}
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => return outcome,
        }
        tokio::time::sleep(PAUSE.mul_f64(1.0 + cx.rng.unit())).await;
    }
}

async fn change_once(client: &Client, name: &str, add: &[Taint], remove: &[Taint]) -> Result<(), ClientError> {
    let nodes = client.all::<Node>();
    let Some(node) = nodes.get_opt(name).await? else { return Ok(()) };
    let Some(taints) = changed(&node.spec.taints, add, remove) else { return Ok(()) };
    let mut metadata = ValueMap::new();
    metadata.insert("resourceVersion".into(), node.metadata.resource_version.as_str().into());
    let mut spec = ValueMap::new();
    spec.insert("taints".into(), to_value(&taints));
    let mut body = ValueMap::new();
    body.insert("metadata".into(), metadata.into());
    body.insert("spec".into(), spec.into());
    // The whole list is replaced: a merge by key would not remove, and two effects share a key.
    nodes.patch(name, &Patch::Merge(body.into())).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::at;

    #[test]
    fn taints_change_by_key_and_effect() {
        let (a, b) = (taint("a", "NoExecute", at(1)), taint("b", "NoSchedule", at(1)));
        let later = taint("a", "NoExecute", at(2));
        let other = taint("a", "NoSchedule", at(1));
        for (name, present, add, remove, expected) in [
            ("added", vec![], vec![a.clone()], vec![], Some(vec![a.clone()])),
            ("there already", vec![a.clone()], vec![later], vec![], None),
            ("another effect", vec![a.clone()], vec![other.clone()], vec![], Some(vec![a.clone(), other])),
            ("removed", vec![a.clone(), b.clone()], vec![], vec![a.clone()], Some(vec![b.clone()])),
            ("swapped", vec![a.clone()], vec![b.clone()], vec![a.clone()], Some(vec![b.clone()])),
            ("not there", vec![b.clone()], vec![], vec![a], None),
        ] {
            assert_eq!(changed(&present, &add, &remove), expected, "{name}");
        }
    }
}
