//! Programs as real processes. Namespaces are entered between fork and exec, so that no helper program is needed and the
//! caller's threads stay where they are.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Pid, Signal, kill_process_group, setsid};
use rustix::system::sethostname;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command as TokioCommand};
use tokio::sync::mpsc;

use super::{Command, Daemon, Exec, ExecError, Exit, MountView, Output};
use crate::process::Process;

/// A program that ended may have left a child that holds its output open; it is read this much longer.
const STRAGGLER_GRACE: Duration = Duration::from_millis(300);

/// What is read of a program's output in one go.
const PIECE_BYTES: usize = 16 * 1024;

/// Runs programs on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxExec;

#[async_trait]
impl Exec for LinuxExec {
    async fn run(&self, command: &Command) -> Result<Output, ExecError> {
        let stdin = if command.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        let mut child = start(command, stdin)?;
        let _group = ProcessGroup::of(&child);
        let ended = tokio::time::timeout(command.deadline, collect(&mut child, command)).await;
        ended.map_err(|_| deadline_error(command))?
    }

    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        let mut child = start(command, Stdio::null())?;
        let _group = ProcessGroup::of(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let piping = async {
            let (out, err) = tokio::join!(pass_on(stdout, &sink), pass_on(stderr, &sink));
            out.and(err)?;
            if sink.is_closed() {
                child.start_kill()?;
            }
            child.wait().await
        };
        let ended = tokio::time::timeout(command.deadline, piping).await.map_err(|_| deadline_error(command))?;
        ended.map(exit).map_err(|source| ExecError::Wait { line: command.line(), source })
    }

    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
        let command = &daemon.command;
        let failed = |what: &str, source| ExecError::Start { line: command.line(), what: what.to_owned(), source };
        let log = append_to(&daemon.log).map_err(|source| failed("opening its log", source))?;
        let copy = log.try_clone().map_err(|source| failed("opening its log", source))?;
        let mut prepared = prepare(command)?;
        prepared.stdin(Stdio::null()).stdout(log).stderr(copy);
        enter_namespaces(&mut prepared, command)?;
        detach(&mut prepared, daemon);
        let child = prepared.spawn().map_err(|source| start_error(command, source))?;
        let pid = child.id().ok_or_else(|| failed("it ended at once", io::ErrorKind::NotFound.into()))?;
        let process = Process::of(pid).map_err(|source| failed("it ended at once", source))?;
        if let Some(pidfile) = &daemon.pidfile {
            crate::fs::write_atomic(pidfile, format!("{pid}\n").as_bytes(), 0o644)
                .map_err(|source| failed("writing its pidfile", source))?;
        }
        // Dropping the handle leaves the process running; tokio still reaps it should it end before the caller does.
        drop(child);
        Ok(process)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where programs are started")]
fn prepare(command: &Command) -> Result<TokioCommand, ExecError> {
    let mut prepared = TokioCommand::new(&command.program);
    prepared.args(&command.args).envs(command.env.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &command.cwd {
        if !directory.is_dir() {
            let what = format!("no directory {}", directory.display());
            return Err(ExecError::Start { line: command.line(), what, source: io::ErrorKind::NotFound.into() });
        }
        prepared.current_dir(directory);
    }
    Ok(prepared)
}

/// Starts a program whose output is read, in a process group of its own.
fn start(command: &Command, stdin: Stdio) -> Result<Child, ExecError> {
    let mut prepared = prepare(command)?;
    prepared.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    enter_namespaces(&mut prepared, command)?;
    prepared.spawn().map_err(|source| start_error(command, source))
}

fn deadline_error(command: &Command) -> ExecError {
    ExecError::Deadline { line: command.line(), deadline: command.deadline }
}

fn start_error(command: &Command, source: io::Error) -> ExecError {
    if source.kind() == io::ErrorKind::NotFound {
        return ExecError::NotFound { program: command.program.clone() };
    }
    ExecError::Start { line: command.line(), what: "executing it".to_owned(), source }
}

/// Lets the child enter the command's namespaces before it becomes the program. The mount namespace comes last, because
/// the paths of the others are the caller's.
#[expect(unsafe_code, reason = "pre_exec is the only way into a namespace without moving the calling thread")]
fn enter_namespaces(prepared: &mut TokioCommand, command: &Command) -> Result<(), ExecError> {
    let wanted = [(&command.netns, LinkNameSpaceType::Network), (&command.mount_ns, LinkNameSpaceType::Mount)];
    for (path, kind) in wanted {
        let Some(path) = path else { continue };
        let namespace = File::open(path).map_err(|source| ExecError::Start {
            line: command.line(),
            what: format!("opening namespace {}", path.display()),
            source,
        })?;
        let enter = move || move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(io::Error::from);
        // SAFETY: between fork and exec the closure makes one system call on an open descriptor; it allocates nothing
        // and takes no lock.
        unsafe { prepared.pre_exec(enter) };
    }
    Ok(())
}

/// Gives a daemon its session and what it shall not share with the caller.
#[expect(unsafe_code, reason = "sessions, host names and mount views are set between fork and exec")]
fn detach(prepared: &mut TokioCommand, daemon: &Daemon) {
    let hostname = daemon.hostname.clone();
    let mounts = daemon.mounts;
    let separate = move || -> io::Result<()> {
        setsid()?;
        if let Some(name) = &hostname {
            // SAFETY: without `UnshareFlags::FILES` no descriptor changes its owner.
            unsafe { unshare_unsafe(UnshareFlags::NEWUTS) }?;
            sethostname(name.as_bytes())?;
        }
        if mounts == MountView::OwnShared {
            // SAFETY: as above.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
            let root = c"/";
            // Slave first: sharing alone would keep the copy in the machine's peer group where that is shared.
            mount_change(root, MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
            mount_change(root, MountPropagationFlags::SHARED | MountPropagationFlags::REC)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls on borrowed data; it allocates nothing and takes
    // no lock.
    unsafe { prepared.pre_exec(separate) };
}

/// Feeds the program, reads what it writes, and waits for its end.
async fn collect(child: &mut Child, command: &Command) -> Result<Output, ExecError> {
    let wait_error = |source| ExecError::Wait { line: command.line(), source };
    let stdin = child.stdin.take();
    let mut stdout = Capture::new(child.stdout.take(), command.output_limit_bytes);
    let mut stderr = Capture::new(child.stderr.take(), command.output_limit_bytes);
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program may end without reading everything; its exit code tells what that means.
            let _ = stdin.write_all(&command.stdin).await;
        }
        std::future::pending::<()>().await;
    };
    let status = {
        let streams = async { tokio::join!(stdout.read_all(), stderr.read_all()) };
        tokio::pin!(streams, feed);
        let mut streams_done = None;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(wait_error)?,
                done = &mut streams, if streams_done.is_none() => streams_done = Some(done),
                () = &mut feed => {}
            }
        };
        if streams_done.is_none() {
            streams_done = tokio::time::timeout(STRAGGLER_GRACE, streams).await.ok();
        }
        if let Some((out, err)) = streams_done {
            out.and(err).map_err(wait_error)?;
        }
        status
    };
    let truncated = stdout.truncated || stderr.truncated;
    Ok(Output { exit: exit(status), stdout: stdout.kept, stderr: stderr.kept, truncated })
}

/// Passes on what a program writes, until that ends or nobody wants it any more.
async fn pass_on(source: Option<impl AsyncRead + Unpin>, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let Some(mut source) = source else { return Ok(()) };
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let count = tokio::select! {
            biased;
            () = sink.closed() => return Ok(()),
            count = source.read_buf(&mut piece) => count?,
        };
        if count == 0 || sink.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// One output stream, of which the first `limit` bytes are kept and the rest is read and dropped, so that the program
/// never blocks on a full pipe.
struct Capture<R> {
    source: Option<R>,
    limit: usize,
    kept: Vec<u8>,
    truncated: bool,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    fn new(source: Option<R>, limit: usize) -> Self {
        Self { source, limit, kept: Vec::new(), truncated: false }
    }

    async fn read_all(&mut self) -> io::Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        let mut chunk = [0; PIECE_BYTES];
        loop {
            let count = source.read(&mut chunk).await?;
            if count == 0 {
                return Ok(());
            }
            let room = self.limit.saturating_sub(self.kept.len());
            self.kept.extend(chunk.iter().take(count.min(room)));
            self.truncated |= count > room;
        }
    }
}

/// Kills whatever is left of a command's process group when the command is done with or given up.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The group keeps its number as long as one member lives, so this cannot hit a stranger unless it is empty and
        // the number was given out again within this call's lifetime, which the kernel's sequential numbering rules out.
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
