//! Brings clusters up and down. Today: the surroundings of a node ([`node`]), that is a container runtime of its own, its
//! pod network, and for further nodes on one machine a network namespace that stands for another machine.

pub mod node;
