//! The `kube-proxy` binary.

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> std::process::ExitCode {
    proxy::main(sys::allocator::TIDY)
}
