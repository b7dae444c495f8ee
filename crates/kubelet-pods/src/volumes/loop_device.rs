//! Loop devices over the block devices that pods have. As long as there is one, the kernel gives the device's number to no
//! other device, whether a kubelet runs or not: a container would go on with that other one and not notice.
//!
//! They are told apart by the path that they were made for, which is one for each pod: the devices below are the same
//! where pods share a volume.

use std::path::Path;

use serde_json::Value;
use sys::exec::{Command, Exec, ExecError};

/// Why a device is not kept open, or not let go.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoopError {
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error("losetup lists no devices: {0}")]
    List(serde_json::Error),
}

/// Keeps the device at a path open, which has no link in it. Returns whether it was not before.
pub(super) async fn hold(exec: &dyn Exec, path: &Path) -> Result<bool, LoopError> {
    if find(exec, path).await?.is_some() {
        return Ok(false);
    }
    exec.run_ok(&Command::with("losetup", &["--find"]).arg(path)).await?;
    Ok(true)
}

/// Undoes that; fine where nothing keeps the device open.
pub(super) async fn let_go(exec: &dyn Exec, path: &Path) -> Result<(), LoopError> {
    let device = match find(exec, path).await {
        // Without the program nothing can ever have been made with it.
        Err(LoopError::Exec(ExecError::NotFound { .. })) | Ok(None) => return Ok(()),
        found => found?,
    };
    if let Some(device) = device {
        exec.run_ok(&Command::with("losetup", &["--detach"]).arg(device)).await?;
    }
    Ok(())
}

/// The loop device that was made for a path.
async fn find(exec: &dyn Exec, path: &Path) -> Result<Option<String>, LoopError> {
    let listed = exec.run_ok(&Command::with("losetup", &["--list", "--json", "--output", "NAME,BACK-FILE"])).await?;
    let text = listed.text();
    if text.trim().is_empty() {
        return Ok(None);
    }
    let list: Value = serde_json::from_str(&text).map_err(LoopError::List)?;
    let devices = list["loopdevices"].as_array().into_iter().flatten();
    let mut names = devices.filter(|device| device["back-file"].as_str().map(Path::new) == Some(path));
    Ok(names.find_map(|device| device["name"].as_str().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use sys::exec::{FakeExec, Output};

    use super::*;

    const LIST: &str = r#"{"loopdevices": [{"name": "/dev/loop3", "back-file": "/dev/of another"},
        {"name": "/dev/loop7", "back-file": "/map/u1"}]}"#;

    #[tokio::test]
    async fn a_device_is_known_by_its_path() {
        let list = "losetup --list --json --output NAME,BACK-FILE";
        for (listed, path, held, detached) in [
            (LIST, "/map/u1", false, Some("losetup --detach /dev/loop7")),
            (LIST, "/map/u2", true, None),
            ("", "/map/u1", true, None),
            (r#"{"loopdevices": []}"#, "/map/u1", true, None),
        ] {
            let exec = FakeExec::new().answer("--list", Output::ok(listed));
            assert_eq!(hold(&exec, Path::new(path)).await.unwrap(), held, "{path} in {listed}");
            let_go(&exec, Path::new(path)).await.unwrap();
            let made = held.then(|| format!("losetup --find {path}"));
            let detached = detached.map(str::to_owned);
            let expected = [Some(list.to_owned()), made, Some(list.to_owned()), detached];
            assert_eq!(exec.lines(), expected.into_iter().flatten().collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn what_fails_is_an_error() {
        for (rule, output) in [
            ("--list", Output::failed(1, "no /sys")),
            ("--list", Output::ok("loop0")),
            ("--find", Output::failed(1, "no loop device is free")),
        ] {
            let exec = FakeExec::new().answer(rule, output);
            assert!(hold(&exec, Path::new("/map/u1")).await.is_err(), "{rule}");
        }
    }
}
