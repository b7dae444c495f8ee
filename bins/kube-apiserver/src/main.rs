//! The `kube-apiserver` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    component_base::run(&apiserver::options::COMPONENT, apiserver::options::run)
}
