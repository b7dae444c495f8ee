//! Objects with the defaults that their tables state.

use api_machinery::reflect::Reflect;

use crate::*;

#[test]
fn a_deployment_is_filled_in() {
    let mut deployment = apps_v1::Deployment::default();
    deployment.spec.template.spec.containers.push(core_v1::Container { name: "c".into(), ..Default::default() });
    deployment.spec.template.spec.volumes.push(core_v1::Volume { name: "v".into(), ..Default::default() });
    api_machinery::defaults::fill(&mut deployment as &mut dyn Reflect);
    let spec = &deployment.spec;
    assert_eq!(
        (spec.replicas, spec.revision_history_limit, spec.progress_deadline_seconds),
        (Some(1), Some(10), Some(600))
    );
    assert_eq!(spec.strategy.type_, "RollingUpdate");
    let pod = &spec.template.spec;
    assert_eq!((pod.dns_policy.as_str(), pod.restart_policy.as_str()), ("ClusterFirst", "Always"));
    assert_eq!(pod.termination_grace_period_seconds, Some(30));
    assert!(pod.security_context.is_some());
    assert_eq!(pod.containers[0].termination_message_path, "/dev/termination-log");
}
