//! Sitting before a container: `kubectl exec`, `run`, `attach` and `debug` with a real terminal, by the newest and by an
//! older `kubectl`.

use tests::kubectl::Kubectl;

use crate::cluster::Cluster;
use crate::terminal::Terminal;

const INTERRUPT: &str = "\x03";
const END_OF_INPUT: &str = "\x04";
/// The container's shell says this when it waits for a command. Typed in two parts, it cannot be mistaken for that.
const READY: &str = "ready> ";
const IMAGE: &str = "--image=busybox:1.36 --image-pull-policy=IfNotPresent";
/// A pod with a shell on a terminal of its own, that lives on when nobody is there.
const SHELL: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: shell
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox:1.36
    imagePullPolicy: IfNotPresent
    command: [sh]
    stdin: true
    tty: true
"#;

pub(crate) async fn story(cluster: Cluster, version: &str) {
    let namespace = format!("interactive-{}", version.replace('.', "-"));
    let kubectl = cluster.kubectl(version, &namespace);
    kubectl.ok(&format!("create namespace {namespace}")).await;
    kubectl.apply(SHELL).await;
    kubectl.ok("wait --for=condition=Ready pod/shell --timeout=90s").await;
    a_shell(&kubectl).await;
    ends(&kubectl).await;
    a_visitor(&kubectl).await;
    coming_and_going(&kubectl).await;
    debugging_a_pod(&kubectl).await;
    debugging_a_node(&kubectl).await;
    taken_away(&kubectl).await;
    kubectl.ok(&format!("delete namespace {namespace} --timeout=120s")).await;
}

fn open(kubectl: &Kubectl, line: &str) -> Terminal {
    Terminal::start(&kubectl.command(line), 40, 100)
}

/// A shell by `exec`: echo, size, Ctrl-C, and the code it ends with.
async fn a_shell(kubectl: &Kubectl) {
    let mut terminal = open(kubectl, &format!("exec -it shell -- env 'PS1={READY}' sh"));
    terminal.until(READY).await;
    assert!(!terminal.echoes(), "the container's terminal echoes, not the user's");
    terminal.type_("tty -s && echo is a ter''minal\n");
    let shown = terminal.until("is a terminal").await;
    assert!(shown.contains("ter''minal"), "what is typed is shown: {shown:?}");
    terminal.type_until("stty size\n", "40 100").await;
    terminal.resize(50, 132);
    terminal.type_until("stty size\n", "50 132").await;
    terminal.resize(24, 80);
    terminal.type_until("stty size\n", "24 80").await;
    terminal.type_("echo beg''ins; sleep 1000\n");
    terminal.until("begins").await;
    // A program that is only about to begin may not be told.
    terminal.type_until(&format!("{INTERRUPT}echo co''de $?\n"), "code 130").await;
    terminal.type_("exit 7\n");
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(7), "{shown}");
    assert!(shown.contains("command terminated with exit code 7"), "{shown:?}");
    assert!(terminal.echoes(), "the user's terminal is as it was");
}

/// Other ends: of the input, by a signal, and without a program.
async fn ends(kubectl: &Kubectl) {
    let mut terminal = open(kubectl, "exec -it shell -- cat");
    terminal.type_until("a line\n", "a line\r\na line").await;
    terminal.type_(END_OF_INPUT);
    assert_eq!(terminal.ended().await.0, Some(0));
    let mut terminal = open(kubectl, "exec -it shell -- sh -c 'echo go''ing; kill -9 $$'");
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(137), "{shown}");
    assert!(shown.contains("going"), "{shown:?}");
    let mut terminal = open(kubectl, "exec -it shell -- nonsense");
    let (code, shown) = terminal.ended().await;
    assert!(code != Some(0) && shown.contains("nonsense"), "{code:?} {shown:?}");
    assert!(terminal.echoes(), "the user's terminal is as it was");
}

/// A pod for one visit.
async fn a_visitor(kubectl: &Kubectl) {
    let mut terminal = open(kubectl, &format!("run visitor -it --rm {IMAGE} --restart=Never -- env 'PS1={READY}' sh"));
    terminal.type_until("\n", READY).await;
    terminal.type_until("stty size\n", "40 100").await;
    terminal.resize(30, 90);
    terminal.type_until("stty size\n", "30 90").await;
    terminal.type_("hostname; exit 5\n");
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(5), "{shown:?}");
    assert!(shown.contains("visitor\r\n") && shown.contains("pod \"visitor\" deleted"), "{shown:?}");
    kubectl.until("get pods -o name", |names| !names.contains("visitor")).await;
}

/// A shell that stays when its user leaves, and is as it was left when the user comes back.
async fn coming_and_going(kubectl: &Kubectl) {
    let mut terminal = open(kubectl, "attach -it shell");
    terminal.type_until("PS1='rea''dy> '\n", READY).await;
    terminal.type_until("stty size\n", "40 100").await;
    terminal.type_("left=be''hind; echo $left\n");
    terminal.until("\r\nbehind").await;
    // The window is closed.
    drop(terminal);
    let mut terminal = open(kubectl, "attach -it shell");
    terminal.type_until("echo is $left\n", "is behind").await;
    terminal.type_("exit\n");
    let (_, shown) = terminal.ended().await;
    assert!(shown.contains("Session ended, resume using"), "{shown:?}");
    kubectl.until("get pod shell -o jsonpath={.status.containerStatuses[0].restartCount}", |count| count == "1").await;
    kubectl.ok("wait --for=condition=Ready pod/shell --timeout=90s").await;
}

/// A container beside those of a pod that sees their processes, and a copy of a pod with another command.
async fn debugging_a_pod(kubectl: &Kubectl) {
    let shell = format!("-- env 'PS1={READY}' sh");
    let mut terminal = open(kubectl, &format!("debug -it shell {IMAGE} --target=main --container=helper {shell}"));
    terminal.type_until("\n", READY).await;
    terminal.type_until("stty size\n", "40 100").await;
    // The first process is that of the container which is looked at.
    terminal.type_("test $$ != 1 && echo first is $(cat /proc/1/comm)\n");
    terminal.until("first is sh\r\n").await;
    terminal.type_("exit\n");
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(0), "{shown:?}");
    let ended = "get pod shell -o jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}";
    kubectl.until(ended, |code| code == "0").await;

    let mut terminal = open(kubectl, &format!("debug -it shell --copy-to=copy --container=main {shell}"));
    terminal.type_until("\n", READY).await;
    terminal.type_until("hostname\n", "\r\ncopy\r\n").await;
    drop(terminal);
    kubectl.ok("delete pod copy --now").await;
}

/// A pod that sees the node as it is.
async fn debugging_a_node(kubectl: &Kubectl) {
    let mut terminal = open(kubectl, &format!("debug -it node/node-2 {IMAGE} -- env 'PS1={READY}' sh"));
    let shown = terminal.type_until("\n", READY).await;
    assert!(shown.contains("Creating debugging pod node-debugger-node-2-"), "{shown:?}");
    terminal.type_until("hostname\n", "\r\nnode-2\r\n").await;
    terminal.type_("test -d /host/etc && test -d /host/proc/self && echo host is th''ere\n");
    terminal.until("host is there").await;
    terminal.type_("exit 3\n");
    terminal.ended().await;
    let name = "get pods -o name --field-selector=status.phase=Failed";
    kubectl.until(name, |names| names.starts_with("pod/node-debugger-node-2-")).await;
}

/// The pod goes while its user is in it: the session ends with what ended its shell.
async fn taken_away(kubectl: &Kubectl) {
    kubectl.ok("wait --for=condition=Ready pod/shell --timeout=90s").await;
    let mut terminal = open(kubectl, &format!("exec -it shell -- env 'PS1={READY}' sh"));
    terminal.until(READY).await;
    kubectl.ok("delete pod shell --now --wait=false").await;
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(137), "{shown:?}");
    assert!(terminal.echoes(), "the user's terminal is as it was");
}
