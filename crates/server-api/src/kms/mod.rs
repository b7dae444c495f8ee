//! Who keeps keys: the plug-ins of KMS v2, and of v1, which is deprecated.

#[cfg(feature = "fake")]
pub mod fake;

/// The interface that plug-ins implement today.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v2 {
    tonic::include_proto!("v2");
}

/// The deprecated one.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1beta1 {
    tonic::include_proto!("v1beta1");
}

/// How values lie in the store.
pub mod stored {
    tonic::include_proto!("kms.stored.v2");
}
