//! `csi-controller`: asks a driver of volumes for what the cluster wants of it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&csi_controller::COMPONENT, sys::allocator::TIDY, csi_controller::run)
}
