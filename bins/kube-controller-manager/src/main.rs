//! `kube-controller-manager`: keeps the objects of a cluster as they say they should be.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&controllers::COMPONENT, sys::allocator::TIDY, controllers::run)
}
