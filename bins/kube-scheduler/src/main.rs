//! `kube-scheduler`: decides on which node each pod runs.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    component_base::run(&scheduler::COMPONENT, scheduler::run)
}
