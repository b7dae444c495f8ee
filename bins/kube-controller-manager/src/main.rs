//! `kube-controller-manager`: keeps the objects of a cluster as they say they should be.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    component_base::run(&controllers::COMPONENT, controllers::run)
}
