//! The pod resources API: which devices, processors and memory the containers of a node have.
//! See <https://kep.k8s.io/606>.

/// Messages and stubs generated from `proto/podresources`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("v1");
}
