//! Mounts that the machine's own programs make: those of network file systems, which the kernel alone does not know how to
//! reach, and of devices, whose options it does not know. What they say of a failure is told as upstream tells it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use api_types::core_v1::PersistentVolume;
use sys::exec::{Command, Exec, ExecError, Exit, Output};

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

/// Mount options of persistent volumes from before they were a field.
const OLD_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// What something is mounted with: each option once, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MountOptions(BTreeSet<String>);

impl MountOptions {
    /// Those of a persistent volume.
    pub(super) fn of_volume(volume: &PersistentVolume) -> Self {
        let old = volume.metadata.annotations.get(OLD_OPTIONS).map(String::as_str).unwrap_or_default();
        let old = old.split(',').filter(|option| !option.is_empty()).map(ToOwned::to_owned);
        Self(volume.spec.mount_options.iter().cloned().chain(old).collect())
    }

    pub(super) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// These, and that nothing may be written where that is so.
    pub(super) fn list(&self, read_only: bool) -> Vec<&str> {
        let own = self.0.iter().map(String::as_str);
        own.chain(read_only.then_some("ro")).collect::<BTreeSet<_>>().into_iter().collect()
    }
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
    judged(exec.run(&command).await).map(drop).map_err(|(why, output)| {
        let arguments = format!("{} {device} {}", first.join(" "), target.display());
        ProgramError::Mount { why, arguments, output }
    })
}

/// Takes the mount at `target` away; where nobody answers, by force.
pub(super) async fn unmount(exec: &dyn Exec, target: &Path) -> Result<(), ProgramError> {
    let gentle = Command::new("umount").arg(target).deadline(UNMOUNT_LIMIT);
    let mut ended = exec.run(&gentle).await;
    if matches!(ended, Err(ExecError::Deadline { .. })) {
        ended = exec.run(&Command::with("umount", &["-f"]).arg(target)).await;
    }
    let target = || target.display().to_string();
    judged(ended).map(drop).map_err(|(why, output)| ProgramError::Unmount { why, target: target(), output })
}

/// All that a program said.
pub(super) fn said(output: &Output) -> String {
    format!("{}{}", output.text(), String::from_utf8_lossy(&output.stderr))
}

/// What a program that did its work left; otherwise how it ended, in the words of Go, and what it said.
pub(super) fn judged(ended: Result<Output, ExecError>) -> Result<Output, (String, String)> {
    match ended {
        Ok(output) if output.success() => Ok(output),
        Ok(output) => {
            let why = match output.exit {
                Exit::Code(code) => format!("exit status {code}"),
                Exit::Signal(signal) => format!("signal: {signal}"),
            };
            Err((why, said(&output)))
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
    use sys::exec::{Daemon, FakeExec};
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

    #[test]
    fn options_come_once_and_in_order() {
        let mut volume = PersistentVolume::default();
        volume.spec.mount_options = vec!["vers=4.1".into(), "hard".into()];
        volume.metadata.annotations.insert(OLD_OPTIONS.into(), "noatime,,hard".into());
        let options = MountOptions::of_volume(&volume);
        assert_eq!(options.list(true), ["hard", "noatime", "ro", "vers=4.1"]);
        assert_eq!(options.list(false), ["hard", "noatime", "vers=4.1"]);
        assert!(MountOptions::default().list(false).is_empty());
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
