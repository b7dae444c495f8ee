//! Who has which volume with which label, and who is in whose way.

use std::collections::BTreeMap;

use api_types::core_v1::Pod;
use client::ObjectKey;

use super::label;
use crate::volumes::notice::Notice;

const RECURSIVE: &str = "Recursive";
const MOUNT_OPTION: &str = "MountOption";

/// How a pod has a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Using {
    label: String,
    policy: String,
}

impl Using {
    /// As a pod says; without a label, or a plugin that can mount with one, files are labelled one by one.
    pub(super) fn new(pod: &Pod, label: String, has_labels: bool) -> Self {
        let asked = pod.spec.security_context.as_ref().and_then(|context| context.se_linux_change_policy.clone());
        let is_recursive = label.is_empty() || !has_labels;
        let policy = if is_recursive { RECURSIVE.to_owned() } else { asked.unwrap_or_else(|| MOUNT_OPTION.to_owned()) };
        Self { label, policy }
    }
}

/// In which way two pods differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Policy,
    Label,
}

impl Property {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Policy => ("SELinuxChangePolicy", "SELinuxChangePolicyConflict"),
            Self::Label => ("SELinuxLabel", "SELinuxLabelConflict"),
        }
    }

    fn differs(self, one: &Using, other: &Using) -> bool {
        match self {
            Self::Policy => one.policy != other.policy,
            Self::Label => label::conflict(&one.label, &other.label),
        }
    }

    fn of(self, using: &Using) -> &str {
        match self {
            Self::Policy => &using.policy,
            Self::Label => &using.label,
        }
    }
}

/// A pod is in the way of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) pod: ObjectKey,
    value: String,
    other: ObjectKey,
    other_value: String,
    property: Property,
}

impl Conflict {
    /// What the first pod is told. The name of a pod in another namespace is nobody's business. Upstream leaves a space out.
    pub(super) fn notice(&self) -> Notice {
        const END: &str = "If both pods land on the same node, only one of them may access the volume.";
        let Self { pod, value, other, other_value, property } = self;
        let (name, reason) = property.names();
        let message = if pod.namespace == other.namespace {
            format!(
                "{name} \"{value}\" conflicts with pod {} that uses the same volume as this pod with {name} \
                 \"{other_value}\". {END}",
                other.name
            )
        } else {
            format!(
                "{name}\"{value}\" conflicts with another pod that uses the same volume as this pod with a different \
                 {name}. {END}"
            )
        };
        Notice::normal(reason, message)
    }

    fn labels(&self) -> Vec<String> {
        let Self { pod, value, other, other_value, property } = self;
        let (pods, values) = ([pod, other], [value, other_value]);
        let of_pods = pods.into_iter().zip(values);
        let of_pods = of_pods.flat_map(|(pod, value)| [pod.namespace.clone(), pod.name.clone(), value.clone()]);
        std::iter::once(property.names().0.to_owned()).chain(of_pods).collect()
    }
}

/// Who has which volume. Bounded by the pods that exist and their volumes.
#[derive(Debug, Default)]
pub(super) struct Uses {
    by_volume: BTreeMap<String, BTreeMap<ObjectKey, Using>>,
}

impl Uses {
    /// A pod has these volumes now. Answers with what that is in the way of, told from both sides.
    pub(super) fn replace(&mut self, pod: &ObjectKey, uses: BTreeMap<String, Using>) -> Vec<Conflict> {
        self.by_volume.retain(|volume, users| {
            if !uses.contains_key(volume) {
                users.remove(pod);
            }
            !users.is_empty()
        });
        let mut conflicts = Vec::new();
        for (volume, using) in uses {
            let users = self.by_volume.entry(volume).or_default();
            for (other, theirs) in users.iter().filter(|(other, _)| *other != pod) {
                conflicts.extend(between((pod, &using), (other, theirs)));
                conflicts.extend(between((other, theirs), (pod, &using)));
            }
            users.insert(pod.clone(), using);
        }
        conflicts
    }

    /// All conflicts, as metrics show them.
    pub(super) fn all(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for users in self.by_volume.values() {
            for one in users {
                for other in users.iter().filter(|other| other.0 != one.0) {
                    all.extend(between(one, other).iter().map(Conflict::labels));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn between(one: (&ObjectKey, &Using), other: (&ObjectKey, &Using)) -> Vec<Conflict> {
    let differing = [Property::Policy, Property::Label].into_iter().filter(|property| property.differs(one.1, other.1));
    let conflict = |property: Property| Conflict {
        pod: one.0.clone(),
        value: property.of(one.1).to_owned(),
        other: other.0.clone(),
        other_value: property.of(other.1).to_owned(),
        property,
    };
    differing.map(conflict).collect()
}
