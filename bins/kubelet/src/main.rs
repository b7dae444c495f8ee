//! `kubelet`: the node agent of a cluster.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    component_base::run(&kubelet::COMPONENT, kubelet::run)
}
