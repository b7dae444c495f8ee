//! What a driver is asked for. Pure.

use std::collections::BTreeMap;

use api_types::core_v1::constants::{persistent_volume_access_mode as access, persistent_volume_mode as mode};
use api_types::core_v1::{PersistentVolumeClaim, SecretReference};
use api_types::storage_v1::StorageClass;
use component_helpers::volumes::matching::storage;
use node_api::csi::access_mode;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use node_api::csi::v1::{CapacityRange, CreateVolumeRequest, VolumeCapability};

use crate::names::RESERVED;
use crate::secrets::{Purpose, SecretError, Terms, resolve};

/// The parameter that names the filesystem, as it is and as it was.
const FS_TYPE: [&str; 2] = ["csi.storage.k8s.io/fstype", "fstype"];

/// Why a claim cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("found unknown parameter key \"{0}\" with reserved namespace csi.storage.k8s.io/")]
    Parameter(String),
    #[error("fstype specified in parameters with both \"fsType\" and \"csi.storage.k8s.io/fstype\" keys")]
    TwoFsTypes,
    #[error("claim Selector is not supported")]
    Selector,
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// What a class says to the provisioner, and what to the driver.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) fs_type: Option<String>,
    pub(crate) secrets: BTreeMap<Purpose, SecretReference>,
    /// The driver's own.
    pub(crate) parameters: BTreeMap<String, String>,
}

/// Takes the parameters of a class apart.
///
/// # Errors
/// When they say what nobody knows.
pub(crate) fn said(class: &StorageClass, volume: &str, claim: &PersistentVolumeClaim) -> Result<Said, Unfit> {
    let (mut said, terms) = (Said::default(), Terms::of_claim(volume, claim));
    let mut of_secrets = Vec::new();
    for purpose in Purpose::OF_VOLUMES {
        of_secrets.extend(purpose.parameters());
        if let Some(secret) = resolve(purpose, &class.parameters, &terms)? {
            said.secrets.insert(purpose, secret);
        }
    }
    for (key, value) in &class.parameters {
        // The older name is known in any case.
        let lower = key.to_lowercase();
        if FS_TYPE.contains(&lower.as_str()) {
            if said.fs_type.replace(value.clone()).is_some() {
                return Err(Unfit::TwoFsTypes);
            }
        } else if !key.starts_with(RESERVED) {
            said.parameters.insert(key.clone(), value.clone());
        } else if !of_secrets.contains(key) {
            return Err(Unfit::Parameter(key.clone()));
        }
    }
    Ok(said)
}

/// Whether a claim wants a device.
pub(crate) fn wants_block(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.volume_mode.as_deref() == Some(mode::BLOCK)
}

/// Everything else that a request depends on.
pub(crate) struct Asking<'a> {
    pub(crate) claim: &'a PersistentVolumeClaim,
    pub(crate) class: &'a StorageClass,
    /// The name of the volume to be.
    pub(crate) volume: &'a str,
    pub(crate) fs_type: &'a str,
    pub(crate) tells_names: bool,
    pub(crate) tells_writers: bool,
}

impl Asking<'_> {
    /// How the volume is to be used: one capability for each access mode.
    pub(crate) fn capabilities(&self) -> Vec<VolumeCapability> {
        let access_type = if wants_block(self.claim) {
            AccessType::Block(BlockVolume {})
        } else {
            AccessType::Mount(MountVolume {
                fs_type: self.fs_type.to_owned(),
                mount_flags: self.class.mount_options.clone(),
                volume_mount_group: String::new(),
            })
        };
        let once = [access::READ_WRITE_ONCE.to_owned()];
        let modes =
            if self.claim.spec.access_modes.is_empty() { &once } else { self.claim.spec.access_modes.as_slice() };
        let of_mode = |mode: &String| VolumeCapability {
            access_mode: Some(AccessMode { mode: access_mode(mode, self.tells_writers).into() }),
            access_type: Some(access_type.clone()),
        };
        modes.iter().map(of_mode).collect()
    }

    /// The request, but for secrets, places and what the volume starts with.
    ///
    /// # Errors
    /// When the claim asks for what drivers cannot do.
    pub(crate) fn request(&self, parameters: &BTreeMap<String, String>) -> Result<CreateVolumeRequest, Unfit> {
        if self.claim.spec.selector.is_some() {
            return Err(Unfit::Selector);
        }
        let mut parameters = parameters.clone();
        if self.tells_names {
            let meta = &self.claim.metadata;
            parameters.extend(
                [("pvc/name", &meta.name), ("pvc/namespace", &meta.namespace), ("pv/name", &self.volume.to_owned())]
                    .map(|(key, value)| (format!("{RESERVED}{key}"), value.clone())),
            );
        }
        let limit = self.claim.spec.resources.limits.get("storage").map_or(0, api_machinery::quantity::Quantity::value);
        Ok(CreateVolumeRequest {
            name: self.volume.to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes: storage(&self.claim.spec.resources.requests).value(),
                limit_bytes: limit,
            }),
            volume_capabilities: self.capabilities(),
            parameters: parameters.into_iter().collect(),
            ..CreateVolumeRequest::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use node_api::csi::v1::volume_capability::access_mode::Mode;

    use super::*;

    fn class(parameters: &[(&str, &str)]) -> StorageClass {
        let parameters = parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        StorageClass { parameters, mount_options: vec!["noexec".into()], ..StorageClass::default() }
    }

    #[test]
    fn parameters_are_the_provisioners_or_the_drivers() {
        let claim = PersistentVolumeClaim::default();
        let found = said(
            &class(&[
                ("csi.storage.k8s.io/fstype", "xfs"),
                ("csi.storage.k8s.io/node-stage-secret-name", "s-${pv.name}"),
                ("csi.storage.k8s.io/node-stage-secret-namespace", "ns"),
                ("tier", "gold"),
            ]),
            "pvc-1",
            &claim,
        )
        .unwrap();
        assert_eq!(found.fs_type.as_deref(), Some("xfs"));
        assert_eq!(found.parameters, BTreeMap::from([("tier".to_owned(), "gold".to_owned())]));
        assert_eq!(found.secrets[&Purpose::NodeStage].name, "s-pvc-1");
        for (parameters, expected) in [
            (&[("csi.storage.k8s.io/other", "x")][..], Unfit::Parameter("csi.storage.k8s.io/other".into())),
            (&[("csi.storage.k8s.io/fstype", "a"), ("fsType", "b")], Unfit::TwoFsTypes),
            (&[("csi.storage.k8s.io/provisioner-secret-name", "s")], Unfit::Secret(SecretError::Half("provisioner"))),
        ] {
            assert_eq!(said(&class(parameters), "v", &claim), Err(expected));
        }
    }

    fn asking<'a>(class: &'a StorageClass, claim: &'a PersistentVolumeClaim, tells_names: bool) -> Asking<'a> {
        Asking { claim, class, volume: "pvc-1", fs_type: "ext4", tells_names, tells_writers: true }
    }

    #[test]
    fn a_claim_becomes_a_request() {
        let class = class(&[]);
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.namespace) = ("c".into(), "ns".into());
        claim.spec.resources.requests.insert("storage".into(), "1Mi".parse().unwrap());
        claim.spec.access_modes = vec!["ReadWriteOnce".into(), "ReadOnlyMany".into()];
        let request = asking(&class, &claim, true).request(&BTreeMap::new()).unwrap();
        assert_eq!(request.name, "pvc-1");
        assert_eq!(request.capacity_range.unwrap().required_bytes, 1024 * 1024);
        assert_eq!(request.parameters["csi.storage.k8s.io/pvc/name"], "c");
        let modes: Vec<_> =
            request.volume_capabilities.iter().map(|one| one.access_mode.as_ref().unwrap().mode()).collect();
        assert_eq!(modes, [Mode::SingleNodeMultiWriter, Mode::MultiNodeReaderOnly]);
        let Some(AccessType::Mount(mount)) = &request.volume_capabilities[0].access_type else {
            panic!("a filesystem")
        };
        assert_eq!((mount.fs_type.as_str(), mount.mount_flags.as_slice()), ("ext4", &["noexec".to_owned()][..]));
        claim.spec.volume_mode = Some("Block".into());
        let request = asking(&class, &claim, false).request(&BTreeMap::new()).unwrap();
        assert!(matches!(request.volume_capabilities[0].access_type, Some(AccessType::Block(_))));
        assert!(request.parameters.is_empty());
        claim.spec.selector = Some(Default::default());
        assert_eq!(asking(&class, &claim, false).request(&BTreeMap::new()), Err(Unfit::Selector));
    }
}
