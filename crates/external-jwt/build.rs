//! Turns the `.proto` files in `proto/` into Rust. Nothing generated is committed.

use std::path::Path;

/// The file of the service, relative to this crate.
const SIGNER: &str = "../../proto/externaljwt/v1/api.proto";

fn main() -> Result<(), String> {
    let root = Path::new("../../proto");
    println!("cargo:rerun-if-changed={SIGNER}");
    println!("cargo:rerun-if-env-changed=PROTOC");
    tonic_prost_build::configure().emit_rerun_if_changed(false).compile_protos(&[Path::new(SIGNER)], &[root]).map_err(
        |error| {
            format!(
                "cannot compile {SIGNER}: {error}\n\
                 The build needs the protobuf compiler: install `protobuf-compiler` (Debian, Ubuntu) or `protobuf` \
                 (Fedora, Homebrew), or set PROTOC to the path of protoc."
            )
        },
    )
}
