//! `hack/install-deps.sh` finds nothing to do where it has been run, and says what is missing where it has not.

use sys::exec::{Command, Exec as _, Exit, LinuxExec};

use crate::cluster::repository;

pub(crate) async fn story() -> Result<(), String> {
    if !std::path::Path::new("/etc/debian_version").exists() {
        return Err("this is no Debian".to_owned());
    }
    let script = repository("hack/install-deps.sh");
    let check = async |more: &[&str]| {
        let command = Command::new(&script).arg("--check").args(more.iter().map(ToString::to_string));
        LinuxExec.run(&command).await.expect("the script starts and ends in time")
    };
    let there = check(&[]).await;
    if !there.success() {
        return Err(format!("make deps has not been run here: {}", there.text().trim().replace('\n', ", ")));
    }
    assert_eq!(there.text().trim(), "nothing is missing");
    let elsewhere = check(&["--prefix", "/nonexistent"]).await;
    assert_eq!(elsewhere.exit, Exit::Code(1));
    assert!(elsewhere.text().contains("missing tool: /nonexistent/bin/kubectl-1.36"), "{}", elsewhere.text());
    Ok(())
}
