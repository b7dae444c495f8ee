//! Which objects of the API a pod refers to: a node's own static pods may refer to none.

use api_types::core_v1::{Pod, Volume, VolumeProjection};
use component_helpers::pod_references::{Reference, each_reference};

/// The first kind of object that the pod refers to, as refusals name it.
pub(super) fn api_reference(pod: &Pod) -> Option<&'static str> {
    let spec = &pod.spec;
    if !spec.service_account_name.is_empty() {
        return Some("serviceaccounts");
    }
    // Wherever they are named, in volumes of every kind too.
    let (mut secrets, mut config_maps) = (false, false);
    each_reference(spec, &mut |reference| match reference {
        Reference::Secret(_) => secrets = true,
        Reference::ConfigMap(_) => config_maps = true,
        Reference::Claim(_) => {}
    });
    if secrets {
        return Some("secrets");
    }
    if config_maps {
        return Some("configmaps");
    }
    if !spec.resource_claims.is_empty() {
        return Some("resourceclaims");
    }
    spec.volumes.iter().find_map(volume_reference)
}

fn volume_reference(volume: &Volume) -> Option<&'static str> {
    let source = &volume.volume_source;
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
    source.projected.as_ref()?.sources.iter().find_map(projected_reference)
}

fn projected_reference(source: &VolumeProjection) -> Option<&'static str> {
    if source.service_account_token.is_some() {
        return Some("configmaps/secrets/serviceaccounts (via projected volumes)");
    }
    if source.cluster_trust_bundle.is_some() {
        return Some("clustertrustbundles");
    }
    source.pod_certificate.is_some().then_some("podcertificates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_refer_to_objects_are_known() {
        let volume = |source: &str| format!(r#"{{"volumes": [{{"name": "v", {source}}}]}}"#);
        for (spec, expected) in [
            (r#"{"serviceAccountName": "a"}"#.to_owned(), Some("serviceaccounts")),
            (r#"{"imagePullSecrets": [{"name": "t"}]}"#.to_owned(), Some("secrets")),
            (volume(r#""secret": {"secretName": "t"}"#), Some("secrets")),
            (volume(r#""rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "t"}}"#), Some("secrets")),
            (volume(r#""projected": {"sources": [{"secret": {"name": "t"}}]}"#), Some("secrets")),
            (volume(r#""configMap": {"name": "t"}"#), Some("configmaps")),
            (volume(r#""csi": {"driver": "d"}"#), Some("csidrivers (via CSI volumes)")),
            (volume(r#""persistentVolumeClaim": {"claimName": "t"}"#), Some("persistentvolumeclaims")),
            (
                volume(r#""projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}"#),
                Some("configmaps/secrets/serviceaccounts (via projected volumes)"),
            ),
            (
                volume(r#""projected": {"sources": [{"clusterTrustBundle": {"path": "t"}}]}"#),
                Some("clustertrustbundles"),
            ),
            (
                volume(r#""projected": {"sources": [{"podCertificate": {"signerName": "s/t"}}]}"#),
                Some("podcertificates"),
            ),
            (volume(r#""projected": {"sources": [{"downwardAPI": {"items": []}}]}"#), None),
            (volume(r#""hostPath": {"path": "/etc"}"#), None),
        ] {
            let mut pod = Pod::default();
            api_machinery::json::decode(spec.as_bytes(), &mut pod.spec).unwrap();
            assert_eq!(api_reference(&pod), expected, "{spec}");
        }
    }
}
