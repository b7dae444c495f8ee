//! File systems on block devices of the machine: made where a device holds nothing at all, looked over otherwise, and
//! mounted. All of it by the machine's own programs, asked and told of as upstream does.

use std::path::Path;
use std::time::Duration;

use sys::exec::{Command, Exec, ExecError, Exit};

use super::mount_program::{self, ProgramError};

/// How long a large device may take to be given a file system, or to be looked over.
const FORMAT_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How the program says that it has found nothing.
const NOTHING_FOUND: Exit = Exit::Code(2);
/// What is found where there is no file system but something else.
const UNKNOWN_DATA: &str = "unknown data, probably partitions";

/// Why a device has no file system in place.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormatError {
    #[error("{0:?} is not the name of a file system")]
    Kind(String),
    #[error("failed to get disk format of disk {device}: {why}")]
    Unknown { device: String, why: String },
    #[error("cannot mount unformatted disk {device} as we are manipulating it in read-only mode")]
    ReadOnly { device: String },
    #[error(
        "format of disk {device:?} failed: type:({kind:?}) target:({target:?}) options:({options:?}) errcode:({why}) \
         output:({output}) "
    )]
    Make { device: String, kind: String, target: String, options: String, why: String, output: String },
    #[error("'fsck' found errors on device {device} but could not correct them: {output}")]
    Broken { device: String, output: String },
    #[error("'fsck' of device {device} did not end: {source}")]
    Check { device: String, source: ExecError },
    #[error("{source}")]
    Mount {
        source: ProgramError,
        /// Whether the device holds another file system than it is said to.
        mismatch: bool,
    },
}

impl FormatError {
    /// Whether that is so because the device holds another file system than it is said to.
    pub(super) fn is_mismatch(&self) -> bool {
        matches!(self, Self::Mount { mismatch: true, .. })
    }
}

/// A device, and what is to become of it.
pub(super) struct Device<'a> {
    pub(super) path: &'a Path,
    /// The kind of the file system, such as `ext4`.
    pub(super) kind: &'a str,
    pub(super) options: Vec<&'a str>,
}

impl Device<'_> {
    /// Mounts the device's file system at `target`. Only a device on which nothing is found is given one.
    ///
    /// # Errors
    /// Nothing is mounted; what the device held is still there.
    pub(super) async fn mount(&self, exec: &dyn Exec, target: &Path) -> Result<(), FormatError> {
        // It is part of the name of a program.
        if self.kind.is_empty() || !self.kind.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
            return Err(FormatError::Kind(self.kind.to_owned()));
        }
        let read_only = self.options.contains(&"ro");
        let mut options = self.options.clone();
        options.push("defaults");
        let found = self.found(exec).await?;
        match &found {
            None if read_only => return Err(FormatError::ReadOnly { device: self.name() }),
            None => self.make(exec, target, &options.join(",")).await?,
            Some(_) if read_only => {}
            Some(_) => self.look_over(exec).await?,
        }
        let mismatch = found.as_ref().is_some_and(|found| found != self.kind);
        if mismatch {
            tracing::warn!(device = %self.path.display(), wanted = self.kind, ?found, "A disk holds another file system than it is to be mounted as");
        }
        let mounted = mount_program::mount(exec, self.kind, &options, &self.name(), target).await;
        mounted.map_err(|source| FormatError::Mount { source, mismatch })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What the device holds; `None` for nothing.
    async fn found(&self, exec: &dyn Exec) -> Result<Option<String>, FormatError> {
        let command = Command::with("blkid", &["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export"]).arg(self.path);
        let ended = exec.run(&command).await;
        // It ends in the same way where it cannot read the device, which may hold anything then; but not in silence.
        let is_silent = |output: &sys::exec::Output| output.stdout.is_empty() && output.stderr.is_empty();
        if ended.as_ref().is_ok_and(|output| output.exit == NOTHING_FOUND && is_silent(output)) {
            return Ok(None);
        }
        let unknown = |(why, output): (String, String)| {
            let why = [why.as_str(), output.trim()].join(" ").trim_end().to_owned();
            FormatError::Unknown { device: self.name(), why }
        };
        let text = mount_program::judged(ended).map_err(unknown)?.text();
        let value = |name: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(own, _)| *own == name).map(|(_, value)| value.to_owned()).filter(|value| !value.is_empty())
        };
        let kind = value("TYPE").filter(|_| value("PTTYPE").is_none());
        Ok(Some(kind.unwrap_or_else(|| UNKNOWN_DATA.to_owned())))
    }

    async fn make(&self, exec: &dyn Exec, target: &Path, options: &str) -> Result<(), FormatError> {
        let args: &[&str] = match self.kind {
            // Nobody is there to answer questions; no blocks are kept for root.
            "ext3" | "ext4" => &["-F", "-m0"],
            "xfs" => &["-f"],
            _ => &[],
        };
        let command = Command::with(&format!("mkfs.{}", self.kind), args).arg(self.path).deadline(FORMAT_LIMIT);
        tracing::info!(device = %self.path.display(), kind = self.kind, "A disk holds nothing; making a file system on it");
        let made = mount_program::judged(exec.run(&command).await);
        let failed = |(why, output)| FormatError::Make {
            device: self.name(),
            kind: self.kind.to_owned(),
            target: target.display().to_string(),
            options: options.to_owned(),
            why,
            output,
        };
        made.map(drop).map_err(failed)
    }

    /// Has what can be repaired repaired.
    async fn look_over(&self, exec: &dyn Exec) -> Result<(), FormatError> {
        let device = self.name();
        match exec.run(&Command::with("fsck", &["-a"]).arg(self.path).deadline(FORMAT_LIMIT)).await {
            Ok(output) => match output.exit {
                Exit::Code(0) => {}
                // One bit says that errors were corrected, another that some were not.
                Exit::Code(code) if code & 4 != 0 => {
                    return Err(FormatError::Broken { device, output: mount_program::said(&output) });
                }
                exit => tracing::info!(device, ?exit, output = output.text(), "A file system was looked over"),
            },
            Err(ExecError::NotFound { .. }) => {
                tracing::warn!(device, "'fsck' not found on system; continuing mount without running 'fsck'.");
            }
            Err(source) => return Err(FormatError::Check { device, source }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sys::exec::{FakeExec, Output};

    use super::*;

    const BLKID: &str = "blkid -p -s TYPE -s PTTYPE -o export /dev/x";

    /// What `blkid` says, the kind and options that are wanted, and what is run then or goes wrong.
    type Case<'a> = (&'a str, Output, &'a str, &'a [&'a str], Result<&'a [&'a str], &'a str>);

    fn exited(code: i32, stdout: &str) -> Output {
        Output { exit: Exit::Code(code), stdout: stdout.into(), ..Output::ok("") }
    }

    #[tokio::test]
    async fn only_a_device_that_holds_nothing_is_given_a_file_system() {
        let nothing = || exited(2, "");
        let ext4 = || Output::ok("DEVNAME=/dev/x\nTYPE=ext4\n");
        let cases: [Case<'_>; 11] = [
            (
                "nothing",
                nothing(),
                "ext4",
                &[],
                Ok(&["mkfs.ext4 -F -m0 /dev/x", "mount -t ext4 -o defaults -- /dev/x /t"]),
            ),
            (
                "xfs",
                nothing(),
                "xfs",
                &["noatime"],
                Ok(&["mkfs.xfs -f /dev/x", "mount -t xfs -o noatime,defaults -- /dev/x /t"]),
            ),
            (
                "another kind",
                nothing(),
                "btrfs",
                &[],
                Ok(&["mkfs.btrfs /dev/x", "mount -t btrfs -o defaults -- /dev/x /t"]),
            ),
            ("there", ext4(), "ext4", &[], Ok(&["fsck -a /dev/x", "mount -t ext4 -o defaults -- /dev/x /t"])),
            ("not to be written", ext4(), "ext4", &["ro"], Ok(&["mount -t ext4 -o ro,defaults -- /dev/x /t"])),
            ("of another kind", ext4(), "xfs", &[], Ok(&["fsck -a /dev/x", "mount -t xfs -o defaults -- /dev/x /t"])),
            (
                "partitions",
                Output::ok("PTTYPE=gpt\n"),
                "ext4",
                &[],
                Ok(&["fsck -a /dev/x", "mount -t ext4 -o defaults -- /dev/x /t"]),
            ),
            (
                "nothing, and not to be written",
                nothing(),
                "ext4",
                &["ro"],
                Err("cannot mount unformatted disk /dev/x as we are manipulating it in read-only mode"),
            ),
            (
                "no answer",
                Output::failed(2, "error: /dev/x: Input/output error\n"),
                "ext4",
                &[],
                Err("failed to get disk format of disk /dev/x: exit status 2 error: /dev/x: Input/output error"),
            ),
            ("several", exited(8, ""), "ext4", &[], Err("failed to get disk format of disk /dev/x: exit status 8")),
            ("a path", nothing(), "../x", &[], Err("\"../x\" is not the name of a file system")),
        ];
        for (case, found, kind, options, expected) in cases {
            let exec = FakeExec::new().answer("blkid", found);
            let device = Device { path: Path::new("/dev/x"), kind, options: options.to_vec() };
            let mounted = device.mount(&exec, Path::new("/t")).await.map_err(|error| error.to_string());
            assert_eq!(mounted, expected.map(drop).map_err(ToOwned::to_owned), "{case}");
            let lines = exec.lines();
            match expected {
                Ok(expected) => assert_eq!(lines, [&[BLKID], expected].concat(), "{case}"),
                Err(_) => assert!(lines.iter().all(|line| line == BLKID), "{case}: {lines:?}"),
            }
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_as_upstream_tells_it() {
        let ext4 = "TYPE=ext4\n";
        for (found, fails, output, mismatch, expected) in [
            (
                exited(2, ""),
                "mkfs",
                Output::failed(1, "no room"),
                false,
                Some(
                    "format of disk \"/dev/x\" failed: type:(\"ext4\") target:(\"/t\") options:(\"defaults\") \
                      errcode:(exit status 1) output:(no room) ",
                ),
            ),
            (
                Output::ok(ext4),
                "fsck",
                exited(4, "bad"),
                false,
                Some("'fsck' found errors on device /dev/x but could not correct them: bad"),
            ),
            (Output::ok(ext4), "fsck", exited(1, "mended"), false, None),
            (Output::ok(ext4), "fsck", exited(8, "what?"), false, None),
            (
                Output::ok("TYPE=xfs\n"),
                "mount",
                Output::failed(32, "wrong fs type"),
                true,
                Some(
                    "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t ext4 -o defaults /dev/x \
                      /t\nOutput: wrong fs type\n",
                ),
            ),
        ] {
            let exec = FakeExec::new().answer("blkid", found).answer(fails, output);
            let device = Device { path: Path::new("/dev/x"), kind: "ext4", options: Vec::new() };
            let failed = device.mount(&exec, Path::new("/t")).await.err();
            assert_eq!(failed.as_ref().map(ToString::to_string).as_deref(), expected);
            assert_eq!(failed.is_some_and(|error| error.is_mismatch()), mismatch, "{expected:?}");
        }
    }
}
