//! Devices of the node that plugins offer as extended resources: who offers what, which container has which, and what it
//! needs to use them.
//!
//! [`pool`] is what is known, without I/O; [`manager`] asks plugins; [`registry`] is where they register; [`checkpoint`]
//! is what the next kubelet knows. [`crate::topology`] has them given together with processors and memory. See
//! <https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/>.

mod checkpoint;
mod manager;
mod pool;
mod registry;

pub use checkpoint::were_known;
pub use manager::{AllocateError, DeviceCounts, Devices, DevicesDeps};
pub use pool::{Amount, ContainerDevices, DeviceAssignments, DeviceInputs};
pub use registry::{DeviceHandler, serve};
