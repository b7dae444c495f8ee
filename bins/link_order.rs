//! The build script of binaries with a list of hot code: has the linker lay functions in the order of a file, if there is
//! one. `make build` makes it from the list and from the binary that was linked without (`cargo xtask hot-code`).

#![expect(clippy::print_stdout, reason = "cargo reads it")]

use std::path::Path;

/// The directory of the files `BINARY.order`. The linker must be lld, as it is on the platforms where `make` sets it.
const DIRECTORY: &str = "COXSWAIN_LINK_ORDER";

fn main() {
    println!("cargo::rerun-if-env-changed={DIRECTORY}");
    let (Ok(directory), Ok(package)) = (std::env::var(DIRECTORY), std::env::var("CARGO_PKG_NAME")) else { return };
    let path = Path::new(&directory).join(package.trim_start_matches("bin-")).with_extension("order");
    // Also where it is not there yet: it is made after the first build.
    println!("cargo::rerun-if-changed={}", path.display());
    if path.exists() {
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={}", path.display());
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}
