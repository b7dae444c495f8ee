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
/// One whose package has the name of another's; what comes of it has a directory of its own.
const NAMESAKE: &str = "pods/v1alpha1/api.proto";
const NAMESAKE_DIRECTORY: &str = "pods";
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
    println!("cargo:rerun-if-env-changed=PROTOC");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    compile(&FILES, &out)?;
    let own = out.join(NAMESAKE_DIRECTORY);
    std::fs::create_dir_all(&own).map_err(|error| format!("cannot make {}: {error}", own.display()))?;
    compile(&[NAMESAKE], &own)
}

fn compile(names: &[&str], out: &Path) -> Result<(), String> {
    let root = Path::new(ROOT);
    let files: Vec<PathBuf> = names.iter().map(|file| root.join(file)).collect();
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .out_dir(out)
        .skip_debug(SECRETS)
        .compile_protos(&files, &[PathBuf::from(root)])
        .map_err(|error| {
            format!(
                "cannot compile {names:?}: {error}\n\
                 The build needs the protobuf compiler: install `protobuf-compiler` (Debian, Ubuntu) or `protobuf` \
                 (Fedora, Homebrew), or set PROTOC to the path of protoc."
            )
        })
}
