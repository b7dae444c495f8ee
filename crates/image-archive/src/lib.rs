//! Container images as archives that containerd and docker import: one layer, an OCI layout and a docker manifest in one
//! tar. Pure and deterministic: the same specification gives the same bytes and digests. Registries, pulling and
//! compression are deliberately not here.
//!
//! Formats: the OCI image layout and image specifications; `manifest.json` as `docker save` writes it.

mod archive;
mod layer;
mod name;
mod tar;

pub use archive::{Digest, ImageSpec, write_archive};
pub use layer::Entry;
pub use name::full_name;

/// Why an image cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A path or link target does not fit the tar header.
    #[error("path {0:?} is longer than 100 bytes")]
    PathTooLong(String),
    /// A path is empty, or climbs with `..`.
    #[error("path {0:?} is not a path inside an image")]
    BadPath(String),
    /// A file is larger than the tar header can say (8 GiB).
    #[error("file {0:?} is too large")]
    TooLarge(String),
    /// An image without a name cannot be referred to after import.
    #[error("an image needs at least one name")]
    NoName,
    /// The output refused the bytes.
    #[error("writing the archive")]
    Write(#[source] std::io::Error),
}
