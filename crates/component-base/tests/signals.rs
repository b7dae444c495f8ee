//! A component in a process of its own: SIGTERM begins the shutdown, tasks are drained, the exit code is 0.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::Tidy;
use component_base::flags::{GLOBAL, LOGS};
use component_base::{Component, no_config_file, run_with};

const COMPONENT: Component = Component {
    name: "kube-test",
    about: "Tests.",
    flags: &[GLOBAL, LOGS],
    gates: component_base::Known::KUBERNETES,
    prepare: no_config_file,
    drain: Duration::from_secs(20),
};

#[expect(clippy::disallowed_methods, reason = "the test sends itself a real signal")]
fn terminate_self() {
    let status = std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

const TIDY: Tidy = Tidy { thread: || (), process: || () };

#[test]
fn sigterm_drains_and_exits_cleanly() {
    let drained = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&drained);
    let code = run_with(&COMPONENT, ["-v=1".to_owned()], TIDY, |_, lifecycle| async move {
        let token = lifecycle.tasks().token();
        lifecycle.tasks().spawn("drains", async move {
            token.cancelled().await;
            tokio::task::yield_now().await;
            seen.store(true, Ordering::SeqCst);
        });
        terminate_self();
        lifecycle.shutdown_requested().await;
        Ok(())
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    assert!(drained.load(Ordering::SeqCst), "the task was not waited for");

    let code = run_with(&COMPONENT, [], TIDY, |_, _| async { Err("no way".into()) });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));

    let code = run_with(&COMPONENT, [], TIDY, |_, lifecycle| async move {
        terminate_self();
        // Two signals at once may arrive as one.
        lifecycle.shutdown_requested().await;
        terminate_self();
        std::future::pending().await
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));
}
