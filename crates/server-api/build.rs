//! Turns the `.proto` files of an API server's neighbours into Rust. Nothing generated is committed.

use std::path::{Path, PathBuf};

/// The directory of all `.proto` files, relative to this crate.
const ROOT: &str = "../../proto";
const FILES: [&str; 5] = [
    "externaljwt/v1/api.proto",
    "kms/v2/api.proto",
    "kms/v2/stored.proto",
    "kms/v1beta1/api.proto",
    "konnectivity/client.proto",
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
        // What is encrypted shows in no log.
        .skip_debug(["v2.EncryptRequest", "v2.DecryptResponse", "v1beta1.EncryptRequest", "v1beta1.DecryptResponse"])
        .compile_protos(&files, &[PathBuf::from(root)])
        .map_err(|error| {
            format!(
                "cannot compile {FILES:?}: {error}\n\
                 The build needs the protobuf compiler: install `protobuf-compiler` (Debian, Ubuntu) or `protobuf` \
                 (Fedora, Homebrew), or set PROTOC to the path of protoc."
            )
        })
}
