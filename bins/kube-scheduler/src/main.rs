//! `kube-scheduler`: decides on which node each pod runs.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&scheduler::COMPONENT, sys::allocator::TIDY, scheduler::run)
}
