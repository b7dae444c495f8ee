//! What is read of a group, its processes and the machine's disks. This takes many small files of the kernel's: none of it
//! is done where tasks run that must not wait.

use std::collections::BTreeMap;

use sys::cgroups::{CgroupPath, Cgroups, Details, Usage};
use sys::mounts::{LinuxMounts, MountInfo, Mounts as _};
use sys::proc::{Descriptors, Disk, Proc};

use crate::node::{FileSystem, filesystem};
use crate::resources::node_usage;

/// File systems that lie on disks of the machine.
const ON_DISKS: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "btrfs"];
/// The process that stands for the machine.
const INIT: u32 = 1;

/// A group at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) usage: Usage,
    pub(super) details: Details,
    /// Of the processes in the group itself.
    pub(super) open: Descriptors,
    /// How many files its first process may have open; 0 for as many as it likes.
    pub(super) open_files_limit: Option<i64>,
}

/// `None` where there is no such group.
pub(super) fn read(cgroups: &dyn Cgroups, proc: &Proc, group: &CgroupPath) -> Option<Reading> {
    let is_root = group.relative().as_os_str().is_empty();
    let usage = if is_root { node_usage(cgroups, proc)? } else { cgroups.usage(group).ok()? };
    let details = cgroups.details(group);
    let open = details.processes.iter().filter_map(|pid| proc.descriptors(*pid).ok());
    let open = open.fold(Descriptors::default(), |sum, one| Descriptors {
        files: sum.files.saturating_add(one.files),
        sockets: sum.sockets.saturating_add(one.sockets),
    });
    let first = if is_root { Some(INIT) } else { details.processes.iter().min().copied() };
    let limit = first.and_then(|pid| proc.open_files_limit(pid).ok());
    // As upstream: what has no limit is -1.
    let open_files_limit = limit.map(|limit| limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)));
    Some(Reading { usage, details, open, open_files_limit })
}

/// A file system on a disk.
#[derive(Debug, Clone)]
pub(super) struct DiskReading {
    /// Such as `/dev/sda1`.
    pub(super) device: String,
    pub(super) room: FileSystem,
    pub(super) disk: Option<Disk>,
}

/// The file systems of the machine that lie on disks, each once.
pub(super) fn disks(proc: &Proc) -> Vec<DiskReading> {
    let disks = proc.disks().unwrap_or_default();
    let mut out = Vec::new();
    for (device, mount) in on_disks(LinuxMounts.list().unwrap_or_default()) {
        let Ok(room) = filesystem(&mount.target) else { continue };
        let disk = disks.iter().find(|disk| format!("{}:{}", disk.major, disk.minor) == mount.device);
        out.push(DiskReading { device, room, disk: disk.copied() });
    }
    out
}

/// By the name of the device; the first mount of each stands for all.
fn on_disks(mounts: Vec<MountInfo>) -> BTreeMap<String, MountInfo> {
    let mut found = BTreeMap::new();
    for mount in mounts {
        if ON_DISKS.contains(&mount.kind.as_str()) && mount.source.starts_with("/dev/") {
            found.entry(mount.source.clone()).or_insert(mount);
        }
    }
    found
}

/// The names of the devices that groups used, by their numbers.
pub(super) fn device_names<'a>(
    proc: &Proc,
    readings: impl Iterator<Item = &'a Reading>,
) -> BTreeMap<(u32, u32), String> {
    let mut names = BTreeMap::new();
    for device in readings.flat_map(|reading| &reading.details.devices) {
        let name = || proc.block_device(device.major, device.minor).map(|name| format!("/dev/{name}"));
        names.entry((device.major, device.minor)).or_insert_with(|| name().unwrap_or_default());
    }
    names
}

#[cfg(test)]
mod tests {
    use sys::cgroups::FakeCgroups;
    use sys::mounts::parse_mountinfo;

    use super::*;

    #[test]
    fn processes_of_a_group_are_looked_at() {
        let root = tempfile::tempdir().unwrap();
        for pid in [12, 34] {
            std::fs::create_dir_all(root.path().join(format!("proc/{pid}/fd"))).unwrap();
            std::fs::write(root.path().join(format!("proc/{pid}/fd/0")), "").unwrap();
        }
        std::os::unix::fs::symlink("socket:[5]", root.path().join("proc/34/fd/1")).unwrap();
        std::fs::write(root.path().join("proc/12/limits"), "Max open files 1024 4096 files\n").unwrap();
        let (cgroups, group) = (FakeCgroups::new(), CgroupPath::new("pod").unwrap());
        assert!(read(&cgroups, &Proc::at(root.path()), &group).is_none());
        // One that has ended meanwhile does not count.
        let details = Details { processes: vec![34, 12, 99], ..Details::default() };
        cgroups.set_details(&group, details);
        let reading = read(&cgroups, &Proc::at(root.path()), &group).unwrap();
        assert_eq!((reading.open, reading.open_files_limit), (Descriptors { files: 3, sockets: 1 }, Some(1024)));
    }

    #[test]
    fn each_disk_counts_once() {
        let text = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 8:1 /var /mnt rw - ext4 /dev/sda1 rw\n\
                    23 21 0:5 / /run rw - tmpfs tmpfs rw\n24 21 8:2 / /data rw - xfs /dev/sda2 rw\n";
        let found = on_disks(parse_mountinfo(text));
        let found: Vec<(&str, &str)> =
            found.iter().map(|(device, mount)| (device.as_str(), mount.target.to_str().unwrap())).collect();
        assert_eq!(found, [("/dev/sda1", "/"), ("/dev/sda2", "/data")]);
    }
}
