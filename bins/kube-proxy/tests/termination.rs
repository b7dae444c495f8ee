//! kube-proxy as a process ends when it is asked to, also while it waits for an API server that is not there.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long the process may take to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// From one look whether somebody has come to the next.
const PAUSE: Duration = Duration::from_millis(10);

/// Stands for `nft`, so that no rule of this machine is touched: it has no tables.
const NFT: &str =
    "#!/bin/sh\ncase \"$*\" in\n*--version*) echo 'nftables v1.0.6' ;;\n*) echo '{\"nftables\": []}' ;;\nesac\n";

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kube-proxy-termination");
    std::fs::create_dir_all(&directory).expect("a directory");
    let nft = directory.join("nft");
    std::fs::write(&nft, NFT).expect("a file");
    std::fs::set_permissions(&nft, std::fs::Permissions::from_mode(0o755)).expect("a program");
    directory
}

/// A kube-proxy that leaves the machine as it is.
#[expect(clippy::disallowed_methods, reason = "the test looks at the exit code of a process of its own")]
fn start(server: &TcpListener) -> Child {
    let path = format!("{}:{}", directory().display(), std::env::var("PATH").unwrap_or_default());
    let port = server.local_addr().expect("an address").port();
    Command::new(env!("CARGO_BIN_EXE_kube-proxy"))
        .arg(format!("--master=http://127.0.0.1:{port}"))
        .args(["--hostname-override=n", "--oom-score-adj=0"])
        .args(["--healthz-port=0", "--metrics-port=0"])
        .args(["--conntrack-max-per-core=0", "--conntrack-min=0"])
        .args(["--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s"])
        .env("PATH", path)
        .env("KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK", "1")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the process starts")
}

#[expect(clippy::disallowed_methods, reason = "the test sends its process a real signal")]
fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name}");
}

/// How the process ended and what it said; it is killed where it does not.
fn end_of(mut process: Child) -> Option<(ExitStatus, String)> {
    let (pid, (tell, told)) = (process.id(), mpsc::channel());
    let waits = std::thread::spawn(move || {
        let mut said = String::new();
        let mut log = process.stderr.take().expect("a pipe");
        // It ends with the process.
        log.read_to_string(&mut said).expect("text");
        drop(tell.send((process.wait().expect("a process"), said)));
    });
    let ended = told.recv_timeout(PATIENCE).ok();
    if ended.is_none() {
        signal("-KILL", pid);
    }
    waits.join().expect("the thread ends");
    ended
}

/// Whoever comes first; a process that has ended already is not waited for.
fn come(server: &TcpListener) -> TcpStream {
    server.set_nonblocking(true).expect("a socket");
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        match server.accept() {
            Ok((stream, _)) => return stream,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    panic!("nobody has come");
}

#[test]
fn it_ends_when_it_is_asked_to_while_no_server_answers() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let process = start(&server);
    // It has come to ask for its node; from here on nobody listens.
    drop(come(&server));
    drop(server);
    signal("-TERM", process.id());
    let (status, said) = end_of(process).expect("it ends");
    assert!(status.success(), "{status}\n{said}");
}
