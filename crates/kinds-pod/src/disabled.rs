//! Fields of pods behind features: dropped while those are off, unless the stored pod or template uses them already.

use api_types::core_v1::{Container, EnvVar, PodSpec};
use feature_gates::shared::{
    CLUSTER_TRUST_BUNDLE_PROJECTION, CONTAINER_RESTART_RULES, ENV_FILES, GENERIC_WORKLOAD, HOSTNAME_OVERRIDE,
    POD_CERTIFICATE_REQUEST, POD_LEVEL_RESOURCES, SPREAD_BY_LABEL_KEYS, STOP_SIGNALS,
};
use feature_gates::{Feature, Gates};
use kinds_frame::gated::{self, Gated};

/// The fields.
pub const GATED: &[Gated<PodSpec>] = &[
    Gated {
        features: &[GENERIC_WORKLOAD],
        used: |spec| spec.scheduling_group.is_some(),
        drop: |spec| spec.scheduling_group = None,
    },
    Gated {
        features: &[CLUSTER_TRUST_BUNDLE_PROJECTION],
        used: |spec| projects(spec, |source| source.cluster_trust_bundle.is_some()),
        drop: |spec| each_projection(spec, |source| source.cluster_trust_bundle = None),
    },
    Gated {
        features: &[POD_CERTIFICATE_REQUEST],
        used: |spec| projects(spec, |source| source.pod_certificate.is_some()),
        drop: |spec| each_projection(spec, |source| source.pod_certificate = None),
    },
    Gated {
        features: &[POD_LEVEL_RESOURCES],
        used: |spec| spec.resources.as_ref().is_some_and(|own| !own.requests.is_empty() || !own.limits.is_empty()),
        drop: |spec| spec.resources = None,
    },
    Gated { features: &[STOP_SIGNALS], used: has_stop_signals, drop: drop_stop_signals },
    Gated { features: &[CONTAINER_RESTART_RULES], used: has_restart_rules, drop: drop_restart_rules },
    Gated { features: &[ENV_FILES], used: has_file_variables, drop: drop_file_variables },
    Gated {
        features: &[HOSTNAME_OVERRIDE],
        used: |spec| spec.hostname_override.is_some(),
        drop: |spec| spec.hostname_override = None,
    },
    Gated {
        features: &[SPREAD_BY_LABEL_KEYS],
        used: |spec| spec.topology_spread_constraints.iter().any(|own| !own.match_label_keys.is_empty()),
        drop: |spec| spec.topology_spread_constraints.iter_mut().for_each(|own| own.match_label_keys.clear()),
    },
];

/// Drops them from the spec of a pod or template. `old` is the stored one on updates.
pub fn drop_fields(spec: &mut PodSpec, old: Option<&PodSpec>, gates: &Gates) {
    gated::drop_disabled(GATED, gates, spec, old);
}

/// Drops the fields of these features, whoever has set them; whether there were any.
pub fn drop_fields_of(spec: &mut PodSpec, features: &[Feature]) -> bool {
    let own = GATED.iter().filter(|gated| gated.features.iter().any(|feature| features.contains(feature)));
    let used: Vec<_> = own.filter(|gated| (gated.used)(spec)).collect();
    used.iter().for_each(|gated| (gated.drop)(spec));
    !used.is_empty()
}

/// What made an init container run beside others was there before, and is no rule.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn has_restart_rules(spec: &PodSpec) -> bool {
    let has_policy = |container: &Container| container.restart_policy.is_some();
    spec.containers.iter().any(has_policy)
        || spec.init_containers.iter().any(|container| has_policy(container) && !is_sidecar(container))
        || spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .any(|container| !container.restart_policy_rules.is_empty())
}

fn drop_restart_rules(spec: &mut PodSpec) {
    for container in &mut spec.containers {
        container.restart_policy = None;
    }
    for container in spec.init_containers.iter_mut().filter(|container| !is_sidecar(container)) {
        container.restart_policy = None;
    }
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        container.restart_policy_rules.clear();
    }
}

/// Whether any variable has its value from a file.
pub(crate) fn has_file_variables(spec: &PodSpec) -> bool {
    let plain = spec.containers.iter().chain(&spec.init_containers).map(|container| &container.env);
    let ephemeral = spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common.env);
    let is_of_file = |own: &EnvVar| own.value_from.as_ref().is_some_and(|source| source.file_key_ref.is_some());
    plain.chain(ephemeral).flatten().any(is_of_file)
}

fn drop_file_variables(spec: &mut PodSpec) {
    let plain = spec.containers.iter_mut().chain(&mut spec.init_containers).map(|container| &mut container.env);
    let ephemeral = spec.ephemeral_containers.iter_mut().map(|own| &mut own.ephemeral_container_common.env);
    for source in plain.chain(ephemeral).flatten().filter_map(|own| own.value_from.as_mut()) {
        source.file_key_ref = None;
    }
}

fn drop_stop_signals(spec: &mut PodSpec) {
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        drop_stop_signal(container);
    }
    for ephemeral in &mut spec.ephemeral_containers {
        drop_signal(&mut ephemeral.ephemeral_container_common.lifecycle);
    }
}

fn drop_stop_signal(container: &mut Container) {
    drop_signal(&mut container.lifecycle);
}

/// A lifecycle that held nothing else goes with it.
fn drop_signal(lifecycle: &mut Option<Box<api_types::core_v1::Lifecycle>>) {
    if let Some(hooks) = lifecycle
        && hooks.stop_signal.take().is_some()
        && hooks.post_start.is_none()
        && hooks.pre_stop.is_none()
    {
        *lifecycle = None;
    }
}

fn each_projection(spec: &mut PodSpec, mut change: impl FnMut(&mut api_types::core_v1::VolumeProjection)) {
    let volumes = spec.volumes.iter_mut().filter_map(|volume| volume.volume_source.projected.as_mut());
    volumes.flat_map(|volume| &mut volume.sources).for_each(&mut change);
}

fn projects(spec: &PodSpec, wanted: impl Fn(&api_types::core_v1::VolumeProjection) -> bool) -> bool {
    let volumes = spec.volumes.iter().filter_map(|volume| volume.volume_source.projected.as_ref());
    volumes.flat_map(|volume| &volume.sources).any(wanted)
}

fn has_stop_signals(spec: &PodSpec) -> bool {
    let plain = spec.containers.iter().chain(&spec.init_containers).map(|container| &container.lifecycle);
    let ephemeral = spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common.lifecycle);
    plain.chain(ephemeral).flatten().any(|hooks| hooks.stop_signal.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &str) -> PodSpec {
        let mut pod = api_types::core_v1::Pod::default();
        api_machinery::json::decode(format!(r#"{{"spec":{spec}}}"#).as_bytes(), &mut pod).expect("a pod");
        pod.spec
    }

    fn switched(side: bool) -> Gates {
        let all = GATED.iter().flat_map(|gated| gated.features);
        all.fold(Gates::default(), |gates, feature| gates.with(*feature, side))
    }

    /// Each field, with what is left of the spec when it is dropped.
    #[test]
    fn fields_go_unless_the_stored_object_has_them() {
        let (on, off) = (switched(true), switched(false));
        let signal = r#"{"stopSignal":"SIGUSR1"}"#;
        for (with, without) in [
            (r#"{"schedulingGroup":{"podGroupName":"g"}}"#.to_owned(), "{}".to_owned()),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"name":"b","path":"p"}}]}}]}"#
                    .to_owned(),
                r#"{"volumes":[{"name":"v","projected":{"sources":[{}]}}]}"#.to_owned(),
            ),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"podCertificate":{"signerName":"a.b/c"}}]}}]}"#
                    .to_owned(),
                r#"{"volumes":[{"name":"v","projected":{"sources":[{}]}}]}"#.to_owned(),
            ),
            (
                format!(r#"{{"containers":[{{"name":"c","lifecycle":{signal}}}]}}"#),
                r#"{"containers":[{"name":"c"}]}"#.to_owned(),
            ),
            (
                format!(r#"{{"initContainers":[{{"name":"c","lifecycle":{signal}}}]}}"#),
                r#"{"initContainers":[{"name":"c"}]}"#.to_owned(),
            ),
            (
                format!(r#"{{"ephemeralContainers":[{{"name":"c","lifecycle":{signal}}}]}}"#),
                r#"{"ephemeralContainers":[{"name":"c"}]}"#.to_owned(),
            ),
            (
                r#"{"containers":[{"restartPolicy":"Never","restartPolicyRules":[{"action":"Restart"}]}]}"#.to_owned(),
                r#"{"containers":[{}]}"#.to_owned(),
            ),
            (
                r#"{"initContainers":[{"restartPolicy":"Always","restartPolicyRules":[{"action":"Restart"}]},
                    {"restartPolicy":"OnFailure"}]}"#
                    .to_owned(),
                r#"{"initContainers":[{"restartPolicy":"Always"},{}]}"#.to_owned(),
            ),
            (
                r#"{"initContainers":[{"env":[{"valueFrom":{"fileKeyRef":{"key":"k"}}}]}]}"#.to_owned(),
                r#"{"initContainers":[{"env":[{"valueFrom":{}}]}]}"#.to_owned(),
            ),
            (
                r#"{"ephemeralContainers":[{"env":[{"valueFrom":{"fileKeyRef":{"key":"k"}}}]}]}"#.to_owned(),
                r#"{"ephemeralContainers":[{"env":[{"valueFrom":{}}]}]}"#.to_owned(),
            ),
            (r#"{"hostnameOverride":"h"}"#.to_owned(), "{}".to_owned()),
            (
                r#"{"topologySpreadConstraints":[{"topologyKey":"k","matchLabelKeys":["a"]}]}"#.to_owned(),
                r#"{"topologySpreadConstraints":[{"topologyKey":"k"}]}"#.to_owned(),
            ),
            (
                r#"{"containers":[{"lifecycle":{"stopSignal":"SIGUSR1","preStop":{"sleep":{"seconds":1}}}}]}"#.to_owned(),
                r#"{"containers":[{"lifecycle":{"preStop":{"sleep":{"seconds":1}}}}]}"#.to_owned(),
            ),
        ] {
            let mut created = read(&with);
            drop_fields(&mut created, None, &off);
            assert_eq!(created, read(&without), "created: {with}");
            let mut updated = read(&with);
            drop_fields(&mut updated, Some(&read(&without)), &off);
            assert_eq!(updated, read(&without), "updated: {with}");
            let mut kept = read(&with);
            drop_fields(&mut kept, Some(&read(&with)), &off);
            assert_eq!(kept, read(&with), "kept: {with}");
            let mut let_be = read(&with);
            drop_fields(&mut let_be, None, &on);
            assert_eq!(let_be, read(&with), "where features are on: {with}");
        }
    }
}
