//! `kubelet`: the node agent of a cluster.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&kubelet::COMPONENT, sys::allocator::tidy, kubelet::run)
}
