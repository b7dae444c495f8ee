//! What the whole node uses.

use sys::cgroups::{CgroupPath, Cgroups, Usage};
use sys::proc::Proc;

/// The use of the root group. Under version 2 the root does not count memory, in the machine or on disks; there it follows from
/// the machine's own figures.
pub fn node_usage(cgroups: &dyn Cgroups, proc: &Proc) -> Option<Usage> {
    let mut usage = cgroups.usage(&CgroupPath::new("")?).unwrap_or_default();
    if usage.memory_bytes == 0 {
        let memory = proc.memory().ok()?;
        usage.memory_bytes = memory.total_bytes.saturating_sub(memory.free_bytes);
        usage.working_set_bytes = usage.memory_bytes.saturating_sub(memory.inactive_file_bytes);
        usage.swap_bytes = memory.swap_total_bytes.saturating_sub(memory.swap_free_bytes);
    }
    Some(usage)
}

#[cfg(test)]
mod tests {
    use sys::cgroups::FakeCgroups;

    use super::*;

    #[test]
    fn memory_follows_from_the_machine_where_the_root_group_has_none() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let text = "MemTotal: 1000 kB\nMemFree: 300 kB\nInactive(file): 100 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n";
        std::fs::write(root.path().join("proc/meminfo"), text).unwrap();
        let usage = node_usage(&FakeCgroups::new(), &Proc::at(root.path())).unwrap();
        assert_eq!((usage.memory_bytes, usage.working_set_bytes), (700 << 10, 600 << 10));
        assert_eq!(usage.swap_bytes, 30 << 10);
    }
}
