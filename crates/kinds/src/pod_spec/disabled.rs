//! Fields behind features that are off: dropped when an object is written, unless the stored one uses them already.

use api_types::core_v1::{Container, PodSpec};

/// Drops them from the spec of a pod or template. `old` is the stored one on updates.
pub(crate) fn drop_fields(spec: &mut PodSpec, old: Option<&PodSpec>) {
    let stored = |uses: fn(&PodSpec) -> bool| old.is_some_and(uses);
    if !stored(|old| old.scheduling_group.is_some()) {
        spec.scheduling_group = None;
    }
    if !stored(has_trust_bundles) {
        each_projection(spec, |source| source.cluster_trust_bundle = None);
    }
    if !stored(has_certificates) {
        each_projection(spec, |source| source.pod_certificate = None);
    }
    if !stored(has_stop_signals) {
        for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
            drop_stop_signal(container);
        }
        for ephemeral in &mut spec.ephemeral_containers {
            drop_signal(&mut ephemeral.ephemeral_container_common.lifecycle);
        }
    }
}

fn drop_stop_signal(container: &mut Container) {
    drop_signal(&mut container.lifecycle);
}

/// A lifecycle that held nothing else goes with it.
fn drop_signal(lifecycle: &mut Option<api_types::core_v1::Lifecycle>) {
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

fn has_trust_bundles(spec: &PodSpec) -> bool {
    projects(spec, |source| source.cluster_trust_bundle.is_some())
}

fn has_certificates(spec: &PodSpec) -> bool {
    projects(spec, |source| source.pod_certificate.is_some())
}

fn has_stop_signals(spec: &PodSpec) -> bool {
    let signal = |container: &Container| container.lifecycle.as_ref().is_some_and(|hooks| hooks.stop_signal.is_some());
    spec.containers.iter().chain(&spec.init_containers).any(signal)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Lifecycle;

    use super::*;

    #[test]
    fn fields_in_use_stay() {
        let hooks = Lifecycle { stop_signal: Some("SIGUSR1".into()), ..Lifecycle::default() };
        let container = Container { lifecycle: Some(hooks), ..Container::default() };
        let mut spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        let stored = spec.clone();
        drop_fields(&mut spec, Some(&stored));
        assert_eq!(spec, stored);
        drop_fields(&mut spec, None);
        assert!(spec.containers[0].lifecycle.is_none());
    }
}
