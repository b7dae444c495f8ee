//! A directory of files as one text: what changes when any of them does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use component_base::config_file::{self, ConfigFileError};

/// What the names of files end in that count.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// The most files of a directory.
const FILES_MAX: usize = 1000;
/// The most bytes of all of them.
const BYTES_MAX: usize = 32 << 20;

/// Why a directory could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    /// It is not there, or may not be read.
    #[error("unable to read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// One of its files cannot be read.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// It is not what it is taken for.
    #[error("{path:?} holds more than {FILES_MAX} files or {BYTES_MAX} bytes")]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
}

/// The files of a directory, which has no folders that count. Where it is does not matter: servers that have the same files
/// say the same of them.
pub(super) fn read(path: &Path) -> Result<String, DirectoryError> {
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let (file, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let counts = file.extension().and_then(|ending| ending.to_str()).is_some_and(|own| ENDINGS.contains(&own));
        if !counts || !file.is_file() {
            continue;
        }
        let text = config_file::read(&file)?;
        bytes += text.len();
        files.insert(name, text);
        if files.len() > FILES_MAX || bytes > BYTES_MAX {
            return Err(DirectoryError::TooLarge { path: path.to_owned() });
        }
    }
    Ok(serde_json::Value::from_iter(files).to_string())
}

/// The files of such a text, by their names.
pub(super) fn files(text: &str) -> BTreeMap<String, String> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [("b.yaml", "b: 1\n"), ("a.yml", "a: 1\n"), ("c.json", "{}"), ("d.txt", "d"), ("e", "e")] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        std::fs::create_dir(directory.path().join("f.yaml")).unwrap();
        let found = files(&read(directory.path()).unwrap());
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.yml", "b.yaml", "c.json"]);
        assert_eq!(found.values().next().map(String::as_str), Some("a: 1\n"));
        let missing = read(&directory.path().join("none")).unwrap_err().to_string();
        assert!(missing.starts_with("unable to read: "), "{missing}");
    }
}
