//! Brings clusters up and down. [`cluster`] is the whole; [`node`] are the surroundings of one node, that is a container runtime of its own, its
//! pod network, and for further nodes on one machine a network namespace that stands for another machine.

pub mod cli;
pub mod cluster;
pub mod node;
mod run;

pub use run::run;
