//! The five conditions of a namespace that is being deleted. `True` tells of a problem.

use std::collections::BTreeMap;

use api_machinery::time::Time;
use api_types::core_v1::NamespaceCondition;

use super::content::Report;

/// Sets the conditions; says whether any changed.
pub(super) fn set(conditions: &mut Vec<NamespaceCondition>, report: &Report, now: Time) -> bool {
    let wanted = [
        discovery(report),
        condition("NamespaceDeletionGroupVersionParsingFailure", None, ("ParsedGroupVersions", PARSED)),
        content(report),
        remaining(report),
        finalizers(report),
    ];
    let mut changed = false;
    for one in wanted {
        changed |= component_helpers::conditions::set(conditions, one, now);
    }
    changed
}

const PARSED: &str = "All legacy kube types successfully parsed";

fn condition(type_: &str, problem: Option<(&str, String)>, fine: (&str, &str)) -> NamespaceCondition {
    let status = if problem.is_some() { "True" } else { "False" };
    let (reason, message) = problem.unwrap_or_else(|| (fine.0, fine.1.to_owned()));
    NamespaceCondition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        ..NamespaceCondition::default()
    }
}

fn discovery(report: &Report) -> NamespaceCondition {
    let problem = report.discovery.clone().map(|error| ("DiscoveryFailed", error));
    let fine = ("ResourcesDiscovered", "All resources successfully discovered");
    condition("NamespaceDeletionDiscoveryFailure", problem, fine)
}

fn content(report: &Report) -> NamespaceCondition {
    let errors = &report.errors;
    let problem = (!errors.is_empty()).then(|| {
        let (count, errors) = (errors.len(), errors.join(", "));
        ("ContentDeletionFailed", format!("Failed to delete all resource types, {count} remaining: {errors}"))
    });
    let fine = ("ContentDeleted", "All content successfully deleted, may be waiting on finalization");
    condition("NamespaceDeletionContentFailure", problem, fine)
}

fn remaining(report: &Report) -> NamespaceCondition {
    let problem = listed(&report.remaining, |resource, count| format!("{resource} has {count} resource instances"))
        .map(|list| ("SomeResourcesRemain", format!("Some resources are remaining: {list}")));
    condition("NamespaceContentRemaining", problem, ("ContentRemoved", "All content successfully removed"))
}

fn finalizers(report: &Report) -> NamespaceCondition {
    let problem = listed(&report.finalizers, |finalizer, count| format!("{finalizer} in {count} resource instances"))
        .map(|list| {
            let message = format!("Some content in the namespace has finalizers remaining: {list}");
            ("SomeFinalizersRemain", message)
        });
    let fine = ("ContentHasNoFinalizers", "All content-preserving finalizers finished");
    condition("NamespaceFinalizersRemaining", problem, fine)
}

fn listed(counts: &BTreeMap<String, usize>, text: impl Fn(&str, usize) -> String) -> Option<String> {
    let parts: Vec<String> = counts.iter().map(|(name, count)| text(name, *count)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
