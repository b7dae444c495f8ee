//! The Container Storage Interface, `csi.v1`, as far as it is about a node.
//! See <https://github.com/container-storage-interface/spec/blob/v1.12.0/spec.md>.

mod client;
pub mod fake;

pub use client::{CsiClient, CsiObserver};

/// Messages and stubs generated from `proto/csi/v1/csi.proto`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("csi.v1");

    /// Requests that may carry secrets show which volume they are about and no more.
    macro_rules! discreet {
        ($($request:ident)*) => {$(
            impl std::fmt::Debug for $request {
                fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.debug_struct(stringify!($request)).field("volume_id", &self.volume_id).finish_non_exhaustive()
                }
            }
        )*};
    }
    discreet!(NodeStageVolumeRequest NodePublishVolumeRequest NodeExpandVolumeRequest);
}
