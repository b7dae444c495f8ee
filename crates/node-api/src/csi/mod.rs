//! The Container Storage Interface, `csi.v1`: what every driver is held to ([`contract`]), clients of its node and controller
//! services, a fake of the former, and a driver in memory.
//! See <https://github.com/container-storage-interface/spec/blob/v1.12.0/spec.md>.

mod access;
mod client;
pub mod contract;
mod controller_client;
pub mod fake;
mod memory;

pub use access::access_mode;
pub use client::{CsiClient, CsiObserver};
pub use controller_client::CsiController;
pub use memory::{Entry, Gate, MemoryDriver};

/// Messages and stubs generated from `proto/csi/v1/csi.proto`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("csi.v1");

    /// Requests that may carry secrets show what they are about and no more.
    macro_rules! discreet {
        ($($field:ident: $($request:ident)*;)*) => {$($(
            impl std::fmt::Debug for $request {
                fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.debug_struct(stringify!($request)).field(stringify!($field), &self.$field).finish_non_exhaustive()
                }
            }
        )*)*};
    }
    discreet! {
        volume_id: NodeStageVolumeRequest NodePublishVolumeRequest NodeExpandVolumeRequest DeleteVolumeRequest
            ControllerPublishVolumeRequest ControllerUnpublishVolumeRequest ValidateVolumeCapabilitiesRequest
            ControllerModifyVolumeRequest ControllerExpandVolumeRequest;
        name: CreateVolumeRequest CreateSnapshotRequest;
        snapshot_id: DeleteSnapshotRequest ListSnapshotsRequest GetSnapshotRequest;
    }
}
