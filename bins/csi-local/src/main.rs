//! The `csi-local` binary.

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> std::process::ExitCode {
    csi_local::main(sys::allocator::TIDY)
}
