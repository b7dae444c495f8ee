//! The rules of a pod's spec, which pods and every template share: its defaults, what is dropped of it, what it must be
//! and what is warned of. Pure: no I/O, no clock.

pub mod claim_spec;
pub mod defaults;
pub mod disabled;
mod image_reference;
pub mod node_allocatable;
pub mod validation;
pub mod warnings;
