//! The `cluster-dns` binary.

fn main() {}
