//! Parsers for the files of `/proc`.

use std::collections::BTreeMap;

/// A line of `/proc/PID/stat`, as far as it is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    pub parent: u32,
    /// Clock ticks in user mode and in the kernel.
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// Clock ticks from boot to the process's start.
    pub start_ticks: u64,
    pub resident_pages: u64,
}

/// `/proc/meminfo`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub available_bytes: u64,
    /// File pages that were not used lately; they can be dropped.
    pub inactive_file_bytes: u64,
    pub swap_total_bytes: u64,
    pub swap_free_bytes: u64,
}

/// A network interface, as `/proc/net/dev` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub received: Counts,
    pub sent: Counts,
}

/// What went one way through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub bytes: u64,
    pub packets: u64,
    pub errors: u64,
    pub dropped: u64,
}

/// Files that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptors {
    pub files: u64,
    /// Those of them that are sockets.
    pub sockets: u64,
}

/// A line of `/proc/diskstats`; see <https://docs.kernel.org/admin-guide/iostats.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    pub major: u32,
    pub minor: u32,
    pub reads: u64,
    pub reads_merged: u64,
    pub sectors_read: u64,
    pub read_ms: u64,
    pub writes: u64,
    pub writes_merged: u64,
    pub sectors_written: u64,
    pub write_ms: u64,
    pub in_progress: u64,
    pub busy_ms: u64,
    /// Each request counted for as long as it took.
    pub weighted_ms: u64,
}

/// Time of all processors together, in ticks of 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// For programs, the kernel and interrupts.
    pub busy_ticks: u64,
    /// For nobody, or for a disk.
    pub idle_ticks: u64,
}

/// User, nice and system, then idle and waiting, then interrupts of two kinds; further fields are about guests.
pub(super) fn processor_time(text: &str) -> Option<ProcessorTime> {
    let fields = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, ..] = *ticks.as_slice() else { return None };
    let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
    Some(ProcessorTime {
        busy_ticks: sum(&[user, nice, system, interrupts, soft_interrupts]),
        idle_ticks: sum(&[idle, waiting]),
    })
}

/// Lines in another form are left out.
pub(super) fn disks(text: &str) -> Vec<Disk> {
    let disk = |line: &str| {
        let mut words = line.split_whitespace();
        let (major, minor) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let numbers: Vec<u64> = words.skip(1).map_while(|word| word.parse().ok()).collect();
        let [reads, reads_merged, sectors_read, read_ms, writes, writes_merged, rest @ ..] = numbers.as_slice() else {
            return None;
        };
        let [sectors_written, write_ms, in_progress, busy_ms, weighted_ms, ..] = rest else { return None };
        Some(Disk {
            major,
            minor,
            reads: *reads,
            reads_merged: *reads_merged,
            sectors_read: *sectors_read,
            read_ms: *read_ms,
            writes: *writes,
            writes_merged: *writes_merged,
            sectors_written: *sectors_written,
            write_ms: *write_ms,
            in_progress: *in_progress,
            busy_ms: *busy_ms,
            weighted_ms: *weighted_ms,
        })
    };
    text.lines().filter_map(disk).collect()
}

/// Lines that are not of an interface are left out.
pub(super) fn interfaces(text: &str) -> Vec<Interface> {
    let interface = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
        // Eight numbers for each way, of which the first four are of use.
        let [bytes, packets, errors, dropped, _, _, _, _, rest @ ..] = numbers.as_slice() else { return None };
        let received = Counts { bytes: *bytes, packets: *packets, errors: *errors, dropped: *dropped };
        let [bytes, packets, errors, dropped, ..] = rest else { return None };
        let sent = Counts { bytes: *bytes, packets: *packets, errors: *errors, dropped: *dropped };
        Some(Interface { name: name.trim().to_owned(), received, sent })
    };
    text.lines().filter_map(interface).collect()
}

pub(super) fn stat(text: &str) -> Option<Stat> {
    // The program's name is in parentheses and may itself contain blanks and parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        user_ticks: number(11)?,
        system_ticks: number(12)?,
        start_ticks: number(19)?,
        resident_pages: number(21).unwrap_or(0),
    })
}

pub(super) fn memory(text: &str) -> Memory {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes: Option<u64> = line.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
        kibibytes.unwrap_or(0).saturating_mul(1024)
    };
    Memory {
        total_bytes: bytes("MemTotal"),
        free_bytes: bytes("MemFree"),
        available_bytes: bytes("MemAvailable"),
        inactive_file_bytes: bytes("Inactive(file)"),
        swap_total_bytes: bytes("SwapTotal"),
        swap_free_bytes: bytes("SwapFree"),
    }
}

pub(super) fn os_release(text: &str) -> BTreeMap<String, String> {
    let pairs =
        text.lines().map(str::trim).filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches(['"', '\'']).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let line = "42 (a) S 7 (b)) R 1 42 42 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 1 0 9876 1000 55 more";
        let expected =
            Stat { state: 'R', parent: 1, user_ticks: 500, system_ticks: 60, start_ticks: 9876, resident_pages: 55 };
        assert_eq!(stat(line), Some(expected));
    }

    #[test]
    fn broken_stat_lines_are_no_process() {
        for line in ["", "42", "42 (a", "42 (a)", "42 (a) S", "42 (a) S 1 2 3", "42 (a) S x 1 2 3"] {
            assert_eq!(stat(line), None, "{line:?}");
        }
    }

    #[test]
    fn processors_are_busy_when_they_neither_idle_nor_wait() {
        let text = "cpu  100 20 300 4000 500 6 7 80 9 10\ncpu0 1 1 1 1 1 1 1 0 0 0\n";
        assert_eq!(processor_time(text), Some(ProcessorTime { busy_ticks: 433, idle_ticks: 4500 }));
        for text in ["", "cpu0 1 1 1 1 1 1 1 0 0 0\n", "cpu  1 2\n", "cpu  1 2 x 4 5 6 7\n"] {
            assert_eq!(processor_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn memory_is_in_bytes() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    500 kB\nHugePages_Total:       0\n";
        let memory = memory(text);
        assert_eq!((memory.total_bytes, memory.available_bytes, memory.swap_total_bytes), (1_024_000, 512_000, 0));
    }

    #[test]
    fn os_release_loses_its_quotes() {
        let fields = os_release("# about\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nbroken\n");
        assert_eq!(fields.get("PRETTY_NAME").map(String::as_str), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(fields.len(), 2);
    }
}
