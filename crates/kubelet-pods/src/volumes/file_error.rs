//! What the machine says of a file or directory.

use std::io;
use std::path::{Path, PathBuf};

/// A file or directory that cannot be made, changed or taken away.
#[derive(Debug, thiserror::Error)]
#[error("{action} {}: {source}", path.display())]
pub struct FileError {
    pub(super) action: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl FileError {
    /// The error of an action on a path.
    pub(super) fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }
}

/// What a removal has come to: what was not there is gone as well.
pub(super) fn gone(removed: io::Result<()>, path: &Path) -> Result<(), FileError> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::of("remove", path)(error)),
        _ => Ok(()),
    }
}
