//! Commands that hold a connection open: exec, attach, logs, port-forward, cp.

use tests::desk::Desk;
use tests::kubectl::PATIENCE;
use tests::table::{Row, Want::*};

use crate::background::Background;
use crate::cluster::Cluster;

const LOGS: &[Row] = &[
    Row::new("logs shell", Prints("one\ntwo")),
    Row::new("logs shell --tail=1", Prints("two")),
    Row::new("logs shell -c main --limit-bytes=3", Prints("one")),
    Row::new("logs shell --timestamps --tail=1", Says(&["Z two"])),
    Row::new("logs shell --since=1h --prefix", Says(&["[pod/shell/main] one"])),
    Row::new("logs -l run=shell", Prints("one\ntwo")),
    Row::new("logs deployment/web", Succeeds),
    Row::new("logs shell -c none", Fails(&["container none is not valid for pod shell"])),
    Row::new("logs none", Fails(&["pods \"none\" not found"])),
    Row::new("get pod flaky -o jsonpath={.status.containerStatuses[0].restartCount}", Shows(&["1"])),
    Row::new("logs flaky --previous", Shows(&["first"])),
    Row::new("logs flaky", Shows(&["second"])),
    Row::new("logs shell --previous", Fails(&["previous terminated container \"main\" in pod \"shell\" not found"])),
];

const EXEC: &[Row] = &[
    Row::new("exec shell -- echo hello", Prints("hello")),
    Row::new("exec shell -- sh -c 'echo $COLOUR'", Prints("blue")),
    Row::new("exec shell -- hostname", Prints("shell")),
    Row::with("exec -i shell -- cat", "from standard input", Prints("from standard input")),
    Row::with("exec -i shell -- sh -c 'wc -c'", "12345", Prints("5")),
    Row::new("exec shell -- sh -c 'echo out; echo err >&2; exit 3'", Ends(3, &["out", "err", "exit code 3"])),
    Row::new("exec shell -- nonsense", Fails(&["nonsense"])),
    Row::new("exec deployment/web -- hostname", Says(&["web-"])),
    Row::new("exec none -- true", Fails(&["pods \"none\" not found"])),
    Row::new("exec shell -c none -- true", Fails(&["container none"])),
    Row::new("exec shell -- sh -c 'head -c 3000000 /dev/zero | wc -c'", Prints("3000000")),
];

const COPYING: &[Row] = &[
    Row::new("cp $DIR/there shell:/tmp/there", Succeeds),
    Row::new("exec shell -- cat /tmp/there", Prints("copied")),
    Row::new("cp shell:/tmp/there $DIR/back", Succeeds),
    Row::new("exec shell -- sh -c 'mkdir -p /tmp/tree/sub && echo deep > /tmp/tree/sub/file'", Succeeds),
    Row::new("cp shell:/tmp/tree $DIR/tree", Succeeds),
    // It may end well, and before the complaint arrives: tar closes its archive first, and kubectl stops there.
    Row::new("cp shell:/none $DIR/none", Grumbles(&["No such file"])),
];

const ATTACHING: &[Row] = &[
    Row::with(
        "run once --image=busybox:1.36 --image-pull-policy=IfNotPresent --restart=Never -i --rm -- sh -c 'read line; echo got $line'",
        "this\n",
        Says(&["got this", "pod \"once\" deleted"]),
    ),
    Row::new(
        "run failing --image=busybox:1.36 --image-pull-policy=IfNotPresent --restart=Never --attach --rm -- sh -c 'sleep 1; exit 4'",
        Ends(4, &[]),
    ),
];

/// What comes after the end.
const TOO_LATE: &[Row] = &[
    Row::new("get pod talker -o jsonpath={.status.phase}", Shows(&["Succeeded"])),
    Row::new("attach talker", Fails(&["cannot attach a container in a completed pod; current phase is Succeeded"])),
    Row::new(
        "exec talker -- true",
        Fails(&["cannot exec into a container in a completed pod; current phase is Succeeded"]),
    ),
    Row::new("logs talker --tail=1", Prints("last line")),
];

pub(super) async fn story(desk: &Desk, cluster: &Cluster) {
    desk.work_through(LOGS).await;
    desk.work_through(EXEC).await;
    desk.write("there", "copied");
    desk.work_through(COPYING).await;
    let read = |name: &str| std::fs::read_to_string(desk.files.join(name)).unwrap_or_default();
    assert_eq!((read("back").trim(), read("tree/sub/file").trim()), ("copied", "deep"));
    desk.work_through(ATTACHING).await;
    attach_and_follow(desk).await;
    forward(desk, cluster, "pod/shell-echo", "8080").await;
    forward(desk, cluster, "service/web", "80").await;
}

/// Two that follow a pod's output from their moment on until it ends. The pod talks until both are there, however long
/// that takes: a container that has ended cannot be attached to.
async fn attach_and_follow(desk: &Desk) {
    let script = "i=0; until [ -e /tmp/enough ]; do echo line $i; i=$((i+1)); sleep 0.2; done; echo last line; sleep 1";
    let run = "run talker --image=busybox:1.36 --image-pull-policy=IfNotPresent --restart=Never -- sh -c";
    desk.kubectl.ok(&format!("{run} '{script}'")).await;
    desk.kubectl.ok("wait --for=condition=Ready pod/talker --timeout=60s").await;
    let (attached, followed) = (
        Background::kubectl(&desk.kubectl, "attach talker").await,
        Background::kubectl(&desk.kubectl, "logs -f talker").await,
    );
    for one in [&attached, &followed] {
        one.until(|text| text.contains("line ")).await;
    }
    desk.kubectl.ok("exec talker -- touch /tmp/enough").await;
    let (attached, followed) = (attached.ended().await, followed.ended().await);
    assert!(attached.contains("last line"), "{attached}");
    assert!(followed.contains("line 0\nline 1\n") && followed.contains("last line"), "{followed}");
    desk.work_through(TOO_LATE).await;
    desk.kubectl.ok("delete pod talker --now").await;
}

async fn forward(desk: &Desk, cluster: &Cluster, target: &str, port: &str) {
    if target.starts_with("pod/") {
        desk.kubectl.ok("run shell-echo --image=k8s.gcr.io/echoserver:1.4").await;
        desk.kubectl.ok("wait --for=condition=Ready pod/shell-echo --timeout=60s").await;
    }
    let forward = Background::kubectl(&desk.kubectl, &format!("port-forward {target} :{port}")).await;
    let mark = "Forwarding from 127.0.0.1:";
    let text = forward.until(|text| text.lines().any(|line| line.starts_with(mark) && line.contains("->"))).await;
    let local = text.split(mark).nth(1).and_then(|rest| rest.split(' ').next()).expect("a port is named");
    for _ in 0..3 {
        let answer = cluster.fetch(&format!("http://127.0.0.1:{local}/hostname"), PATIENCE).await;
        assert!(answer.starts_with("web-") || answer == "shell-echo", "{answer}");
    }
}
