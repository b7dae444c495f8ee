//! Why a pod could not be scheduled: the status of each node, and the text that people read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::status::{Code, Reason, Status};

/// What was found out about a pod that fits nowhere.
#[derive(Debug, Clone, Default)]
pub struct Diagnosis {
    /// How many nodes there are.
    pub nodes: usize,
    /// Why a node was rejected, by its place in the snapshot.
    pub statuses: HashMap<usize, Status>,
    /// Why the nodes without a status were; no reason by default.
    pub absent: Option<Status>,
    /// Plugins that rejected the pod.
    pub unschedulable_plugins: BTreeSet<&'static str>,
    /// Plugins that rejected the pod for now.
    pub pending_plugins: BTreeSet<&'static str>,
    /// What the pre-filter said, where it rejected the pod.
    pub pre_filter_message: String,
    /// What the post-filter said.
    pub post_filter_message: String,
}

impl Diagnosis {
    /// Takes note of the plugin that rejected the pod.
    pub fn blame(&mut self, status: &Status) {
        if status.plugin.is_empty() {
            return;
        }
        match status.code {
            Code::Unschedulable | Code::UnschedulableAndUnresolvable => {
                self.unschedulable_plugins.insert(status.plugin);
            }
            Code::Pending => {
                self.pending_plugins.insert(status.plugin);
            }
            Code::Error => {}
        }
    }

    /// The kind of result of a node; nodes without a status cannot be helped by default.
    #[must_use]
    pub fn code_of(&self, index: usize) -> Code {
        let status = self.statuses.get(&index).or(self.absent.as_ref());
        status.map_or(Code::UnschedulableAndUnresolvable, |status| status.code)
    }

    /// The text of events and conditions.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = format!("0/{} nodes are available:", self.nodes);
        if self.pre_filter_message.is_empty() {
            let absent = self.absent.iter().map(|status| (status, self.nodes.saturating_sub(self.statuses.len())));
            let reasons = histogram(self.statuses.values().map(|status| (status, 1)).chain(absent));
            if !reasons.is_empty() {
                text = format!("{text} {reasons}.");
            }
        } else {
            text = format!("{text} {}.", self.pre_filter_message);
        }
        if !self.post_filter_message.is_empty() {
            text = format!("{text} {}", self.post_filter_message);
        }
        text
    }
}

/// `2 Insufficient cpu, 1 node(s) were unschedulable`, sorted as texts.
pub(crate) fn histogram<'a>(statuses: impl Iterator<Item = (&'a Status, usize)>) -> String {
    let mut counts: BTreeMap<&Reason, usize> = BTreeMap::new();
    for (status, count) in statuses.filter(|(_, count)| *count > 0) {
        for reason in status.reasons() {
            *counts.entry(reason).or_default() += count;
        }
    }
    let mut parts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_upstreams() {
        let mut diagnosis = Diagnosis { nodes: 3, ..Diagnosis::default() };
        diagnosis.statuses.insert(0, Status::unresolvable("node(s) had untolerated taint(s)"));
        for index in [1, 2] {
            diagnosis.statuses.insert(index, Status::unschedulable("Insufficient cpu"));
        }
        diagnosis.post_filter_message = "preemption: no".into();
        let text = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: no";
        assert_eq!(diagnosis.message(), text);
        diagnosis.pre_filter_message = "pod affinity terms conflict".into();
        assert_eq!(diagnosis.message(), "0/3 nodes are available: pod affinity terms conflict. preemption: no");
    }

    #[test]
    fn nodes_without_a_status_count_with_theirs() {
        let mut diagnosis = Diagnosis { nodes: 12, ..Diagnosis::default() };
        diagnosis.statuses.insert(0, Status::unschedulable("b"));
        diagnosis.statuses.insert(1, Status::unschedulable("b"));
        diagnosis.absent = Some(Status::unresolvable("a"));
        assert_eq!(diagnosis.message(), "0/12 nodes are available: 10 a, 2 b.");
    }
}
