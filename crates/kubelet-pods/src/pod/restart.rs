//! Whether a container that ended is started again.

use api_types::core_v1::constants::container_restart_rule_action::RESTART_ALL_CONTAINERS;
use api_types::core_v1::{Container, ContainerRestartRule, ContainerStateTerminated, Pod};
use component_helpers::pod_state::is_sidecar;

/// Why a container was removed, so that all of its pod begin anew: as its status has it.
pub(crate) const RESTARTING_ALL: &str = "RestartingAllContainers";

/// Whether containers of the pod may have all of them begin anew (KEP-5532).
pub(crate) fn may_restart_all(pod: &Pod) -> bool {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    containers.flat_map(|container| &container.restart_policy_rules).any(|rule| rule.action == RESTART_ALL_CONTAINERS)
}

/// Whether the end of a container with this exit code has all containers of its pod begin anew.
pub(crate) fn restarts_all(pod: &Pod, container: &Container, exit_code: i32) -> bool {
    let has_policy = container.restart_policy.as_deref().is_some_and(|own| !own.is_empty());
    let rule = container.restart_policy_rules.iter().find(|rule| matches(rule, exit_code));
    pod.metadata.deletion_timestamp.is_none()
        && has_policy
        && rule.is_some_and(|rule| rule.action == RESTART_ALL_CONTAINERS)
}

/// Whether a container that ended like this may start again, whatever the pod's deletion.
pub(crate) fn allowed_after(pod: &Pod, container: &Container, ended: &ContainerStateTerminated) -> bool {
    ended.reason == RESTARTING_ALL || allowed(pod, container, ended.exit_code)
}

/// The decision for an exit code, by the container's own policy and rules first, then by the pod's.
pub(crate) fn restarts_after(pod: &Pod, container: &Container, exit_code: i32) -> bool {
    if pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    allowed(pod, container, exit_code)
}

/// The same, whatever the pod's deletion.
pub(crate) fn allowed(pod: &Pod, container: &Container, exit_code: i32) -> bool {
    if is_sidecar(container) && is_init(pod, container) {
        return true;
    }
    let policy = match &container.restart_policy {
        Some(own) if !own.is_empty() => {
            if container.restart_policy_rules.iter().any(|rule| matches(rule, exit_code)) {
                return true;
            }
            own
        }
        _ => &pod.spec.restart_policy,
    };
    match policy.as_str() {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    }
}

/// The policy that holds for what runs and must be stopped (a failed probe): not restarted only where it is `Never`.
pub(crate) fn never(pod: &Pod, container: &Container) -> bool {
    if is_sidecar(container) && is_init(pod, container) {
        return false;
    }
    let own = container.restart_policy.as_deref().filter(|own| !own.is_empty());
    own.unwrap_or(&pod.spec.restart_policy) == "Never"
}

fn is_init(pod: &Pod, container: &Container) -> bool {
    pod.spec.init_containers.iter().any(|init| init.name == container.name)
}

fn matches(rule: &ContainerRestartRule, exit_code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let listed = codes.values.contains(&exit_code);
    match codes.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ContainerRestartRule, ContainerRestartRuleOnExitCodes};

    use super::*;

    #[test]
    fn the_first_rule_decides_whether_all_begin_anew() {
        let rule = |action: &str, values: &[i32]| ContainerRestartRule {
            action: action.into(),
            exit_codes: Some(ContainerRestartRuleOnExitCodes { operator: "In".into(), values: values.to_vec() }),
        };
        let (one, all) = (rule("Restart", &[1]), rule(RESTART_ALL_CONTAINERS, &[1, 2]));
        let mut pod = Pod::default();
        for (rules, code, expected) in [
            (vec![all.clone()], 2, true),
            (vec![all.clone()], 3, false),
            (vec![one.clone(), all.clone()], 1, false),
            (vec![one, all.clone()], 2, true),
            (vec![], 2, false),
        ] {
            let container =
                Container { restart_policy: Some("Never".into()), restart_policy_rules: rules, ..Container::default() };
            assert_eq!(restarts_all(&pod, &container, code), expected, "{code}");
            pod.spec.containers = vec![container];
        }
        assert!(!may_restart_all(&pod));
        pod.spec.containers[0].restart_policy_rules = vec![all];
        assert!(may_restart_all(&pod));
        let removed = ContainerStateTerminated { exit_code: 137, reason: RESTARTING_ALL.into(), ..Default::default() };
        pod.spec.restart_policy = "Never".into();
        assert!(allowed_after(&pod, &Container::default(), &removed));
        let other = ContainerStateTerminated { reason: "Error".into(), ..removed };
        assert!(!allowed_after(&pod, &Container::default(), &other));
    }

    #[test]
    fn policies() {
        let rule = ContainerRestartRule {
            action: "Restart".into(),
            exit_codes: Some(ContainerRestartRuleOnExitCodes { operator: "In".into(), values: vec![42] }),
        };
        for (pod_policy, own, rules, code, expected) in [
            ("Always", None, vec![], 0, true),
            ("OnFailure", None, vec![], 0, false),
            ("OnFailure", None, vec![], 1, true),
            ("Never", None, vec![], 1, false),
            ("Always", Some("Never"), vec![], 1, false),
            ("Always", Some("Never"), vec![rule.clone()], 42, true),
            ("Never", Some("Always"), vec![], 0, true),
        ] {
            let mut pod = Pod::default();
            pod.spec.restart_policy = pod_policy.into();
            let container = Container {
                restart_policy: own.map(str::to_owned),
                restart_policy_rules: rules,
                ..Container::default()
            };
            assert_eq!(restarts_after(&pod, &container, code), expected, "{pod_policy} {own:?} {code}");
        }
    }
}
