//! A writer for the ustar headers that images need: files, directories, symbolic and hard links, owned by root and
//! dated 1970 so that the bytes depend on nothing but the content.

use std::io::Write;

use crate::ArchiveError;

const BLOCK: usize = 512;
const NAME_BYTES: usize = 100;
/// Eleven octal digits.
const SIZE_MAX: u64 = 0o777_7777_7777;

/// What a tar member is; the link kinds carry their target.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Member<'a> {
    File(&'a [u8]),
    Directory,
    Symlink(&'a str),
    HardLink(&'a str),
}

/// Writes members one after the other; `finish` ends the archive.
pub(crate) struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    /// Appends one member. `name` has no leading slash.
    pub(crate) fn append(&mut self, name: &str, mode: u32, member: Member<'_>) -> Result<(), ArchiveError> {
        let header = header(name, mode, member)?;
        self.out.write_all(&header).map_err(ArchiveError::Write)?;
        if let Member::File(data) = member {
            self.out.write_all(data).map_err(ArchiveError::Write)?;
            let padding = data.len().next_multiple_of(BLOCK) - data.len();
            self.out.write_all(&[0; BLOCK][..padding]).map_err(ArchiveError::Write)?;
        }
        Ok(())
    }

    /// Writes the two empty blocks that end a tar and gives the output back.
    pub(crate) fn finish(mut self) -> Result<W, ArchiveError> {
        self.out.write_all(&[0; 2 * BLOCK]).map_err(ArchiveError::Write)?;
        Ok(self.out)
    }
}

fn header(name: &str, mode: u32, member: Member<'_>) -> Result<[u8; BLOCK], ArchiveError> {
    let (kind, link, size) = match member {
        Member::File(data) => (b'0', "", data.len() as u64),
        Member::HardLink(target) => (b'1', target, 0),
        Member::Symlink(target) => (b'2', target, 0),
        Member::Directory => (b'5', "", 0),
    };
    if size > SIZE_MAX {
        return Err(ArchiveError::TooLarge(name.to_owned()));
    }
    for text in [name, link] {
        if text.len() > NAME_BYTES {
            return Err(ArchiveError::PathTooLong(text.to_owned()));
        }
    }
    let mut block = [0; BLOCK];
    put(&mut block, 0, name);
    put(&mut block, 100, &format!("{mode:07o}"));
    put(&mut block, 108, "0000000");
    put(&mut block, 116, "0000000");
    put(&mut block, 124, &format!("{size:011o}"));
    put(&mut block, 136, "00000000000");
    // The checksum counts its own field as blanks.
    put(&mut block, 148, "        ");
    block[156] = kind;
    put(&mut block, 157, link);
    put(&mut block, 257, "ustar");
    put(&mut block, 263, "00");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut block, 148, &format!("{sum:06o}\0 "));
    Ok(block)
}

/// Copies `text` to `offset`; callers pass constants and checked lengths, so it always fits.
fn put(block: &mut [u8; BLOCK], offset: usize, text: &str) {
    for (slot, byte) in block.iter_mut().skip(offset).zip(text.bytes()) {
        *slot = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_header_data_padding() {
        let mut writer = Writer::new(Vec::new());
        writer.append("etc/a", 0o644, Member::File(b"hello")).unwrap();
        let bytes = writer.finish().unwrap();
        assert_eq!(bytes.len(), 4 * BLOCK);
        assert_eq!(&bytes[..5], b"etc/a");
        assert_eq!(&bytes[124..135], b"00000000005");
        assert_eq!(&bytes[512..517], b"hello");
        let stored = u32::from_str_radix(std::str::from_utf8(&bytes[148..154]).unwrap(), 8).unwrap();
        let mut blanked = bytes[..BLOCK].to_vec();
        blanked[148..156].fill(b' ');
        assert_eq!(stored, blanked.iter().map(|byte| u32::from(*byte)).sum::<u32>());
    }

    #[test]
    fn long_names_are_refused() {
        let mut writer = Writer::new(Vec::new());
        let name = "x".repeat(101);
        assert!(matches!(writer.append(&name, 0, Member::Directory), Err(ArchiveError::PathTooLong(_))));
        assert!(matches!(writer.append("a", 0, Member::Symlink(&name)), Err(ArchiveError::PathTooLong(_))));
    }
}
