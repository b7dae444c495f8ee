//! The single layer of an image: an uncompressed tar of what the image contains.

use std::collections::BTreeSet;

use crate::ArchiveError;
use crate::tar::{Member, Writer};

/// Something inside an image. Paths are absolute; parent directories appear by themselves, owned by root, mode 0755.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file with its permission bits.
    File { path: String, mode: u32, data: Vec<u8> },
    /// A directory with its permission bits.
    Directory { path: String, mode: u32 },
    /// A symbolic link; the target is stored as given.
    Symlink { path: String, target: String },
    /// Another name of a file that comes earlier in the list. Unlike symbolic links these survive a bind mount over one
    /// of the names, which is why multi-call programs such as busybox use them.
    HardLink { path: String, target: String },
}

/// The layer's bytes.
pub(crate) fn layer(entries: &[Entry]) -> Result<Vec<u8>, ArchiveError> {
    let mut layer = Layer { writer: Writer::new(Vec::new()), seen: BTreeSet::new() };
    for entry in entries {
        layer.append(entry)?;
    }
    layer.writer.finish()
}

struct Layer {
    writer: Writer<Vec<u8>>,
    seen: BTreeSet<String>,
}

impl Layer {
    fn append(&mut self, entry: &Entry) -> Result<(), ArchiveError> {
        let path = match entry {
            Entry::File { path, .. } | Entry::Directory { path, .. } => inside(path)?,
            Entry::Symlink { path, .. } | Entry::HardLink { path, .. } => inside(path)?,
        };
        self.parents(&path)?;
        if !self.seen.insert(path.clone()) {
            return Ok(());
        }
        match entry {
            Entry::File { mode, data, .. } => self.writer.append(&path, *mode, Member::File(data)),
            Entry::Directory { mode, .. } => self.writer.append(&path, *mode, Member::Directory),
            Entry::Symlink { target, .. } => self.writer.append(&path, 0o777, Member::Symlink(target)),
            Entry::HardLink { target, .. } => self.writer.append(&path, 0o755, Member::HardLink(&inside(target)?)),
        }
    }

    fn parents(&mut self, path: &str) -> Result<(), ArchiveError> {
        for (at, _) in path.match_indices('/') {
            let parent = path.get(..at).unwrap_or_default();
            if self.seen.insert(parent.to_owned()) {
                self.writer.append(parent, 0o755, Member::Directory)?;
            }
        }
        Ok(())
    }
}

/// The path as tar wants it: relative to the image's root.
fn inside(path: &str) -> Result<String, ArchiveError> {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.contains(&"..") {
        return Err(ArchiveError::BadPath(path.to_owned()));
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_image() {
        for path in ["", "/", "../a", "/a/../../b"] {
            assert!(matches!(inside(path), Err(ArchiveError::BadPath(_))), "{path:?}");
        }
        assert_eq!(inside("//a/./b/").unwrap(), "a/b");
    }

    #[test]
    fn parents_come_once_and_first() {
        let file = |path: &str| Entry::File { path: path.to_owned(), mode: 0o755, data: Vec::new() };
        let bytes = layer(&[file("/a/b/one"), file("/a/b/two")]).unwrap();
        let names: Vec<_> =
            bytes.chunks(512).map(|block| block.split(|byte| *byte == 0).next().unwrap_or_default()).collect();
        let names: Vec<_> = names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/one", "a/b/two", "", ""]);
    }
}
