//! Turns the `.proto` files in `proto/` into Rust. Nothing generated is committed.

use std::path::{Path, PathBuf};

/// The directory of all `.proto` files, relative to this crate.
const ROOT: &str = "../../proto";
const FILES: [&str; 7] = [
    "cri/v1/runtime.proto",
    "csi/v1/csi.proto",
    "deviceplugin/v1beta1/api.proto",
    "dra/v1/api.proto",
    "drahealth/v1alpha1/api.proto",
    "pluginregistration/v1/api.proto",
    "podresources/v1/api.proto",
];
/// Their hand-written Debug hides the credentials.
const SECRETS: [&str; 15] = [
    "runtime.v1.AuthConfig",
    "csi.v1.CreateVolumeRequest",
    "csi.v1.DeleteVolumeRequest",
    "csi.v1.ControllerPublishVolumeRequest",
    "csi.v1.ControllerUnpublishVolumeRequest",
    "csi.v1.ValidateVolumeCapabilitiesRequest",
    "csi.v1.ControllerModifyVolumeRequest",
    "csi.v1.ControllerExpandVolumeRequest",
    "csi.v1.CreateSnapshotRequest",
    "csi.v1.DeleteSnapshotRequest",
    "csi.v1.ListSnapshotsRequest",
    "csi.v1.GetSnapshotRequest",
    "csi.v1.NodeStageVolumeRequest",
    "csi.v1.NodePublishVolumeRequest",
    "csi.v1.NodeExpandVolumeRequest",
];

fn main() -> Result<(), String> {
    let root = Path::new(ROOT);
    let files = FILES.map(|file| root.join(file));
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rerun-if-env-changed=PROTOC");
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .skip_debug(SECRETS)
        .compile_protos(&files, &[PathBuf::from(root)])
        .map_err(|error| {
            format!(
                "cannot compile {FILES:?}: {error}\n\
                 The build needs the protobuf compiler: install `protobuf-compiler` (Debian, Ubuntu) or `protobuf` \
                 (Fedora, Homebrew), or set PROTOC to the path of protoc."
            )
        })
}
