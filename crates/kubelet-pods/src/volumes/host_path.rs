//! Places of the machine itself.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Component, Path};

use api_types::core_v1::HostPathVolumeSource;

use super::file_error::FileError;

/// Why a place of the machine is not what the pod says it is, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostPathError {
    #[error("invalid HostPath `{0}`: must not contain '..'")]
    Climbs(String),
    #[error("hostPath type check failed: {path} is not {wanted}")]
    Other { path: String, wanted: &'static str },
    #[error("{0} is an invalid volume type")]
    Type(String),
    #[error(transparent)]
    Make(#[from] FileError),
}

/// Checks that the path is what the volume says it is, and makes it where the type says so.
pub(super) fn check(source: &HostPathVolumeSource) -> Result<(), HostPathError> {
    let path = Path::new(&source.path);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(HostPathError::Climbs(source.path.clone()));
    }
    let failed = |wanted| Err(HostPathError::Other { path: source.path.clone(), wanted });
    let kind = fs::metadata(path).map(|meta| meta.file_type());
    let is = |test: fn(&fs::FileType) -> bool| kind.as_ref().is_ok_and(test);
    match source.type_.as_deref().unwrap_or_default() {
        "" => Ok(()),
        "DirectoryOrCreate" if kind.is_err() => make_directory(path),
        "DirectoryOrCreate" | "Directory" if is(fs::FileType::is_dir) => Ok(()),
        "DirectoryOrCreate" | "Directory" => failed("a directory"),
        "FileOrCreate" if kind.is_err() => make_file(path),
        "FileOrCreate" | "File" if is(fs::FileType::is_file) => Ok(()),
        "FileOrCreate" | "File" => failed("a file"),
        "Socket" if is(fs::FileType::is_socket) => Ok(()),
        "Socket" => failed("a socket file"),
        "CharDevice" if is(fs::FileType::is_char_device) => Ok(()),
        "CharDevice" => failed("a character device"),
        "BlockDevice" if is(fs::FileType::is_block_device) => Ok(()),
        "BlockDevice" => failed("a block device"),
        other => Err(HostPathError::Type(other.to_owned())),
    }
}

fn make_directory(path: &Path) -> Result<(), HostPathError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    Ok(made.map_err(FileError::of("mkdir", path))?)
}

fn make_file(path: &Path) -> Result<(), HostPathError> {
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
    made.map_err(FileError::of("open", path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_checked_or_made() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let cases = [
            (path("none"), "", true),
            (path("made"), "DirectoryOrCreate", true),
            (path("made"), "Directory", true),
            (path("new/file"), "FileOrCreate", false),
            (path("made/file"), "FileOrCreate", true),
            (path("made/file"), "File", true),
            (path("file"), "Directory", false),
            (path("file"), "DirectoryOrCreate", false),
            (path("file"), "Socket", false),
            ("/dev/null".into(), "CharDevice", true),
            (path("file"), "BlockDevice", false),
            (path("file"), "Other", false),
            (path("made/../file"), "File", false),
        ];
        for (path, type_, fine) in cases {
            let source = HostPathVolumeSource { path: path.clone(), type_: Some(type_.into()) };
            assert_eq!(check(&source).is_ok(), fine, "{path} {type_}");
        }
        let missing = HostPathVolumeSource { path: "/none".into(), type_: Some("File".into()) };
        assert_eq!(check(&missing).unwrap_err().to_string(), "hostPath type check failed: /none is not a file");
    }
}
