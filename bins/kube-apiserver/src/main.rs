//! The `kube-apiserver` binary.

fn main() {}
