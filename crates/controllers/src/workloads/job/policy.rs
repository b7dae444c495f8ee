//! The pod failure policy: what a failed pod means for its job.

use api_types::batch_v1::constants::pod_failure_policy_action::{FAIL_INDEX, FAIL_JOB, IGNORE};
use api_types::batch_v1::constants::pod_failure_policy_on_exit_codes_operator::{IN, NOT_IN};
use api_types::batch_v1::{Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};
use api_types::core_v1::{ContainerStatus, Pod};

/// What a failed pod means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It counts as any failure.
    Counts,
    /// It does not count.
    Ignored,
    /// Its index fails at once.
    FailsIndex,
    /// The job fails at once, for this reason.
    FailsJob(String),
}

/// What a failed pod means for a job: what the first rule that matches says.
pub(super) fn meaning(job: &Job, pod: &Pod) -> Meaning {
    let Some((place, rule, why)) = first_match(job, pod) else { return Meaning::Counts };
    match rule.action.as_str() {
        IGNORE => Meaning::Ignored,
        FAIL_INDEX => Meaning::FailsIndex,
        FAIL_JOB => Meaning::FailsJob(format!("{why} matching FailJob rule at index {place}")),
        _ => Meaning::Counts,
    }
}

/// The action of the first rule that matches a failed pod, if any does.
pub(super) fn action<'a>(job: &'a Job, pod: &Pod) -> Option<&'a str> {
    first_match(job, pod).map(|(_, rule, _)| rule.action.as_str())
}

/// The first rule that matches, with its place and why.
fn first_match<'a>(job: &'a Job, pod: &Pod) -> Option<(usize, &'a PodFailurePolicyRule, String)> {
    let rules = job.spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    let mut matched = rules.filter_map(|(place, rule)| {
        // Without a limit per index there are no indexes to fail.
        let usable = rule.action != FAIL_INDEX || job.spec.backoff_limit_per_index.is_some();
        usable.then(|| why(rule, pod)).flatten().map(|why| (place, rule, why))
    });
    matched.next()
}

/// Why a rule matches a pod, if it does.
fn why(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    if let Some(wanted) = &rule.on_exit_codes {
        let statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        let (container, code) = statuses.filter_map(|status| exit(wanted, status)).next()?;
        return Some(format!("Container {container} for pod {namespace}/{name} failed with exit code {code}"));
    }
    let conditions = pod.status.conditions.iter();
    let mut wanted = conditions.filter(|condition| {
        let patterns = &mut rule.on_pod_conditions.iter();
        patterns.any(|pattern| pattern.type_ == condition.type_ && pattern.status == condition.status)
    });
    wanted.next().map(|condition| format!("Pod {namespace}/{name} has condition {}", condition.type_))
}

/// The container and its exit code, where the requirement means it.
fn exit<'a>(wanted: &PodFailurePolicyOnExitCodesRequirement, status: &'a ContainerStatus) -> Option<(&'a str, i32)> {
    let code = status.state.terminated.as_ref()?.exit_code;
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == status.name);
    let listed = wanted.values.contains(&code);
    let meant = match wanted.operator.as_str() {
        IN => listed,
        NOT_IN => !listed,
        _ => false,
    };
    (code != 0 && named && meant).then_some((&status.name, code))
}

#[cfg(test)]
mod tests {
    use api_types::batch_v1::{PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern};
    use api_types::core_v1::{ContainerStateTerminated, PodCondition};

    use super::super::super::fixtures::pod;
    use super::*;

    fn codes(action: &str, operator: &str, values: &[i32]) -> PodFailurePolicyRule {
        let on_exit_codes = PodFailurePolicyOnExitCodesRequirement {
            operator: operator.into(),
            values: values.to_vec(),
            ..PodFailurePolicyOnExitCodesRequirement::default()
        };
        PodFailurePolicyRule { action: action.into(), on_exit_codes: Some(on_exit_codes), ..Default::default() }
    }

    fn disrupted(action: &str) -> PodFailurePolicyRule {
        let pattern = PodFailurePolicyOnPodConditionsPattern { type_: "Disrupted".into(), status: "True".into() };
        PodFailurePolicyRule { action: action.into(), on_pod_conditions: vec![pattern], ..Default::default() }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let mut failed = pod("p", "Failed", None);
        let mut status = ContainerStatus { name: "c".into(), ..ContainerStatus::default() };
        status.state.terminated = Some(ContainerStateTerminated { exit_code: 42, ..Default::default() });
        failed.status.container_statuses.push(status);
        let condition = PodCondition { type_: "Disrupted".into(), status: "True".into(), ..PodCondition::default() };
        failed.status.conditions.push(condition);
        let by_code = "Container c for pod ns/p failed with exit code 42 matching FailJob rule at index 0";
        let by_condition = "Pod ns/p has condition Disrupted matching FailJob rule at index 1";
        for (name, rules, expected) in [
            ("none", vec![], Meaning::Counts),
            ("exit code", vec![codes(FAIL_JOB, IN, &[1, 42])], Meaning::FailsJob(by_code.into())),
            ("not that code", vec![codes(FAIL_JOB, NOT_IN, &[42])], Meaning::Counts),
            ("condition", vec![codes(IGNORE, IN, &[1]), disrupted(FAIL_JOB)], Meaning::FailsJob(by_condition.into())),
            ("first wins", vec![disrupted(IGNORE), codes(FAIL_JOB, IN, &[42])], Meaning::Ignored),
            ("count", vec![disrupted("Count"), codes(FAIL_JOB, IN, &[42])], Meaning::Counts),
            ("no indexes to fail", vec![disrupted(FAIL_INDEX)], Meaning::Counts),
        ] {
            let mut job = Job::default();
            job.spec.pod_failure_policy = Some(PodFailurePolicy { rules });
            assert_eq!(meaning(&job, &failed), expected, "{name}");
        }
    }
}
