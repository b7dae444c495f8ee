//! Turns the `.proto` files in `proto/` into Rust. Nothing generated is committed.

use std::path::Path;

/// The CRI file, relative to this crate.
const CRI: &str = "../../proto/cri/v1/runtime.proto";

fn main() -> Result<(), String> {
    let root = Path::new("../../proto");
    println!("cargo:rerun-if-changed={CRI}");
    println!("cargo:rerun-if-env-changed=PROTOC");
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        // Its hand-written Debug hides the credentials.
        .skip_debug(["runtime.v1.AuthConfig"])
        .compile_protos(&[Path::new(CRI)], &[root])
        .map_err(|error| {
            format!(
                "cannot compile {CRI}: {error}\n\
                 The build needs the protobuf compiler: install `protobuf-compiler` (Debian, Ubuntu) or `protobuf` \
                 (Fedora, Homebrew), or set PROTOC to the path of protoc."
            )
        })
}
