//! `kubelet`: the node agent of a cluster.

use std::alloc::System;
use std::process::ExitCode;

use sys::allocator::compact;

#[global_allocator]
static ALLOCATOR: System = System;

fn main() -> ExitCode {
    compact::set_up();
    component_base::run(&kubelet::COMPONENT, compact::TIDY, kubelet::run)
}
