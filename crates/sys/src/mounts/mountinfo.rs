//! `/proc/PID/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountInfo {
    pub id: u32,
    /// The mount it is mounted on.
    pub parent: u32,
    /// `major:minor` of the device.
    pub device: String,
    /// Which part of the filesystem is shown; not `/` for most bind mounts.
    pub root: PathBuf,
    pub target: PathBuf,
    /// Of this mount: `ro`, `nosuid`, ...
    pub options: Vec<String>,
    /// `shared:N`, `master:N`, ...
    pub propagation: Vec<String>,
    /// The filesystem's kind.
    pub kind: String,
    /// The device or other source.
    pub source: String,
    /// Of the filesystem.
    pub super_options: Vec<String>,
}

impl MountInfo {
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }
}

/// The mounts in a mountinfo file; lines in another form are left out.
#[must_use]
pub fn parse_mountinfo(text: &str) -> Vec<MountInfo> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MountInfo> {
    // The number of fields before the lone dash varies.
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let mut filesystem = filesystem.split(' ');
    Some(MountInfo {
        id: mount.next()?.parse().ok()?,
        parent: mount.next()?.parse().ok()?,
        device: mount.next()?.to_owned(),
        root: unescape(mount.next()?).into(),
        target: unescape(mount.next()?).into(),
        options: list(mount.next()?),
        propagation: mount.map(str::to_owned).collect(),
        kind: filesystem.next()?.to_owned(),
        source: unescape(filesystem.next()?).to_string_lossy().into_owned(),
        super_options: list(filesystem.next().unwrap_or_default()),
    })
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The kernel writes blanks, tabs, newlines and backslashes as a backslash and three octal digits.
fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(octal);
        if let Some(byte) = escaped {
            bytes.push(byte);
            rest = tail.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_any_number_of_propagation_fields() {
        let text = "36 35 98:0 /mnt1 /a\\040b rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n\
            37 36 0:5 / /x ro - tmpfs tmpfs rw\nnot a line\n38 x 0:5 / /x ro - tmpfs tmpfs rw\n";
        let mounts = parse_mountinfo(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].target, PathBuf::from("/a b"));
        assert_eq!(mounts[0].propagation, ["master:1", "shared:2"]);
        assert_eq!((mounts[0].kind.as_str(), mounts[0].is_read_only()), ("ext3", false));
        assert_eq!((mounts[1].propagation.len(), mounts[1].is_read_only()), (0, true));
    }

    #[test]
    fn escapes_at_the_edges() {
        for (text, expected) in [("\\", "\\"), ("a\\0", "a\\0"), ("\\134040", "\\040"), ("\\999", "\\999"), ("", "")] {
            assert_eq!(unescape(text), OsString::from(expected), "{text:?}");
        }
    }
}
