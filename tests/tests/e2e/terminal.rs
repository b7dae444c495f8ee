//! A terminal with a program on it, as a user sits before one: what is typed goes in, what is shown comes out, and the
//! window can change its size.

use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use sys::exec::Command;
use tests::kubectl::PATIENCE;
use tokio::process::Child;
use tokio::time::Instant;

const LOOK: Duration = Duration::from_millis(30);
/// After this long without the wanted effect a line is typed again.
const TYPE_AGAIN: Duration = Duration::from_secs(2);
/// Most that is read from the screen at once.
const CHUNK: usize = 4096;

/// The screen's end of a pseudo-terminal, and the program on the other end; the program ends with this value.
pub(crate) struct Terminal {
    screen: OwnedFd,
    /// Stays open, so that what was shown last can be read after the program's end.
    line: OwnedFd,
    child: Child,
    shown: String,
    what: String,
}

impl Terminal {
    /// Starts a command in a session of its own that the terminal controls; so the kernel tells it of a new size.
    pub(crate) fn start(command: &Command, rows: u16, columns: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        unlockpt(&screen).expect("the terminal can be unlocked");
        let line = ioctl_tiocgptpeer(&screen, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("the terminal's other end");
        tcsetwinsize(&screen, size(rows, columns)).expect("the terminal has a size");
        let flags = fcntl_getfl(&screen).expect("a descriptor has flags");
        fcntl_setfl(&screen, flags | OFlags::NONBLOCK).expect("a descriptor's flags can be set");
        let end = || Stdio::from(line.try_clone().expect("a descriptor can be copied"));
        #[expect(clippy::disallowed_methods, reason = "sys::exec runs nothing on a terminal")]
        let mut program = tokio::process::Command::new("setsid");
        program.arg("--ctty").arg("--wait").arg(&command.program).args(&command.args);
        program.envs(command.env.iter().map(|(name, value)| (name, value))).env("TERM", "dumb");
        let child = program.stdin(end()).stdout(end()).stderr(end()).kill_on_drop(true).spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", command.line()));
        Self { screen, line, child, shown: String::new(), what: command.line() }
    }

    /// What a user types.
    pub(crate) fn type_(&mut self, text: &str) {
        let written = rustix::io::write(&self.screen, text.as_bytes());
        assert_eq!(written, Ok(text.len()), "typing into {}", self.what);
    }

    /// Waits until something was shown, and gives everything up to it; what comes later is for the next call.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        match self.shows(wanted, PATIENCE).await {
            Some(text) => text,
            None => panic!("{} does not show {wanted:?} but {:?}", self.what, self.shown),
        }
    }

    /// Types a line until it has the effect: the first keys may be too early for who is to see them.
    pub(crate) async fn type_until(&mut self, line: &str, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            self.type_(line);
            if let Some(text) = self.shows(wanted, TYPE_AGAIN).await {
                return text;
            }
            let late = start.elapsed() >= PATIENCE;
            assert!(!late, "{} does not show {wanted:?} but {:?}", self.what, self.shown);
        }
    }

    /// Whether something is shown in time.
    async fn shows(&mut self, wanted: &str, patience: Duration) -> Option<String> {
        let start = Instant::now();
        loop {
            self.read();
            if let Some(at) = self.shown.find(wanted) {
                let rest = self.shown.split_off(at + wanted.len());
                return Some(std::mem::replace(&mut self.shown, rest));
            }
            if start.elapsed() >= patience {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The window gets another size.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.screen, size(rows, columns)).expect("the size can be set");
    }

    /// Waits for the program's end: its code, and what it showed last.
    pub(crate) async fn ended(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let status: ExitStatus = loop {
            self.read();
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "{} does not end; it shows {:?}", self.what, self.shown);
            tokio::time::sleep(LOOK).await;
        };
        self.read();
        (status.code(), std::mem::take(&mut self.shown))
    }

    /// Whether the terminal shows what is typed, as it does unless a program took that over.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.line).expect("a terminal has attributes").local_modes.contains(LocalModes::ECHO)
    }

    /// Takes what is on the screen.
    fn read(&mut self) {
        let mut chunk = [0; CHUNK];
        loop {
            match rustix::io::read(&self.screen, &mut chunk) {
                Ok(count) if count > 0 => {
                    let part = chunk.get(..count).unwrap_or_default();
                    self.shown.push_str(&String::from_utf8_lossy(part));
                }
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
