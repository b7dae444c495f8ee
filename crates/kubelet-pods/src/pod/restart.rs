//! Whether a container that ended is started again.

use api_types::core_v1::{Container, Pod};
use component_helpers::pod_state::is_sidecar;

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

fn matches(rule: &api_types::core_v1::ContainerRestartRule, exit_code: i32) -> bool {
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
