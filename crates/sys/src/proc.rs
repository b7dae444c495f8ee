//! Facts about the machine and its processes, from `/proc` and a few files elsewhere. Parsers are tolerant of fields they
//! do not know and never panic on what they read.

mod parse;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub use parse::{Counts, Descriptors, Disk, Interface, Memory, ProcessorTime, Stat};

/// A file larger than this is not read whole; nothing here comes near.
const READ_LIMIT_BYTES: u64 = 4 * 1024 * 1024;
/// The kernel's bounds for the wish to be killed when memory runs out.
const OOM_SCORE_ADJ_RANGE: std::ops::RangeInclusive<i32> = -1000..=1000;

/// The machine's facts below a root directory, which a test may lay out itself.
#[derive(Debug, Clone)]
pub struct Proc {
    root: PathBuf,
}

/// What a request to change a process's out-of-memory score led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomScore {
    Set,
    /// The kernel does not let this process lower the value (no CAP_SYS_RESOURCE): worth a warning, as systemd does it.
    NotPermitted,
}

impl Proc {
    /// This machine.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// A machine whose `/proc`, `/etc` and `/sys` are below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The process's state, parent, start and CPU time.
    ///
    /// # Errors
    /// There is no such process.
    pub fn stat(&self, pid: u32) -> io::Result<Stat> {
        parse::stat(&self.read(&format!("proc/{pid}/stat"))?).ok_or_else(|| malformed("stat"))
    }

    /// The process's arguments; empty for a kernel thread or one that ended.
    ///
    /// # Errors
    /// There is no such process.
    pub fn command_line(&self, pid: u32) -> io::Result<Vec<String>> {
        let line = self.read(&format!("proc/{pid}/cmdline"))?;
        Ok(line.split_terminator('\0').map(str::to_owned).collect())
    }

    /// The capabilities that this process has in effect, one bit each.
    ///
    /// # Errors
    /// `/proc/self/status` cannot be read or has no such line.
    pub fn effective_capabilities(&self) -> io::Result<u64> {
        let text = self.read("proc/self/status")?;
        let value = text.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
        value.ok_or_else(|| malformed("CapEff"))
    }

    /// The numbers of all processes.
    ///
    /// # Errors
    /// `/proc` cannot be listed.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        let entries = std::fs::read_dir(self.root.join("proc"))?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// How many threads there are, and how many there may be.
    ///
    /// # Errors
    /// A file is missing or not in the expected form.
    pub fn threads(&self) -> io::Result<(u64, u64)> {
        let load = self.line("proc/loadavg")?;
        let now = load.split_whitespace().nth(3).and_then(|pair| pair.split_once('/')?.1.parse().ok());
        let limit = |name: &str| self.sysctl(name).ok().and_then(|text| text.parse::<u64>().ok());
        let limits = [limit("kernel/pid_max"), limit("kernel/threads-max")];
        let most = limits.into_iter().flatten().min();
        Ok((now.ok_or_else(|| malformed("loadavg"))?, most.ok_or_else(|| malformed("pid_max"))?))
    }

    /// The network interfaces that a process sees, with their counters; this process's own without a number.
    ///
    /// # Errors
    /// There is no such process.
    pub fn interfaces(&self, pid: Option<u32>) -> io::Result<Vec<Interface>> {
        let of = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        Ok(parse::interfaces(&self.read(&format!("proc/{of}/net/dev"))?))
    }

    /// How many files a process has open, and how many of them are sockets.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn descriptors(&self, pid: u32) -> io::Result<Descriptors> {
        let mut open = Descriptors::default();
        for entry in std::fs::read_dir(self.root.join(format!("proc/{pid}/fd")))?.flatten() {
            open.files += 1;
            let target = std::fs::read_link(entry.path());
            open.sockets += u64::from(target.is_ok_and(|target| target.as_os_str().as_bytes().starts_with(b"socket:")));
        }
        Ok(open)
    }

    /// How many files a process may have open; `None` for as many as it likes.
    ///
    /// # Errors
    /// There is no such process, or its limits are not in the expected form.
    pub fn open_files_limit(&self, pid: u32) -> io::Result<Option<u64>> {
        let text = self.read(&format!("proc/{pid}/limits"))?;
        let soft = text.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
        match soft {
            Some("unlimited") => Ok(None),
            soft => soft.and_then(|soft| soft.parse().ok()).map(Some).ok_or_else(|| malformed("limits")),
        }
    }

    /// What went from and to the block devices of the machine.
    ///
    /// # Errors
    /// `/proc/diskstats` cannot be read.
    pub fn disks(&self) -> io::Result<Vec<Disk>> {
        Ok(parse::disks(&self.read("proc/diskstats")?))
    }

    /// The name below `/dev` of a block device, by its numbers.
    #[must_use]
    pub fn block_device(&self, major: u32, minor: u32) -> Option<String> {
        let text = self.read(&format!("sys/dev/block/{major}:{minor}/uevent")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("DEVNAME=").map(ToOwned::to_owned))
    }

    /// The machine's memory.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn memory(&self) -> io::Result<Memory> {
        Ok(parse::memory(&self.read("proc/meminfo")?))
    }

    /// Whether memory is moved to disks: `/proc/swaps` names one. A kernel without that file has none.
    ///
    /// # Errors
    /// `/proc/swaps` is there and cannot be read.
    pub fn swaps(&self) -> io::Result<bool> {
        match self.read("proc/swaps") {
            // Below the heads of its columns.
            Ok(text) => Ok(text.trim().lines().count() > 1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Processors that are online.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn cpus(&self) -> io::Result<usize> {
        let is_cpu =
            |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        Ok(self.read("proc/stat")?.lines().filter(is_cpu).count())
    }

    /// How long all processors have worked and waited since the start of the machine.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read or does not say.
    pub fn processor_time(&self) -> io::Result<ProcessorTime> {
        parse::processor_time(&self.read("proc/stat")?).ok_or_else(|| malformed("the line of all processors"))
    }

    /// Seconds since 1970 at which the machine was started.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read or has no such line.
    pub fn boot_time_seconds(&self) -> io::Result<u64> {
        let text = self.read("proc/stat")?;
        let value = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        value.ok_or_else(|| malformed("btime"))
    }

    /// The random id of this boot.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn boot_id(&self) -> io::Result<String> {
        self.line("proc/sys/kernel/random/boot_id")
    }

    /// The id of this installation, from `/etc/machine-id` or D-Bus's copy; empty where there is none.
    #[must_use]
    pub fn machine_id(&self) -> String {
        let places = ["etc/machine-id", "var/lib/dbus/machine-id"];
        places.iter().find_map(|place| self.line(place).ok().filter(|id| !id.is_empty())).unwrap_or_default()
    }

    /// The id the hardware or hypervisor gives; falls back to the machine id.
    #[must_use]
    pub fn system_uuid(&self) -> String {
        let places = ["sys/class/dmi/id/product_uuid", "proc/device-tree/vm,uuid", "etc/machine-id"];
        let found = places.iter().find_map(|place| self.line(place).ok().filter(|id| !id.is_empty()));
        found.map(|id| id.trim_end_matches('\0').to_owned()).unwrap_or_default()
    }

    /// The kernel's release, such as `6.12.0-1-amd64`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn kernel_version(&self) -> io::Result<String> {
        self.line("proc/sys/kernel/osrelease")
    }

    /// The machine's host name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hostname(&self) -> io::Result<String> {
        self.line("proc/sys/kernel/hostname")
    }

    /// The fields of `/etc/os-release`, without their quotes; empty where there is no such file.
    #[must_use]
    pub fn os_release(&self) -> BTreeMap<String, String> {
        let places = ["etc/os-release", "usr/lib/os-release"];
        places.iter().find_map(|place| self.read(place).ok()).map(|text| parse::os_release(&text)).unwrap_or_default()
    }

    /// A kernel parameter, such as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    /// The kernel has no such parameter.
    pub fn sysctl(&self, name: &str) -> io::Result<String> {
        self.line(&format!("proc/sys/{}", sysctl_path(name)?.display()))
    }

    /// Sets a kernel parameter of the caller's namespaces.
    ///
    /// # Errors
    /// The kernel has no such parameter, or refuses the value.
    pub fn set_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        std::fs::write(self.root.join("proc/sys").join(sysctl_path(name)?), value)
    }

    /// How likely the kernel picks this process when memory runs out, -1000 (never) to 1000.
    ///
    /// # Errors
    /// There is no such process.
    pub fn oom_score_adj(&self, pid: u32) -> io::Result<i32> {
        self.line(&format!("proc/{pid}/oom_score_adj"))?.parse().map_err(|_| malformed("oom_score_adj"))
    }

    /// Changes that likelihood.
    ///
    /// # Errors
    /// The value is out of range or there is no such process; a lack of permission is no error.
    pub fn set_oom_score_adj(&self, pid: u32, value: i32) -> io::Result<OomScore> {
        if !OOM_SCORE_ADJ_RANGE.contains(&value) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("oom_score_adj {value} is out of range")));
        }
        match std::fs::write(self.root.join(format!("proc/{pid}/oom_score_adj")), value.to_string()) {
            Ok(()) => Ok(OomScore::Set),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(pid, value, %error, "not permitted to set oom_score_adj");
                Ok(OomScore::NotPermitted)
            }
            Err(error) => Err(error),
        }
    }

    /// The first line of a small file.
    /// A parameter of a kernel module.
    ///
    /// # Errors
    /// The module is not loaded, or has no such parameter.
    pub fn module_parameter(&self, module: &str, name: &str) -> io::Result<String> {
        self.line(&format!("sys/module/{module}/parameters/{name}"))
    }

    /// Sets a parameter of a kernel module.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_module_parameter(&self, module: &str, name: &str, value: &str) -> io::Result<()> {
        std::fs::write(self.root.join(format!("sys/module/{module}/parameters/{name}")), value)
    }

    fn line(&self, path: &str) -> io::Result<String> {
        Ok(self.read(path)?.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn read(&self, path: &str) -> io::Result<String> {
        use std::io::Read;
        let mut bytes = Vec::new();
        std::fs::File::open(self.root.join(path))?.take(READ_LIMIT_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A parameter's path below `/proc/sys`; dots separate as well as slashes, unless slashes are there.
fn sysctl_path(name: &str) -> io::Result<PathBuf> {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    let clean = Path::new(&path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if clean && !path.is_empty() {
        return Ok(path.into());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not the name of a kernel parameter")))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not in the expected form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/stat", "cpu  1 2\ncpu0 1\ncpu1 1\nintr 5\nbtime 1700000000\n");
        put("var/lib/dbus/machine-id", "abc\n");
        put("proc/7/cmdline", "sh\0-c\0two words\0");
        put("proc/7/oom_score_adj", "0\n");
        put("proc/7/limits", "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n");
        put("proc/8/limits", "Max open files            unlimited            unlimited            files\n");
        put("proc/7/fd/0", "");
        std::os::unix::fs::symlink("socket:[5]", root.path().join("proc/7/fd/1")).unwrap();
        put("sys/dev/block/8:1/uevent", "MAJOR=8\nMINOR=1\nDEVNAME=sda1\n");
        put("proc/diskstats", "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11 0 0\n   8 16 short 1\n");
        put("proc/sys/net/ipv4/ip_forward", "0\n");
        put("proc/sys/kernel/pid_max", "4000\n");
        put("proc/sys/kernel/threads-max", "3000\n");
        put("proc/loadavg", "0.1 0.2 0.3 2/345 999\n");
        let proc = Proc::at(root.path());
        assert_eq!((proc.cpus().unwrap(), proc.boot_time_seconds().unwrap()), (2, 1_700_000_000));
        assert_eq!((proc.machine_id().as_str(), proc.system_uuid().as_str()), ("abc", ""));
        assert_eq!(proc.command_line(7).unwrap(), ["sh", "-c", "two words"]);
        let mut pids = proc.pids().unwrap();
        pids.sort_unstable();
        assert_eq!(pids, [7, 8]);
        assert_eq!(proc.threads().unwrap(), (345, 3000));
        assert_eq!(proc.descriptors(7).unwrap(), Descriptors { files: 2, sockets: 1 });
        assert_eq!((proc.open_files_limit(7).unwrap(), proc.open_files_limit(8).unwrap()), (Some(1024), None));
        assert_eq!((proc.block_device(8, 1).as_deref(), proc.block_device(8, 2)), (Some("sda1"), None));
        let [disk] = proc.disks().unwrap().try_into().unwrap();
        assert_eq!((disk.major, disk.minor, disk.reads, disk.sectors_written), (8, 1, 1, 7));
        assert_eq!((disk.in_progress, disk.busy_ms, disk.weighted_ms), (9, 10, 11));
        let head =
            "Inter-|   Receive  | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n";
        put("proc/7/net/dev", &format!("{head}  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nbroken: 1 2\n"));
        let counts = |bytes, packets, errors, dropped| Counts { bytes, packets, errors, dropped };
        let eth0 = Interface { name: "eth0".into(), received: counts(1, 2, 3, 4), sent: counts(9, 10, 11, 12) };
        assert_eq!(proc.interfaces(Some(7)).unwrap(), [eth0]);
        proc.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        assert_eq!(proc.sysctl("net/ipv4/ip_forward").unwrap(), "1");
        assert_eq!(proc.set_oom_score_adj(7, 999).unwrap(), OomScore::Set);
        assert_eq!(proc.oom_score_adj(7).unwrap(), 999);
        assert!(proc.set_oom_score_adj(7, 1001).is_err());
        assert!(proc.stat(8).is_err());
    }

    #[test]
    fn swap_is_on_where_the_kernel_names_a_place_of_it() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::at(root.path());
        assert!(!proc.swaps().unwrap(), "a kernel without swap has no such file");
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        for (text, expected) in [("", false), (head, false), (&format!("{head}/dev/sda2 partition 1 0 -2\n"), true)] {
            std::fs::write(root.path().join("proc/swaps"), text).unwrap();
            assert_eq!(proc.swaps().unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn parameters_stay_below_proc_sys() {
        for bad in ["", "../../etc/passwd", "/etc/passwd", "net/../../x"] {
            assert!(sysctl_path(bad).is_err(), "{bad}");
        }
        // A dot within a name needs the form with slashes.
        assert_eq!(
            sysctl_path("net/ipv4/conf/eth0.100/rp_filter").unwrap(),
            Path::new("net/ipv4/conf/eth0.100/rp_filter")
        );
    }

    #[test]
    fn this_machine_has_facts() {
        let proc = Proc::system();
        assert!(proc.cpus().unwrap() > 0 && proc.memory().unwrap().total_bytes > 0);
        assert!(!proc.kernel_version().unwrap().is_empty() && !proc.boot_id().unwrap().is_empty());
        assert_eq!(proc.stat(std::process::id()).unwrap().parent, std::os::unix::process::parent_id());
    }
}
