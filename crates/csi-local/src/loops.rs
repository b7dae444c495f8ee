//! Loop devices: images seen as block devices, by `losetup`.

use std::path::{Path, PathBuf};

use sys::exec::{Command, Exec, ExecError};

/// Whether the device can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    ReadOnly,
}

/// Attaches an image, or finds the device that it is attached to.
pub(crate) async fn attach(exec: &dyn Exec, image: &Path, access: Access) -> Result<PathBuf, ExecError> {
    // Without `--nooverlap` each call would make one more device.
    let mut command = Command::with("losetup", &["--find", "--show", "--nooverlap"]);
    if access == Access::ReadOnly {
        command = command.arg("--read-only");
    }
    let output = exec.run_ok(&command.arg(image)).await?;
    Ok(PathBuf::from(output.text().trim()))
}

/// The device of an image.
pub(crate) async fn find(exec: &dyn Exec, image: &Path) -> Result<Option<PathBuf>, ExecError> {
    let command = Command::with("losetup", &["--noheadings", "--output", "NAME", "--associated"]).arg(image);
    let output = exec.run_ok(&command).await?;
    let text = output.text();
    Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(PathBuf::from))
}

/// Detaches an image; fine if it is not attached.
pub(crate) async fn detach(exec: &dyn Exec, image: &Path) -> Result<(), ExecError> {
    if let Some(device) = find(exec, image).await? {
        exec.run_ok(&Command::with("losetup", &["--detach"]).arg(device)).await?;
    }
    Ok(())
}

/// The device of an image that has grown shows its new size; fine if it is not attached.
pub(crate) async fn refresh(exec: &dyn Exec, image: &Path) -> Result<(), ExecError> {
    if let Some(device) = find(exec, image).await? {
        exec.run_ok(&Command::with("losetup", &["--set-capacity"]).arg(device)).await?;
    }
    Ok(())
}
