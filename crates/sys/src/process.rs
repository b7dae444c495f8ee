//! Processes by a handle that a reused number cannot fool: a pid together with the moment it started.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::proc::Proc;

/// How long a process may take to vanish after SIGKILL; longer means that it hangs in the kernel.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// A process, alive or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    /// Clock ticks from boot to its start.
    started: u64,
}

/// How a process was brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It was not running.
    Already,
    /// It ended on SIGTERM.
    Gracefully,
    /// It had to be killed.
    Killed,
    /// It survives even SIGKILL: it hangs in the kernel.
    Stuck,
}

impl Process {
    /// The process that has this number now.
    ///
    /// # Errors
    /// There is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, started: Proc::system().stat(pid)?.start_ticks })
    }

    /// The process a pidfile speaks of, if it runs and one of its arguments contains `argument`. That check keeps a
    /// pidfile left from an earlier boot from naming a stranger.
    #[must_use]
    pub fn from_pidfile(path: &Path, argument: &str) -> Option<Self> {
        let pid = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
        let arguments = Proc::system().command_line(pid).ok()?;
        let process = Self::of(pid).ok()?;
        (arguments.iter().any(|have| have.contains(argument)) && process.is_alive()).then_some(process)
    }

    /// All processes one of whose arguments is exactly `argument`, whoever started them.
    ///
    /// # Errors
    /// `/proc` cannot be listed.
    pub fn with_argument(argument: &str) -> io::Result<Vec<Self>> {
        let proc = Proc::system();
        let has = |pid: &u32| proc.command_line(*pid).is_ok_and(|have| have.iter().any(|word| word == argument));
        Ok(proc.pids()?.into_iter().filter(has).filter_map(|pid| Self::of(pid).ok()).collect())
    }

    /// A handle for recording fakes: a number that no process has.
    pub(crate) fn fake() -> Self {
        Self { pid: u32::MAX, started: 0 }
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it still runs; one that ended but was not waited for by its parent does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Proc::system().stat(self.pid).is_ok_and(|stat| stat.start_ticks == self.started && stat.state != 'Z')
    }

    /// Asks it to end, kills it after `grace`, and waits until it is gone.
    ///
    /// # Errors
    /// The kernel refuses the signal, such as for lack of permission.
    pub async fn stop(&self, grace: Duration) -> io::Result<Stopped> {
        let Some(pidfd) = self.open()? else { return Ok(Stopped::Already) };
        if signal(&pidfd, Signal::TERM)? == Sent::Gone {
            return Ok(Stopped::Already);
        }
        if ended_within(&pidfd, grace).await {
            return Ok(Stopped::Gracefully);
        }
        signal(&pidfd, Signal::KILL)?;
        Ok(if ended_within(&pidfd, KILL_WAIT).await { Stopped::Killed } else { Stopped::Stuck })
    }

    /// Waits until it ends, for at most `limit`; false if it still runs then.
    ///
    /// # Errors
    /// It cannot be watched.
    pub async fn wait(&self, limit: Duration) -> io::Result<bool> {
        let Some(pidfd) = self.open()? else { return Ok(true) };
        Ok(ended_within(&pidfd, limit).await)
    }

    /// Opens it; `None` if it is gone. The check comes after opening, so that the descriptor is surely this process's.
    #[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor it watches")]
    fn open(&self) -> io::Result<Option<AsyncFd<std::os::fd::OwnedFd>>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !self.is_alive() {
            return Ok(None);
        }
        // SAFETY: the descriptor is owned by what it is put into, so that it stays open and the same while registered.
        let registered = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
        Ok(Some(registered?))
    }
}

#[derive(PartialEq, Eq)]
enum Sent {
    Yes,
    Gone,
}

fn signal(pidfd: &AsyncFd<std::os::fd::OwnedFd>, signal: Signal) -> io::Result<Sent> {
    match pidfd_send_signal(pidfd.get_ref(), signal) {
        Ok(()) => Ok(Sent::Yes),
        Err(rustix::io::Errno::SRCH) => Ok(Sent::Gone),
        Err(error) => Err(error.into()),
    }
}

/// A pidfd turns readable when its process has ended.
async fn ended_within(pidfd: &AsyncFd<std::os::fd::OwnedFd>, limit: Duration) -> bool {
    tokio::time::timeout(limit, pidfd.readable()).await.is_ok_and(|ready| ready.is_ok())
}
