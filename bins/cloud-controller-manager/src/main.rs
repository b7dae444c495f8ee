//! The `cloud-controller-manager` binary.

fn main() {}
