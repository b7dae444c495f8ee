//! `coxswain`: brings clusters up and down on this machine.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::run(std::env::args_os()).await
}
