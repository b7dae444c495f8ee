//! What the driver can do with volumes, and where.

use std::collections::HashMap;

use node_api::csi::v1::volume_capability::AccessType;
use node_api::csi::v1::volume_capability::access_mode::Mode;
use node_api::csi::v1::{Topology, TopologyRequirement, VolumeCapability};
use sys::mounts::Restrictions;
use tonic::Status;

use crate::record::Kind;

/// How somebody wants to use a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) kind: Kind,
    pub(crate) read_only: bool,
    /// Nobody else on the node has it at the same time.
    pub(crate) alone: bool,
    pub(crate) restrictions: Restrictions,
}

/// Reads one capability.
///
/// # Errors
/// `INVALID_ARGUMENT` where there is none, or it is one that the driver does not have.
pub(crate) fn read(capability: Option<&VolumeCapability>) -> Result<Use, Status> {
    let capability = capability.ok_or_else(|| Status::invalid_argument("volume_capability is required"))?;
    let mode = capability.access_mode.as_ref().map_or(Mode::Unknown, |mode| mode.mode());
    let (read_only, alone) = match mode {
        Mode::SingleNodeWriter | Mode::SingleNodeMultiWriter => (false, false),
        Mode::SingleNodeSingleWriter => (false, true),
        Mode::SingleNodeReaderOnly => (true, false),
        Mode::Unknown => return Err(Status::invalid_argument("volume_capability.access_mode is required")),
        other => {
            let mode = other.as_str_name();
            return Err(Status::invalid_argument(format!("access mode {mode}: volumes are reachable from one node")));
        }
    };
    let restrictions = Restrictions::default();
    match &capability.access_type {
        None => Err(Status::invalid_argument("volume_capability.access_type is required")),
        Some(AccessType::Block(_)) => Ok(Use { kind: Kind::Block, read_only, alone, restrictions }),
        Some(AccessType::Mount(mount)) => {
            if !mount.fs_type.is_empty() {
                let kind = &mount.fs_type;
                return Err(Status::invalid_argument(format!("fs_type {kind}: volumes are directories, leave it out")));
            }
            let mut wanted = Use { kind: Kind::Directory, read_only, alone, restrictions };
            mount.mount_flags.iter().try_for_each(|flag| wanted.set_flag(flag))?;
            Ok(wanted)
        }
    }
}

/// The kind of a volume that all of these are about.
///
/// # Errors
/// As [`read`], and where there is none, or they do not agree.
pub(crate) fn kind_of(capabilities: &[VolumeCapability]) -> Result<Kind, Status> {
    let mut kind = None;
    for capability in capabilities {
        let wanted = read(Some(capability))?.kind;
        if kind.replace(wanted).is_some_and(|former| former != wanted) {
            return Err(Status::invalid_argument("a volume is a filesystem or a block device, not both"));
        }
    }
    kind.ok_or_else(|| Status::invalid_argument("volume_capabilities are required"))
}

impl Use {
    fn set_flag(&mut self, flag: &str) -> Result<(), Status> {
        match flag {
            "rw" => {}
            "ro" => self.read_only = true,
            "noexec" => self.restrictions.no_exec = true,
            "nosuid" => self.restrictions.no_suid = true,
            "nodev" => self.restrictions.no_dev = true,
            other => return Err(Status::invalid_argument(format!("mount flag {other:?} is not supported"))),
        }
        Ok(())
    }
}

/// Whether a volume that is reachable from `own` alone is one that is asked for.
pub(crate) fn is_accessible(requirement: Option<&TopologyRequirement>, own: &HashMap<String, String>) -> bool {
    requirement.is_none_or(|requirement| {
        requirement.requisite.is_empty() || requirement.requisite.iter().any(|topology| is_here(topology, own))
    })
}

/// Whether a place is, or holds, `own`.
pub(crate) fn is_here(topology: &Topology, own: &HashMap<String, String>) -> bool {
    topology.segments.iter().all(|(key, value)| own.get(key) == Some(value))
}

/// A text of the caller's that must be there, and is not longer than the specification allows.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming the field.
pub(crate) fn required<'a>(field: &str, text: &'a str) -> Result<&'a str, Status> {
    /// Of strings that are said nothing else of.
    const LONGEST_BYTES: usize = 128;
    if text.is_empty() {
        return Err(Status::invalid_argument(format!("{field} is required")));
    }
    if text.len() > LONGEST_BYTES {
        return Err(Status::invalid_argument(format!("{field} is longer than {LONGEST_BYTES} bytes")));
    }
    Ok(text)
}

/// The driver has no parameters of its own.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming one that is not the provisioner's or the snapshotter's.
pub(crate) fn no_parameters(parameters: &HashMap<String, String>) -> Result<(), Status> {
    /// What they tell of the claim, for whoever is interested.
    const THEIRS: &str = "csi.storage.k8s.io/";
    match parameters.keys().find(|key| !key.starts_with(THEIRS)) {
        Some(unknown) => Err(Status::invalid_argument(format!("parameter {unknown:?} is not known"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use node_api::csi::v1::volume_capability::{AccessMode, BlockVolume, MountVolume};
    use tonic::Code;

    use super::*;

    fn mount(mode: Mode, flags: &[&str], fs_type: &str) -> VolumeCapability {
        VolumeCapability {
            access_mode: Some(AccessMode { mode: mode.into() }),
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: fs_type.into(),
                mount_flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
                volume_mount_group: String::new(),
            })),
        }
    }

    fn block(mode: Mode) -> VolumeCapability {
        let access_type = Some(AccessType::Block(BlockVolume {}));
        VolumeCapability { access_mode: Some(AccessMode { mode: mode.into() }), access_type }
    }

    #[test]
    fn what_is_possible_on_one_node() {
        let good = [
            (mount(Mode::SingleNodeWriter, &["noexec", "rw"], ""), (Kind::Directory, false, false, true)),
            (mount(Mode::SingleNodeMultiWriter, &["ro"], ""), (Kind::Directory, true, false, false)),
            (block(Mode::SingleNodeReaderOnly), (Kind::Block, true, false, false)),
            (block(Mode::SingleNodeSingleWriter), (Kind::Block, false, true, false)),
        ];
        for (capability, expected) in good {
            let wanted = read(Some(&capability)).unwrap();
            let found = (wanted.kind, wanted.read_only, wanted.alone, wanted.restrictions.no_exec);
            assert_eq!(found, expected, "{capability:?}");
        }
        let no_type = VolumeCapability { access_type: None, ..block(Mode::SingleNodeWriter) };
        let no_mode = VolumeCapability { access_mode: None, ..block(Mode::SingleNodeWriter) };
        let bad = [
            Some(block(Mode::MultiNodeMultiWriter)),
            Some(mount(Mode::MultiNodeReaderOnly, &[], "")),
            Some(mount(Mode::SingleNodeWriter, &["loop"], "")),
            Some(mount(Mode::SingleNodeWriter, &[], "ext4")),
            Some(no_type),
            Some(no_mode),
            None,
        ];
        for capability in bad {
            assert_eq!(read(capability.as_ref()).unwrap_err().code(), Code::InvalidArgument, "{capability:?}");
        }
    }

    #[test]
    fn parameters_that_nobody_reads_are_refused() {
        for (key, expected) in [("csi.storage.k8s.io/pvc/name", true), ("type", false)] {
            let parameters = HashMap::from([(key.to_owned(), "a".to_owned())]);
            assert_eq!(no_parameters(&parameters).is_ok(), expected, "{key}");
        }
    }

    #[test]
    fn a_volume_is_of_one_kind() {
        let (mount, block) = (mount(Mode::SingleNodeWriter, &[], ""), block(Mode::SingleNodeWriter));
        assert_eq!(kind_of(&[block.clone(), block.clone()]).unwrap(), Kind::Block);
        for bad in [vec![], vec![mount, block]] {
            assert_eq!(kind_of(&bad).unwrap_err().code(), Code::InvalidArgument);
        }
    }

    #[test]
    fn places_are_told_by_all_of_their_segments() {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let own = map(&[("node", "a"), ("zone", "z")]);
        let cases = [
            (vec![], true),
            (vec![vec![("node", "a")]], true),
            (vec![vec![("node", "b")], vec![("node", "a")]], true),
            (vec![vec![("node", "a"), ("zone", "y")]], false),
            (vec![vec![("rack", "1")]], false),
        ];
        for (requisite, expected) in cases {
            let requisite = requisite.iter().map(|pairs| Topology { segments: map(pairs) }).collect();
            let requirement = TopologyRequirement { requisite, preferred: Vec::new() };
            assert_eq!(is_accessible(Some(&requirement), &own), expected, "{requirement:?}");
        }
    }
}
