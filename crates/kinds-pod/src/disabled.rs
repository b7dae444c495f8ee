//! Fields of pods behind features: dropped while those are off, unless the stored pod or template uses them already.

use api_types::core_v1::{Container, PodSpec};
use feature_gates::Gates;
use feature_gates::shared::{CLUSTER_TRUST_BUNDLE_PROJECTION, GENERIC_WORKLOAD, POD_CERTIFICATE_REQUEST, STOP_SIGNALS};
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
    Gated { features: &[STOP_SIGNALS], used: has_stop_signals, drop: drop_stop_signals },
];

/// Drops them from the spec of a pod or template. `old` is the stored one on updates.
pub fn drop_fields(spec: &mut PodSpec, old: Option<&PodSpec>, gates: &Gates) {
    gated::drop_disabled(GATED, gates, spec, old);
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

    /// Each field, with what is left of the spec when it is dropped.
    #[test]
    fn fields_go_unless_the_stored_object_has_them() {
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
                r#"{"containers":[{"lifecycle":{"stopSignal":"SIGUSR1","preStop":{"sleep":{"seconds":1}}}}]}"#.to_owned(),
                r#"{"containers":[{"lifecycle":{"preStop":{"sleep":{"seconds":1}}}}]}"#.to_owned(),
            ),
        ] {
            let mut created = read(&with);
            drop_fields(&mut created, None, &Gates::default());
            assert_eq!(created, read(&without), "created: {with}");
            let mut updated = read(&with);
            drop_fields(&mut updated, Some(&read(&without)), &Gates::default());
            assert_eq!(updated, read(&without), "updated: {with}");
            let mut kept = read(&with);
            drop_fields(&mut kept, Some(&read(&with)), &Gates::default());
            assert_eq!(kept, read(&with), "kept: {with}");
            let on = GATED.iter().flat_map(|gated| gated.features);
            let on = on.fold(Gates::default(), |gates, feature| gates.with(*feature, true));
            let mut let_be = read(&with);
            drop_fields(&mut let_be, None, &on);
            assert_eq!(let_be, read(&with), "where features are on: {with}");
        }
    }
}
