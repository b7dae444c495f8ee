//! What drivers are asked for. Pure.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use api_types::core_v1::Pod;
use node_api::csi::access_mode;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::csi::v1::volume_capability::access_mode::Mode;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use node_api::csi::v1::{NodePublishVolumeRequest, NodeStageVolumeRequest, VolumeCapability};

use super::volume::CsiVolume;

/// Where drivers find the tokens of the pod's account.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";

/// How a volume is used; `group` is the pod's, for drivers that see to it themselves.
pub(super) fn capability(volume: &CsiVolume, group: Option<i64>, can: &BTreeSet<Capability>) -> VolumeCapability {
    let group = group.filter(|_| can.contains(&Capability::VolumeMountGroup));
    let label = volume.label.iter().map(|label| format!("context={label:?}"));
    let mount = MountVolume {
        fs_type: volume.fs_type.clone(),
        mount_flags: volume.mount_options.iter().cloned().chain(label).collect(),
        volume_mount_group: group.map(|group| group.to_string()).unwrap_or_default(),
    };
    let mode = first_mode(&volume.access_modes, can.contains(&Capability::SingleNodeMultiWriter));
    let access_type = if volume.block { AccessType::Block(BlockVolume {}) } else { AccessType::Mount(mount) };
    VolumeCapability { access_mode: Some(AccessMode { mode: mode.into() }), access_type: Some(access_type) }
}

/// The first of a volume's modes counts.
fn first_mode(modes: &[String], tells_writers: bool) -> Mode {
    access_mode(modes.first().map_or("ReadWriteOnce", String::as_str), tells_writers)
}

fn fs_group(pod: &Pod) -> Option<i64> {
    pod.spec.security_context.as_ref()?.fs_group
}

/// To make a volume ready for all pods.
pub(super) fn stage(
    volume: &CsiVolume,
    staging: &Path,
    publish_context: HashMap<String, String>,
    secrets: HashMap<String, String>,
    can: &BTreeSet<Capability>,
) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: volume.handle.clone(),
        publish_context,
        staging_target_path: staging.display().to_string(),
        // Pods that share the volume may be of several groups; publishing tells which.
        volume_capability: Some(capability(volume, None, can)),
        secrets,
        volume_context: volume.attributes.clone().into_iter().collect(),
    }
}

/// What a volume is published with.
pub(super) struct Publish<'a> {
    pub(super) pod: &'a Pod,
    pub(super) volume: &'a CsiVolume,
    pub(super) target: &'a Path,
    /// Where it is staged, if it is.
    pub(super) staging: Option<&'a Path>,
    pub(super) read_only: bool,
    pub(super) publish_context: HashMap<String, String>,
    pub(super) secrets: HashMap<String, String>,
    pub(super) tokens: Option<String>,
    pub(super) capabilities: &'a BTreeSet<Capability>,
}

impl Publish<'_> {
    /// To bring a volume into place for a pod.
    pub(super) fn build(mut self) -> NodePublishVolumeRequest {
        let volume = self.volume;
        let mut volume_context: HashMap<String, String> = volume.attributes.clone().into_iter().collect();
        if volume.facts.pod_info {
            volume_context.extend(self.pod_info());
        }
        if let Some(tokens) = self.tokens.take() {
            let kept = if volume.facts.tokens_in_secrets { &mut self.secrets } else { &mut volume_context };
            kept.insert(TOKENS.to_owned(), tokens);
        }
        NodePublishVolumeRequest {
            volume_id: volume.handle.clone(),
            publish_context: self.publish_context,
            staging_target_path: self.staging.map(|path| path.display().to_string()).unwrap_or_default(),
            target_path: self.target.display().to_string(),
            volume_capability: Some(capability(volume, fs_group(self.pod), self.capabilities)),
            readonly: self.read_only,
            secrets: self.secrets,
            volume_context,
        }
    }

    /// What drivers that ask for it are told of the pod.
    fn pod_info(&self) -> [(String, String); 5] {
        let meta = &self.pod.metadata;
        [
            ("pod.name", meta.name.clone()),
            ("pod.namespace", meta.namespace.clone()),
            ("pod.uid", meta.uid.clone()),
            ("serviceAccount.name", self.pod.spec.service_account_name.clone()),
            ("ephemeral", self.volume.is_inline().to_string()),
        ]
        .map(|(name, value)| (format!("csi.storage.k8s.io/{name}"), value))
    }
}

#[cfg(test)]
mod tests {
    use api_types::storage_v1::CSIDriver;

    use super::super::Facts;
    use super::*;

    #[test]
    fn tokens_are_where_the_driver_wants_them() {
        for (in_secrets, secrets, context) in [(None, 0, 1), (Some(false), 0, 1), (Some(true), 1, 0)] {
            let mut driver = CSIDriver::default();
            driver.spec.service_account_token_in_secrets = in_secrets;
            let pod = Pod::default();
            let volume = CsiVolume::inline(&pod, "v", &Default::default()).with(Facts::of(Some(&driver)));
            let request = Publish {
                pod: &pod,
                volume: &volume,
                target: Path::new("/target"),
                staging: None,
                read_only: false,
                publish_context: HashMap::new(),
                secrets: HashMap::new(),
                tokens: Some("{}".into()),
                capabilities: &BTreeSet::new(),
            }
            .build();
            assert_eq!((request.secrets.len(), request.volume_context.len()), (secrets, context), "{in_secrets:?}");
        }
    }

    #[test]
    fn modes_are_told_as_the_driver_knows_them() {
        let cases = [
            (&["ReadWriteOnce"][..], Mode::SingleNodeWriter, Mode::SingleNodeMultiWriter),
            (&["ReadWriteOncePod"], Mode::SingleNodeWriter, Mode::SingleNodeSingleWriter),
            (&["ReadOnlyMany"], Mode::MultiNodeReaderOnly, Mode::MultiNodeReaderOnly),
            (&["ReadWriteMany", "ReadWriteOnce"], Mode::MultiNodeMultiWriter, Mode::MultiNodeMultiWriter),
            (&[], Mode::SingleNodeWriter, Mode::SingleNodeMultiWriter),
            (&["Other"], Mode::Unknown, Mode::Unknown),
        ];
        for (modes, plain, telling) in cases {
            let modes: Vec<String> = modes.iter().map(ToString::to_string).collect();
            assert_eq!((first_mode(&modes, false), first_mode(&modes, true)), (plain, telling), "{modes:?}");
        }
    }
}
