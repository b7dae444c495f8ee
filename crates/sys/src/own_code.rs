//! The program's own code in memory.

use std::ffi::c_void;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::mm::{Advice, madvise};

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    bytes: usize,
}

/// Lets go of the pages of the program's own file, code and constants. Those that are needed again come back at the next
/// touch, out of the kernel's cache of files as long as they are there; those that only a start or a burst needed are no
/// longer of this process, and the first that the kernel takes where memory is short.
/// Where `/proc` cannot be read nothing is let go of.
pub fn let_go() {
    for range in constants().unwrap_or_default() {
        // Cold first: pages that are let go of while they count as used would be taken for such that are needed soon.
        for advice in [Advice::LinuxCold, Advice::LinuxDontNeed] {
            // SAFETY: the range is of the program's file as the kernel mapped it before the first instruction, which nobody
            // unmaps or maps anew, and no page in it differs from the file: whatever is let go of is read again as it was.
            #[expect(unsafe_code, reason = "pages can be let go of in no other way")]
            // An old kernel that does not know the advice keeps the pages, and nothing is lost.
            let _ =
                unsafe { madvise(std::ptr::with_exposed_provenance_mut::<c_void>(range.start), range.bytes, advice) };
        }
    }
}

fn constants() -> io::Result<Vec<Range>> {
    let program = std::fs::read_link("/proc/self/exe")?;
    Ok(untouched(&std::fs::read("/proc/self/smaps")?, &program))
}

/// The ranges that the program's file is mapped to, that cannot be written and that nothing was written to: not what was
/// relocated at the start, and no code that a debugger or a probe has put something into.
fn untouched(smaps: &[u8], program: &Path) -> Vec<Range> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in smaps.split(|byte| *byte == b'\n') {
        if let Some(mapping) = Mapping::parse(line) {
            candidate =
                (mapping.is_constant && mapping.file == program.as_os_str().as_bytes()).then_some(mapping.range);
        } else if line.starts_with(b"Anonymous:") {
            found.extend(candidate.take().filter(|_| line.split(|byte| *byte == b' ').any(|word| word == b"0")));
        }
    }
    found
}

/// The first line of what the kernel tells of a mapping: `start-end perms offset dev inode  file`.
struct Mapping<'a> {
    range: Range,
    /// Whether it is private and cannot be written.
    is_constant: bool,
    file: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let (start, end) = std::str::from_utf8(words.next()?).ok()?.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let bytes = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
        let permissions = words.next()?;
        let is_constant = permissions.get(1) == Some(&b'-') && permissions.get(3) == Some(&b'p');
        Some(Self { range: Range { start, bytes }, is_constant, file: words.nth(3)?.trim_ascii_start() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0a0000000-55d0a0100000 r--p 00000000 fe:00 1234                       /opt/a program (deleted)
Size:               1024 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
55d0a0100000-55d0a0300000 r-xp 00100000 fe:00 1234                       /opt/a program (deleted)
Anonymous:             0 kB
55d0a0300000-55d0a0400000 r-xp 00300000 fe:00 1234                       /opt/a program (deleted)
Anonymous:             4 kB
55d0a0400000-55d0a0500000 r--p 00400000 fe:00 1234                       /opt/a program (deleted)
Anonymous:          1024 kB
55d0a0500000-55d0a0600000 rw-p 00500000 fe:00 1234                       /opt/a program (deleted)
Anonymous:             0 kB
55d0a0600000-55d0a0700000 r--s 00600000 fe:00 1234                       /opt/a program (deleted)
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 fe:00 77                         /lib/libc.so.6
Anonymous:             0 kB
7f0000200000-7f0000300000 r--p 00000000 00:00 0 
Anonymous:             0 kB
x-y r--p 00000000 fe:00 1234                       /opt/a program (deleted)
Anonymous:             0 kB
";

    #[test]
    fn what_cannot_be_written_and_was_not_is_let_go_of() {
        let ranges = untouched(SMAPS.as_bytes(), Path::new("/opt/a program (deleted)"));
        let expected = [(0x55d0_a000_0000, 1 << 20), (0x55d0_a010_0000, 2 << 20)];
        assert_eq!(ranges, expected.map(|(start, bytes)| Range { start, bytes }));
    }

    #[test]
    fn this_program_goes_on_with_less_in_memory() {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let ours = smaps.split_inclusive("VmFlags").filter(|part| part.contains(program.to_str().unwrap()));
            let kib = ours.filter_map(|part| part.lines().find_map(|line| line.strip_prefix("Rss:")));
            kib.map(|kib| kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap()).sum::<usize>()
        };
        // All of the file's pages are mapped here before they are let go of.
        for range in constants().unwrap() {
            #[expect(unsafe_code, reason = "as above")]
            // SAFETY: the range is mapped, and the advice changes nothing that can be read.
            unsafe {
                madvise(
                    std::ptr::with_exposed_provenance_mut::<c_void>(range.start),
                    range.bytes,
                    Advice::LinuxPopulateRead,
                )
            }
            .unwrap();
        }
        let before = resident();
        let_go();
        let after = resident();
        assert!(after < before / 2, "{before} KiB before, {after} KiB after");
    }
}
