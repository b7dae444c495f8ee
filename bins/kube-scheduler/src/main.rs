//! The `kube-scheduler` binary.

fn main() {}
