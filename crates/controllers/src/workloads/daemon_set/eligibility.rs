//! Which nodes a daemon set means: by name, selector, affinity and taints, and by nothing else. Resources, ports and
//! conditions of nodes do not count.

use api_types::apps_v1::DaemonSet;
use api_types::core_v1::{Node, Pod};
use component_helpers::node_affinity;
use component_helpers::taints::{self, Comparing};

use super::pod_content::add_tolerations;

/// Whether a node should get a pod, and whether it may keep one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Eligibility {
    /// A pod belongs there.
    pub run: bool,
    /// A pod that is there may stay.
    pub keep: bool,
}

/// The pod by which nodes are judged: the template with what every daemon pod tolerates.
pub(super) fn model(set: &DaemonSet) -> Pod {
    let mut pod = Pod { spec: set.spec.template.spec.clone(), ..Pod::default() };
    add_tolerations(&mut pod.spec);
    pod
}

/// Judges a node.
pub(super) fn judge(model: &Pod, node: &Node, comparing: Comparing) -> Eligibility {
    let wanted = &model.spec.node_name;
    let named = wanted.is_empty() || *wanted == node.metadata.name;
    if !named || !node_affinity::accepts(model, node) {
        return Eligibility { run: false, keep: false };
    }
    let (taints, tolerations) = (&node.spec.taints, &model.spec.tolerations);
    let untolerated = |effects: &[&str]| taints::first_untolerated(taints, tolerations, effects, comparing).is_some();
    Eligibility { run: !untolerated(&["NoSchedule", "NoExecute"]), keep: !untolerated(&["NoExecute"]) }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Taint;

    use super::*;

    #[test]
    fn names_selectors_and_taints_decide() {
        let node = |taint: Option<(&str, &str)>| {
            let mut node = Node::default();
            node.metadata.name = "n".into();
            node.metadata.labels.insert("disk".into(), "ssd".into());
            let taint = taint.map(|(key, effect)| Taint { key: key.into(), effect: effect.into(), ..Taint::default() });
            node.spec.taints.extend(taint);
            node
        };
        let with = |change: fn(&mut DaemonSet)| {
            let mut set = DaemonSet::default();
            change(&mut set);
            model(&set)
        };
        let plain = || with(|_| {});
        let select =
            |set: &mut DaemonSet| drop(set.spec.template.spec.node_selector.insert("disk".into(), "hdd".into()));
        for (name, model, node, run, keep) in [
            ("plain", plain(), node(None), true, true),
            ("named otherwise", with(|set| set.spec.template.spec.node_name = "m".into()), node(None), false, false),
            ("named", with(|set| set.spec.template.spec.node_name = "n".into()), node(None), true, true),
            ("not selected", with(select), node(None), false, false),
            ("no schedule", plain(), node(Some(("x", "NoSchedule"))), false, true),
            ("no execute", plain(), node(Some(("x", "NoExecute"))), false, false),
            ("prefer", plain(), node(Some(("x", "PreferNoSchedule"))), true, true),
            ("cordoned", plain(), node(Some(("node.kubernetes.io/unschedulable", "NoSchedule"))), true, true),
            ("not ready", plain(), node(Some(("node.kubernetes.io/not-ready", "NoExecute"))), true, true),
            ("no network", plain(), node(Some(("node.kubernetes.io/network-unavailable", "NoSchedule"))), false, true),
        ] {
            assert_eq!(judge(&model, &node, Comparing::Texts), Eligibility { run, keep }, "{name}");
        }
        let host = with(|set| set.spec.template.spec.host_network = true);
        let mut compared = plain();
        compared.spec.tolerations.push(api_types::core_v1::Toleration {
            key: "sla".into(),
            operator: "Gt".into(),
            value: "90".into(),
            ..Default::default()
        });
        let mut better = node(Some(("sla", "NoExecute")));
        better.spec.taints[0].value = "99".into();
        let run = |comparing| judge(&compared, &better, comparing).run;
        assert_eq!([run(Comparing::Numbers), run(Comparing::Texts)], [true, false]);
        assert!(
            judge(&host, &node(Some(("node.kubernetes.io/network-unavailable", "NoSchedule"))), Comparing::Texts).run
        );
    }
}
