//! `metrics-server`: tells what nodes and pods use.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    component_base::run(&metrics_server::COMPONENT, sys::allocator::TIDY, metrics_server::run)
}
