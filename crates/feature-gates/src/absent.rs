//! Features that Kubernetes v1.36 has on and nothing in this build has. Their gates are off here, and nothing announces
//! them. The list only shrinks: whoever brings a feature takes its line away. Where one binary has its part of a feature and
//! others lack theirs, that binary switches the gate and the line stays.

use crate::feature::Feature;

/// By name.
pub(crate) const ABSENT: &[Feature] =
    &[Feature::named("WinDSR"), Feature::named("WinOverlay"), Feature::named("WindowsGracefulNodeShutdown")];
