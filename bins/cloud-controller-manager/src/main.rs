//! `cloud-controller-manager`: keeps nodes in step with the cloud that they live in.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    component_base::run(&cloud::COMPONENT, cloud::run)
}
