//! The `cluster-dns` binary.

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> std::process::ExitCode {
    dns::main(sys::allocator::TIDY)
}
