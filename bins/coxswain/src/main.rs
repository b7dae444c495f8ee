//! The `coxswain` binary.

fn main() {}
