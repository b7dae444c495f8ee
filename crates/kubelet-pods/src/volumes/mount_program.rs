//! Mounts that the machine's own programs make: those of network file systems, which the kernel alone does not know how to
//! reach. What they say of a failure is told as upstream tells it.

use std::path::Path;
use std::time::Duration;

use sys::exec::{Command, Exec, ExecError, Exit};

/// How long a mount may take; a server may be far away.
const MOUNT_LIMIT: Duration = Duration::from_secs(120);
/// How long an unmount may take before it is forced.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(60);

/// Why there is no mount, or still one.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("mount failed: {why}\nMounting command: mount\nMounting arguments: {arguments}\nOutput: {output}\n")]
    Mount { why: String, arguments: String, output: String },
    #[error("unmount failed: {why}\nUnmounting arguments: {target}\nOutput: {output}\n")]
    Unmount { why: String, target: String, output: String },
}

/// Mounts `device` at `target`.
pub(super) async fn mount(
    exec: &dyn Exec,
    kind: &str,
    options: &[&str],
    device: &str,
    target: &Path,
) -> Result<(), ProgramError> {
    let mut first = vec!["-t", kind];
    let options = options.join(",");
    if !options.is_empty() {
        first.extend(["-o", &options]);
    }
    // Names that begin with a dash are names, too.
    let command = Command::with("mount", &first).args(["--", device]).arg(target).deadline(MOUNT_LIMIT);
    run(exec, &command).await.map_err(|(why, output)| {
        let arguments = format!("{} {device} {}", first.join(" "), target.display());
        ProgramError::Mount { why, arguments, output }
    })
}

/// Takes the mount at `target` away; where nobody answers, by force.
pub(super) async fn unmount(exec: &dyn Exec, target: &Path) -> Result<(), ProgramError> {
    let gentle = Command::new("umount").arg(target).deadline(UNMOUNT_LIMIT);
    let ended = match exec.run(&gentle).await {
        Err(ExecError::Deadline { .. }) => run(exec, &Command::with("umount", &["-f"]).arg(target)).await,
        ended => judged(ended),
    };
    ended.map_err(|(why, output)| ProgramError::Unmount { why, target: target.display().to_string(), output })
}

async fn run(exec: &dyn Exec, command: &Command) -> Result<(), (String, String)> {
    judged(exec.run(command).await)
}

/// How a program ended, in the words of Go, and what it said.
fn judged(ended: Result<sys::exec::Output, ExecError>) -> Result<(), (String, String)> {
    match ended {
        Ok(output) if output.success() => Ok(()),
        Ok(output) => {
            let why = match output.exit {
                Exit::Code(code) => format!("exit status {code}"),
                Exit::Signal(signal) => format!("signal: {signal}"),
            };
            Err((why, format!("{}{}", output.text(), String::from_utf8_lossy(&output.stderr))))
        }
        Err(ExecError::NotFound { program }) => {
            let why = format!("exec: {:?}: executable file not found in $PATH", program.to_string_lossy());
            Err((why, String::new()))
        }
        Err(error) => Err((error.to_string(), String::new())),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use sys::exec::{Daemon, FakeExec, Output};
    use sys::process::Process;
    use tokio::sync::mpsc;

    use super::*;

    /// A machine on which nothing is installed, or on which what is gentle never ends.
    struct Machine {
        bare: bool,
        ran: FakeExec,
    }

    #[async_trait]
    impl Exec for Machine {
        async fn run(&self, command: &Command) -> Result<Output, ExecError> {
            if self.bare {
                return Err(ExecError::NotFound { program: command.program.clone() });
            }
            if command.args.iter().all(|argument| argument != "-f") {
                return Err(ExecError::Deadline { line: command.line(), deadline: command.deadline });
            }
            self.ran.run(command).await
        }

        async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
            self.ran.pipe(command, sink).await
        }

        async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
            self.ran.spawn(daemon).await
        }
    }

    #[tokio::test]
    async fn what_programs_say_is_told() {
        let refusal = "mount.nfs: access denied by server\n";
        let exec = FakeExec::new().answer("10.0.0.9:/no", Output::failed(32, refusal));
        let target = Path::new("/target");
        mount(&exec, "nfs", &[], "10.0.0.9:/yes", target).await.unwrap();
        let error = mount(&exec, "nfs", &["ro", "vers=4"], "10.0.0.9:/no", target).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o ro,vers=4 10.0.0.9:/no \
             /target\nOutput: mount.nfs: access denied by server\n\n"
        );
        assert_eq!(exec.lines()[0], "mount -t nfs -- 10.0.0.9:/yes /target");
        let bare = Machine { bare: true, ran: FakeExec::new() };
        let error = mount(&bare, "nfs", &[], "s:/p", target).await.unwrap_err().to_string();
        assert!(error.starts_with("mount failed: exec: \"mount\": executable file not found in $PATH\n"), "{error}");
    }

    #[tokio::test]
    async fn who_does_not_answer_is_unmounted_by_force() {
        let hung = Machine { bare: false, ran: FakeExec::new() };
        unmount(&hung, Path::new("/target")).await.unwrap();
        assert_eq!(hung.ran.lines(), ["umount -f /target"]);
        let busy = FakeExec::new().answer("umount", Output::failed(32, "target is busy.\n"));
        let error = unmount(&busy, Path::new("/target")).await.unwrap_err().to_string();
        assert_eq!(busy.lines(), ["umount /target"], "who answers is not forced");
        assert_eq!(error, "unmount failed: exit status 32\nUnmounting arguments: /target\nOutput: target is busy.\n\n");
    }
}
