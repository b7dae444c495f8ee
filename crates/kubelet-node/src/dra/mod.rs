//! Dynamic resources: the claims of this node's pods, and the drivers that make their devices ready.
//!
//! [`drivers`] has who is registered, and takes a driver's slices from the API when it is gone; [`claim_infos`] is what is
//! known of claims, without I/O; [`checkpoint`] is what the next kubelet knows; [`manager`] has claims prepared and
//! unprepared; [`health`] hears which devices are well. Not here: which devices a claim gets, as the scheduler decides
//! that. See <https://kep.k8s.io/4381>.

mod checkpoint;
mod claim_infos;
mod drivers;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod handler;
mod health;
mod manager;
mod slices;

pub use checkpoint::StateError;
pub use drivers::{DraDrivers, DriverDeps};
pub use handler::DraHandler;
pub use health::Healths;
pub use manager::{
    ClaimDevice, ClaimsError, ContainerClaim, DynamicResources, DynamicResourcesDeps, DynamicResourcesObserver,
};
