//! What a process has used: processor time and resident memory, as the kernel counts them.

use std::io;

use sys::proc::Proc;

/// The kernel reports processor time in these, whatever its own tick: `sysconf(_SC_CLK_TCK)` on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// `/proc/PID/statm` and `stat` count memory in pages of this size on every machine that the project runs on.
const PAGE_BYTES: u64 = 4096;

/// Processor time of `pid` over its whole life, user and system of all its threads; steps of 10 ms.
///
/// # Errors
/// There is no such process.
pub fn cpu_seconds(pid: u32) -> io::Result<f64> {
    let stat = Proc::system().stat(pid)?;
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 ticks, three million years")]
    let ticks = (stat.user_ticks + stat.system_ticks) as f64;
    Ok(ticks / TICKS_PER_SECOND)
}

/// Memory of `pid` that is in RAM now.
///
/// # Errors
/// There is no such process.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    Ok(Proc::system().stat(pid)?.resident_pages * PAGE_BYTES)
}

/// The most memory of `pid` that was in RAM at any time of its life.
///
/// # Errors
/// There is no such process.
pub fn most_resident_bytes(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map(|kib: u64| kib * 1024).ok_or_else(|| io::Error::other("the kernel does not tell it"))
}

/// The processor time that a process uses between two moments.
#[derive(Debug)]
pub struct CpuMeter {
    pid: u32,
    start_seconds: f64,
}

impl CpuMeter {
    /// Starts to count now.
    ///
    /// # Errors
    /// There is no such process.
    pub fn start(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, start_seconds: cpu_seconds(pid)? })
    }

    /// Seconds since the start.
    ///
    /// # Errors
    /// The process has ended.
    pub fn seconds(&self) -> io::Result<f64> {
        Ok(cpu_seconds(self.pid)? - self.start_seconds)
    }
}

/// The processor time that the whole machine uses between two moments, whoever for: processes that come and go and what
/// the kernel does by itself count, too.
#[derive(Debug)]
pub struct MachineMeter {
    start_seconds: f64,
}

impl MachineMeter {
    /// Starts to count now.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub fn start() -> io::Result<Self> {
        Ok(Self { start_seconds: busy_seconds()? })
    }

    /// Seconds since the start, of all processors together.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub fn seconds(&self) -> io::Result<f64> {
        Ok(busy_seconds()? - self.start_seconds)
    }
}

fn busy_seconds() -> io::Result<f64> {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 ticks, three million years")]
    Ok(Proc::system().processor_time()?.busy_ticks as f64 / TICKS_PER_SECOND)
}

/// The machine's load over the last minute, to be noted beside figures; 0 where it is not to be had.
#[must_use]
pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{CpuMeter, resident_bytes};

    #[test]
    fn work_and_memory_are_seen() {
        let pid = std::process::id();
        let meter = CpuMeter::start(pid).unwrap();
        let mut sum = 0_u64;
        while meter.seconds().unwrap() < 0.02 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        let before = resident_bytes(pid).unwrap();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(resident_bytes(pid).unwrap() > before + (32 << 20), "{}", block.len());
    }
}
