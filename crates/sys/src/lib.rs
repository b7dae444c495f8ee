//! The machine behind traits: programs, processes, mounts, project quotas, cgroups, network namespaces, the packet filter,
//! links and routes. Each has a Linux implementation and a fake that records, so that what a component *asks* of the machine
//! is tested without root. Knows no Kubernetes words. The only crate with `unsafe` and with `Command`.
//!
//! `proc`, `topology`, `selinux`, `fs` and `tree` have no fake: they work under a directory that a test chooses. `allocator` is what the binaries
//! allocate with.

pub mod allocator;
pub mod cgroups;
pub mod cpu_set;
pub mod exec;
pub mod fs;
pub mod mounts;
pub mod net;
pub mod netns;
pub mod own_code;
pub mod packet_filter;
pub mod proc;
pub mod process;
pub mod project_quota;
pub mod selinux;
pub mod topology;
pub mod tree;

#[cfg(test)]
mod test_support;
