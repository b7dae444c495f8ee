//! The `kube-proxy` binary.

fn main() {}
