//! Controllers that change the size of workloads by what they use.

pub(crate) mod horizontal;
