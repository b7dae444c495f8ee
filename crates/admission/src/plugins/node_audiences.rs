//! The audiences that NodeRestriction lets a node ask tokens for: those that a pod's volumes, or the drivers of these, need.

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use api_types::storage_v1::CSIDriver;
use component_helpers::volumes::names::migrated_driver;
use component_helpers::volumes::of_pods::claim_name;

use crate::{Attributes, Context, ResourceAttributes};

/// Checks the audience of a token for one of the node's pods.
pub(super) async fn check(cx: &Context, attributes: &Attributes, pod: &Pod, audience: &str) -> Result<(), ApiError> {
    if is_needed(cx, pod, audience)
        .map_err(|why| attributes.forbidden(format_args!("error validating audience {audience:?}: {why}")))?
    {
        return Ok(());
    }
    let (verb, name) = ("request-serviceaccounts-token-audience", &attributes.name);
    let access = ResourceAttributes {
        verb,
        resource: audience,
        namespace: &attributes.namespace,
        name,
        ..ResourceAttributes::default()
    };
    if cx.lookup.is_allowed(&attributes.user, &access).await {
        return Ok(());
    }
    Err(attributes.forbidden(format_args!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        attributes.user.username
    )))
}

/// Whether any volume needs such tokens; what could not be found out counts only where none does.
fn is_needed(cx: &Context, pod: &Pod, audience: &str) -> Result<bool, String> {
    let mut problems = Vec::new();
    for volume in &pod.spec.volumes {
        let sources = volume.volume_source.projected.iter().flat_map(|projected| &projected.sources);
        let mut tokens = sources.filter_map(|source| source.service_account_token.as_ref());
        if tokens.any(|token| token.audience == audience) {
            return Ok(true);
        }
        match driver_asks(cx, pod, volume, audience) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => problems.push(error.message),
        }
    }
    match problems.as_slice() {
        [] => Ok(false),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn driver_asks(cx: &Context, pod: &Pod, volume: &Volume, audience: &str) -> Result<bool, ApiError> {
    let Some(name) = driver_of(cx, pod, volume)? else { return Ok(false) };
    let missing = || ApiError::not_found(&GroupResource::new("storage.k8s.io", "csidriver"), &name);
    let driver = cx.lookup.get::<CSIDriver>("", &name).ok_or_else(missing)?;
    Ok(driver.spec.token_requests.iter().any(|request| request.audience == audience))
}

/// The driver that serves one of these sources, which stood in the tree once.
macro_rules! migrated {
    ($source:expr) => {
        [
            ($source.aws_elastic_block_store.is_some(), "kubernetes.io/aws-ebs"),
            ($source.gce_persistent_disk.is_some(), "kubernetes.io/gce-pd"),
            ($source.cinder.is_some(), "kubernetes.io/cinder"),
            ($source.azure_disk.is_some(), "kubernetes.io/azure-disk"),
            ($source.azure_file.is_some(), "kubernetes.io/azure-file"),
            ($source.vsphere_volume.is_some(), "kubernetes.io/vsphere-volume"),
            ($source.portworx_volume.is_some(), "kubernetes.io/portworx-volume"),
        ]
        .into_iter()
        .find(|(has, _)| *has)
        .and_then(|(_, plugin)| migrated_driver(plugin))
        .map(str::to_owned)
    };
}

/// The CSI driver of a volume, if it has one.
fn driver_of(cx: &Context, pod: &Pod, volume: &Volume) -> Result<Option<String>, ApiError> {
    let source = &volume.volume_source;
    if let Some(own) = &source.csi {
        return Ok(Some(own.driver.clone()));
    }
    let Some(claim) = claim_name(pod, volume) else { return Ok(migrated!(source)) };
    let missing = |resource: &'static str, name: &str| ApiError::not_found(&GroupResource::new("", resource), name);
    let claim = cx
        .lookup
        .get::<PersistentVolumeClaim>(&pod.metadata.namespace, &claim)
        .ok_or_else(|| missing("persistentvolumeclaim", &claim))?;
    let name = &claim.spec.volume_name;
    let bound = cx.lookup.get::<PersistentVolume>("", name).ok_or_else(|| missing("persistentvolume", name))?;
    let source = &bound.spec.persistent_volume_source;
    Ok(source.csi.as_ref().map(|own| own.driver.clone()).or_else(|| migrated!(source)))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{
        AzureFileVolumeSource, CSIPersistentVolumeSource, CSIVolumeSource, EphemeralVolumeSource,
        PersistentVolumeClaimVolumeSource, VolumeSource,
    };
    use api_types::storage_v1::TokenRequest;

    use super::*;
    use crate::plugins::testing::Fixture;

    fn driver(name: &str) -> CSIDriver {
        let mut driver = CSIDriver::default();
        driver.metadata.name = name.into();
        driver.spec.token_requests = vec![TokenRequest { audience: "vault".into(), ..TokenRequest::default() }];
        driver
    }

    fn claim(name: &str, volume: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.namespace, claim.metadata.name) = ("a".into(), name.into());
        claim.spec.volume_name = volume.into();
        claim
    }

    fn pod(source: VolumeSource) -> Pod {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("a".into(), "mine".into());
        pod.spec.volumes.push(Volume { name: "v".into(), volume_source: source });
        pod
    }

    fn inline(driver: &str) -> VolumeSource {
        let source = CSIVolumeSource { driver: driver.into(), ..CSIVolumeSource::default() };
        VolumeSource { csi: Some(source.into()), ..VolumeSource::default() }
    }

    fn claimed(name: &str) -> VolumeSource {
        let source = PersistentVolumeClaimVolumeSource { claim_name: name.into(), ..Default::default() };
        VolumeSource { persistent_volume_claim: Some(source), ..VolumeSource::default() }
    }

    #[test]
    fn drivers_of_volumes_ask_for_tokens() {
        let mut volume = PersistentVolume::default();
        volume.metadata.name = "disk".into();
        let source = CSIPersistentVolumeSource { driver: "d".into(), ..CSIPersistentVolumeSource::default() };
        volume.spec.persistent_volume_source.csi = Some(source);
        let cx = Fixture::default()
            .with(vec![driver("d"), driver("file.csi.azure.com")])
            .with(vec![claim("data", "disk"), claim("mine-v", "disk"), claim("lost", "gone")])
            .with(vec![volume])
            .context();
        let ephemeral =
            VolumeSource { ephemeral: Some(EphemeralVolumeSource::default().into()), ..VolumeSource::default() };
        let migrated =
            VolumeSource { azure_file: Some(AzureFileVolumeSource::default().into()), ..VolumeSource::default() };
        for (source, expected) in [
            (inline("d"), Ok(true)),
            (claimed("data"), Ok(true)),
            (ephemeral, Ok(true)),
            (migrated, Ok(true)),
            (VolumeSource::default(), Ok(false)),
            (inline("other"), Err("csidriver.storage.k8s.io \"other\" not found")),
            (claimed("none"), Err("persistentvolumeclaim \"none\" not found")),
            (claimed("lost"), Err("persistentvolume \"gone\" not found")),
        ] {
            let shown = format!("{source:?}");
            assert_eq!(is_needed(&cx, &pod(source), "vault"), expected.map_err(str::to_owned), "{shown}");
        }
        assert_eq!(is_needed(&cx, &pod(inline("d")), "bank"), Ok(false));
        let mut both = pod(inline("other"));
        both.spec.volumes.push(Volume { name: "w".into(), volume_source: inline("d") });
        assert_eq!(is_needed(&cx, &both, "vault"), Ok(true), "one that needs it is enough");
    }
}
