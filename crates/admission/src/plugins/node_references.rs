//! Which objects of the API a pod refers to: a node's own static pods may refer to none.

use api_types::core_v1::{Container, Pod, Volume};

/// The first kind of object that the pod refers to, as refusals name it.
pub(super) fn api_reference(pod: &Pod) -> Option<&'static str> {
    let spec = &pod.spec;
    if !spec.service_account_name.is_empty() {
        return Some("serviceaccounts");
    }
    let containers = || spec.init_containers.iter().chain(&spec.containers);
    if !spec.image_pull_secrets.is_empty() || containers().any(|one| uses_environment(one, Kind::Secret)) {
        return Some("secrets");
    }
    if containers().any(|one| uses_environment(one, Kind::ConfigMap)) {
        return Some("configmaps");
    }
    if !spec.resource_claims.is_empty() {
        return Some("resourceclaims");
    }
    spec.volumes.iter().find_map(volume_reference)
}

#[derive(Clone, Copy)]
enum Kind {
    Secret,
    ConfigMap,
}

fn uses_environment(container: &Container, kind: Kind) -> bool {
    let from = container.env_from.iter().any(|source| match kind {
        Kind::Secret => source.secret_ref.is_some(),
        Kind::ConfigMap => source.config_map_ref.is_some(),
    });
    let sources = container.env.iter().filter_map(|variable| variable.value_from.as_ref());
    from || sources.into_iter().any(|source| match kind {
        Kind::Secret => source.secret_key_ref.is_some(),
        Kind::ConfigMap => source.config_map_key_ref.is_some(),
    })
}

fn volume_reference(volume: &Volume) -> Option<&'static str> {
    let source = &volume.volume_source;
    if source.config_map.is_some() {
        return Some("configmaps (via configmap volumes)");
    }
    if source.secret.is_some() {
        return Some("secrets (via secret volumes)");
    }
    if source.csi.is_some() {
        return Some("csidrivers (via CSI volumes)");
    }
    if source.glusterfs.is_some() {
        return Some("endpoints (via glusterFS volumes)");
    }
    if source.persistent_volume_claim.is_some() {
        return Some("persistentvolumeclaims");
    }
    if source.ephemeral.is_some() {
        return Some("persistentvolumeclaims (via ephemeral volumes)");
    }
    if source.azure_file.is_some() {
        return Some("secrets (via azureFile volumes)");
    }
    let projected = source.projected.as_ref()?;
    let refers = |one: &api_types::core_v1::VolumeProjection| {
        one.config_map.is_some() || one.secret.is_some() || one.service_account_token.is_some()
    };
    if projected.sources.iter().any(refers) {
        return Some("configmaps/secrets/serviceaccounts (via projected volumes)");
    }
    projected.sources.iter().any(|one| one.cluster_trust_bundle.is_some()).then_some("clustertrustbundles")
}
