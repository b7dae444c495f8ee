//! systemd finds nothing wrong with the units that `coxswain units` writes.

use std::path::{Path, PathBuf};

use sys::exec::{Command, Exec as _, LinuxExec};
use tests::kubectl::{binaries, program};

pub(crate) async fn story() -> Result<(), String> {
    let coxswain = binaries().join("coxswain");
    if !coxswain.is_file() {
        return Err("coxswain is not built: make test builds it".to_owned());
    }
    let Some(analyze) = program("systemd-analyze") else {
        return Err("systemd-analyze is not there: make deps installs it".to_owned());
    };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("e2e-units");
    let root = directory.with_file_name("e2e-units-root");
    for old in [&directory, &root] {
        let _ = std::fs::remove_dir_all(old);
    }
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let write = Command::new(&coxswain).arg("units").arg(flag("out", &directory)).arg(flag("bin-dir", &binaries()));
    let write = write.arg(flag("root", &root)).arg(flag("state-dir", &root.join("run")));
    let written = LinuxExec.run(&write).await.expect("coxswain starts and ends in time");
    assert!(written.success(), "{}", written.error_text());

    let mut units: Vec<PathBuf> =
        std::fs::read_dir(&directory).expect("units were written").flatten().map(|entry| entry.path()).collect();
    units.sort();
    assert_eq!(units.len(), 8, "{units:?}");
    let verify = Command::new(analyze).arg("verify").arg("--man=no").args(&units);
    let verified = LinuxExec.run(&verify).await.expect("systemd-analyze starts and ends in time");
    // A setting that it does not know is only a warning to it.
    let ours = |line: &&str| units.iter().any(|unit| line.contains(&*unit.to_string_lossy()));
    let error_text = verified.error_text();
    let complaints: Vec<&str> = error_text.lines().filter(ours).collect();
    assert!(verified.success() && complaints.is_empty(), "{error_text}");
    Ok(())
}
