//! How access modes of the cluster are told to drivers.

use super::v1::volume_capability::access_mode::Mode;

/// The mode of a driver for one of the cluster's; newer drivers tell one writer of a node from several.
#[must_use]
pub fn access_mode(mode: &str, tells_writers: bool) -> Mode {
    match (mode, tells_writers) {
        ("ReadOnlyMany", _) => Mode::MultiNodeReaderOnly,
        ("ReadWriteMany", _) => Mode::MultiNodeMultiWriter,
        ("ReadWriteOncePod", true) => Mode::SingleNodeSingleWriter,
        ("ReadWriteOnce", true) => Mode::SingleNodeMultiWriter,
        ("ReadWriteOncePod" | "ReadWriteOnce", false) => Mode::SingleNodeWriter,
        _ => Mode::Unknown,
    }
}
