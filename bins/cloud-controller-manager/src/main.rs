//! `cloud-controller-manager`: keeps nodes in step with the cloud that they live in.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&cloud::COMPONENT, sys::allocator::TIDY, cloud::run)
}
