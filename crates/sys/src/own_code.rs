//! The program's own code in memory.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

const PAGEMAP_ENTRY_BYTES: usize = 8;

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
    let pages = File::open("/proc/self/pagemap")?;
    let mut found = mapped(&std::fs::read("/proc/self/maps")?, &program);
    found.retain(|range| is_of_file(&pages, *range).unwrap_or(false));
    Ok(found)
}

/// The ranges that the program's file is mapped to and that cannot be written.
fn mapped(maps: &[u8], program: &Path) -> Vec<Range> {
    let mappings = maps.split(|byte| *byte == b'\n').filter_map(Mapping::parse);
    let own = mappings.filter(|mapping| mapping.is_constant && mapping.file == program.as_os_str().as_bytes());
    own.map(|mapping| mapping.range).collect()
}

/// Whether all pages of a range that are in memory are the file's: not what was relocated at the start, and no code that a
/// debugger or a probe has put something into. What the kernel tells of whole mappings would have it walk through all memory.
fn is_of_file(pages: &File, range: Range) -> io::Result<bool> {
    let mut entries = vec![0; range.bytes / page_size() * PAGEMAP_ENTRY_BYTES];
    let offset = range.start / page_size() * PAGEMAP_ENTRY_BYTES;
    pages.read_exact_at(&mut entries, u64::try_from(offset).map_err(io::Error::other)?)?;
    let (entries, _) = entries.as_chunks();
    Ok(entries.iter().all(|entry| is_file_page(u64::from_ne_bytes(*entry))))
}

/// What `/proc/PID/pagemap` tells of a page.
const fn is_file_page(entry: u64) -> bool {
    let (present, swapped, of_file) = (entry >> 63 & 1 == 1, entry >> 62 & 1 == 1, entry >> 61 & 1 == 1);
    !swapped && (!present || of_file)
}

/// A line of `/proc/PID/maps`: `start-end perms offset dev inode  file`.
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

    const MAPS: &str = "\
55d0a0000000-55d0a0100000 r--p 00000000 fe:00 1234                       /opt/a program (deleted)
55d0a0100000-55d0a0300000 r-xp 00100000 fe:00 1234                       /opt/a program (deleted)
55d0a0500000-55d0a0600000 rw-p 00500000 fe:00 1234                       /opt/a program (deleted)
55d0a0600000-55d0a0700000 r--s 00600000 fe:00 1234                       /opt/a program (deleted)
7f0000000000-7f0000100000 r-xp 00000000 fe:00 77                         /lib/libc.so.6
7f0000200000-7f0000300000 r--p 00000000 00:00 0 
x-y r--p 00000000 fe:00 1234                       /opt/a program (deleted)
";

    #[test]
    fn what_of_the_program_cannot_be_written_is_found() {
        let ranges = mapped(MAPS.as_bytes(), Path::new("/opt/a program (deleted)"));
        let expected = [(0x55d0_a000_0000, 1 << 20), (0x55d0_a010_0000, 2 << 20)];
        assert_eq!(ranges, expected.map(|(start, bytes)| Range { start, bytes }));
    }

    #[test]
    fn pages_that_are_the_process_s_own_are_seen() {
        for (entry, is_files) in [
            (0, true),
            (0xa000_0000_0012_3456, true),
            (0x8000_0000_0012_3456, false),
            (0x4000_0000_0000_0001, false),
            (0x0080_0000_0000_0000, true),
        ] {
            assert_eq!(is_file_page(entry), is_files, "{entry:x}");
        }
        // What was relocated lies in the program's file, too, and cannot be written any more.
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let all = mapped(&maps, &std::fs::read_link("/proc/self/exe").unwrap());
        let kept = constants().unwrap();
        assert!(!kept.is_empty() && kept.len() < all.len(), "{kept:?} of {all:?}");
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
