//! The `kube-controller-manager` binary.

fn main() {}
