//! Real programs: their ends, their bounds, their namespaces, and daemons that are found and stopped again.

use super::*;
use crate::process::Stopped;
use crate::test_support::is_root;

fn shell(script: &str) -> Command {
    Command::with("sh", &["-c", script])
}

#[tokio::test]
async fn ends_and_output_are_told() {
    let cases = [
        ("echo out; echo err >&2; exit 3", Exit::Code(3), "out\n", "err"),
        ("kill -9 $$", Exit::Signal(9), "", ""),
        ("true", Exit::Code(0), "", ""),
    ];
    for (script, exit, stdout, stderr) in cases {
        let output = LinuxExec.run(&shell(script)).await.unwrap();
        assert_eq!(
            (output.exit, output.text().as_str(), output.error_text().as_str()),
            (exit, stdout, stderr),
            "{script}"
        );
    }
    let failed = LinuxExec.run_ok(&shell("echo why >&2; exit 1")).await;
    assert!(matches!(failed, Err(ExecError::Failed { exit: Exit::Code(1), stderr, .. }) if stderr == "why"));
}

#[tokio::test]
async fn surroundings_are_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let command = shell("echo $COLOUR; pwd; cat").env("COLOUR", "blue").cwd(dir.path()).stdin("fed");
    let expected = format!("blue\n{}\nfed", dir.path().canonicalize().unwrap().display());
    assert_eq!(LinuxExec.run(&command).await.unwrap().text(), expected);
    let nowhere = shell("true").cwd("/nonexistent");
    assert!(matches!(LinuxExec.run(&nowhere).await, Err(ExecError::Start { .. })));
    assert!(matches!(LinuxExec.run(&Command::new("no-such-program")).await, Err(ExecError::NotFound { .. })));
}

#[tokio::test]
async fn output_is_bounded_and_never_blocks() {
    let command = shell("head -c 3000000 /dev/zero").output_limit_bytes(1000);
    let output = LinuxExec.run(&command).await.unwrap();
    assert!(output.success() && output.truncated);
    assert_eq!(output.stdout.len(), 1000);
    let unread = shell("exec true").stdin(vec![b'x'; 1 << 20]);
    assert!(LinuxExec.run(&unread).await.unwrap().success());
}

#[tokio::test]
async fn output_is_passed_on_as_it_comes() {
    let (sink, mut pieces) = mpsc::channel(1);
    let command = shell("echo one; read line; head -c 100000 /dev/zero; echo why >&2; exit 3");
    let take = async {
        let mut all = Vec::new();
        while let Some(piece) = pieces.recv().await {
            all.extend(piece);
        }
        all
    };
    let (ended, written) = tokio::join!(LinuxExec.pipe(&command, sink), take);
    assert_eq!(ended.unwrap(), Exit::Code(3));
    assert_eq!((written.len(), written.starts_with(b"one\n")), (4 + 100_000 + 4, true));
}

#[tokio::test]
async fn a_program_that_nobody_listens_to_is_killed() {
    let (sink, mut pieces) = mpsc::channel(1);
    let hear_once = async move { pieces.recv().await };
    let command = shell("while :; do echo more; done");
    let (ended, heard) = tokio::join!(LinuxExec.pipe(&command, sink), hear_once);
    assert!(matches!(ended, Ok(Exit::Signal(_))), "{ended:?}");
    assert!(heard.is_some());
    let (sink, pieces) = mpsc::channel(1);
    let silent = shell("exec sleep 64").deadline(Duration::from_millis(200));
    assert!(matches!(LinuxExec.pipe(&silent, sink).await, Err(ExecError::Deadline { .. })));
    drop(pieces);
}

#[tokio::test]
async fn the_deadline_kills_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let command = shell(&format!("sleep 61 & echo $! > {}; wait", file.display())).deadline(Duration::from_millis(500));
    assert!(matches!(LinuxExec.run(&command).await, Err(ExecError::Deadline { .. })));
    let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    if let Ok(grandchild) = Process::of(pid) {
        assert!(grandchild.wait(Duration::from_secs(5)).await.unwrap());
    }
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_up_the_answer() {
    let output = LinuxExec.run(&shell("echo done; sleep 62 &")).await.unwrap();
    assert_eq!(output.text(), "done\n");
}

#[tokio::test]
async fn a_daemon_is_found_by_its_pidfile_and_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (log, pidfile) = (dir.path().join("log"), dir.path().join("pid"));
    let daemon = Daemon::new(shell("echo started; trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"), &log);
    let process = LinuxExec.spawn(&daemon.pidfile(&pidfile)).await.unwrap();
    assert!(process.is_alive());
    while !std::fs::read_to_string(&log).unwrap().contains("started") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(Process::from_pidfile(&pidfile, "trap 'echo bye"), Some(process));
    assert_eq!(Process::from_pidfile(&pidfile, "another program"), None);
    assert_eq!(process.stop(Duration::from_secs(5)).await.unwrap(), Stopped::Gracefully);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "started\nbye\n");
    assert_eq!(process.stop(Duration::from_secs(5)).await.unwrap(), Stopped::Already);
}

#[tokio::test]
async fn a_stubborn_daemon_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"), dir.path().join("log"));
    let process = LinuxExec.spawn(&daemon).await.unwrap();
    while std::fs::read(dir.path().join("log")).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(process.stop(Duration::from_millis(100)).await.unwrap(), Stopped::Killed);
    assert!(!process.is_alive());
}

#[tokio::test]
async fn a_daemon_may_have_its_own_name_and_mounts() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "hostname; readlink /proc/self/ns/mnt; grep -c ' / / .*shared:' /proc/self/mountinfo; exec sleep 63";
    let log = dir.path().join("log");
    let daemon = Daemon::new(shell(script), &log).hostname("node-7").mounts(MountView::OwnShared);
    let process = LinuxExec.spawn(&daemon).await.unwrap();
    while std::fs::read_to_string(&log).unwrap().lines().count() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lines: Vec<_> = std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    assert_eq!((lines[0].as_str(), lines[2].as_str()), ("node-7", "1"));
    let own = std::fs::read_link("/proc/self/ns/mnt").unwrap();
    assert_ne!(lines[1], own.to_string_lossy());
    let inside = Command::with("readlink", &["/proc/self/ns/mnt"]).mount_ns(format!("/proc/{}/ns/mnt", process.pid()));
    assert_eq!(LinuxExec.run(&inside).await.unwrap().text().trim(), lines[1]);
    process.stop(Duration::from_secs(5)).await.unwrap();
}
