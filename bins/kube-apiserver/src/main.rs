//! The `kube-apiserver` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&apiserver::options::COMPONENT, sys::allocator::TIDY, apiserver::options::run)
}
