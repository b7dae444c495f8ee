//! Node agents that belong to an attacker: they redirect, they refuse an upgrade and hope that the tunnel stays open.
//! `docs/vulnerabilities.md` says which reports these are.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use component_base::serving::{ServerHandle, handler_fn, text};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use streaming::{ClientCommand, CommandStatus, DialError, StreamSet, Subprotocol};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::sockets::Sockets;

const LED: &str = "/api/v1/namespaces/default/pods/led";
const SET: StreamSet = StreamSet { stdin: false, stdout: true, stderr: false, tty: false };

/// A node whose agent gives one answer to everything, and a listener that nobody may ever talk to.
struct Hostile {
    sockets: Sockets,
    canary: TcpListener,
    asked: Arc<AtomicUsize>,
    _agent: ServerHandle,
}

impl Hostile {
    async fn start(code: StatusCode) -> Self {
        let sockets = Sockets::start().await;
        let canary = TcpListener::bind("127.0.0.1:0").unwrap();
        canary.set_nonblocking(true).unwrap();
        let (target, asked) = (canary.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let handler = handler_fn(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut answer = text(code, "go there");
            if code.is_redirection() {
                let to = format!("https://{target}/exec/default/other/c");
                answer.headers_mut().insert(LOCATION, HeaderValue::from_str(&to).unwrap());
            }
            async move { answer }
        });
        let agent = super::fake_kubelet::start_with(&sockets.tasks, Arc::new(handler));
        sockets.add_node("bad", agent.address()).await;
        sockets.add_pod("led", "bad").await;
        Self { sockets, canary, asked, _agent: agent }
    }

    /// Nobody went where the agent pointed.
    async fn stop(self) {
        let visited = self.canary.accept();
        assert!(visited.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "the canary was visited");
        self.sockets.stop().await;
    }
}

#[tokio::test]
async fn redirects_of_node_agents_lead_nowhere() {
    for code in [301, 302, 303, 307, 308] {
        let hostile = Hostile::start(StatusCode::from_u16(code).unwrap()).await;
        let log = hostile.sockets.api.get(&format!("{LED}/log")).await;
        assert!(log.code >= 500 && !log.headers.contains_key(LOCATION), "{code}: {log:?}");

        let exec = format!("{LED}/exec?command=ls&stdout=1");
        let attach = format!("{LED}/attach?stdout=1");
        let mut refused = Vec::new();
        for target in [&exec, &attach] {
            refused.push(hostile.sockets.websocket(target, &["v4.channel.k8s.io"]).await);
            refused.push(hostile.sockets.spdy(target, &["v4.channel.k8s.io"]).await);
        }
        let ports = format!("{LED}/portforward?ports=80");
        refused.push(hostile.sockets.websocket(&ports, &["v4.channel.k8s.io"]).await);
        refused.push(hostile.sockets.spdy(&ports, &["portforward.k8s.io"]).await);
        refused.push(hostile.sockets.spdy("/api/v1/nodes/bad/proxy/exec/default/led/c", &["v4.channel.k8s.io"]).await);
        for answer in refused {
            let Err(DialError::Refused(refused)) = answer else { panic!("{code}: not refused") };
            assert!(refused.parts.status.as_u16() >= 500, "{code}: {:?}", refused.parts);
            assert!(!refused.parts.headers.contains_key(LOCATION), "{code}: {:?}", refused.parts);
        }

        // What is translated has been upgraded already: the failure comes within.
        let (io, _) = hostile.sockets.websocket(&exec, &["v5.channel.k8s.io"]).await.unwrap();
        let translated = ClientCommand::over_websocket(io, Subprotocol::TRANSLATED[0], SET, &hostile.sockets.tasks);
        let outcome = translated.await.status().await.unwrap();
        assert!(matches!(outcome, CommandStatus::Failure(_)), "{code}: {outcome:?}");
        hostile.stop().await;
    }
}

/// The raw tunnel of a refused upgrade would carry the server's own rights to the agent.
#[tokio::test]
async fn a_refused_upgrade_leaves_no_tunnel_to_the_agent() {
    for code in [403, 500] {
        let hostile = Hostile::start(StatusCode::from_u16(code).unwrap()).await;
        let targets = [format!("{LED}/exec?command=ls&stdout=1"), "/api/v1/nodes/bad/proxy/exec/x".to_owned()];
        for target in targets {
            let before = hostile.asked.load(Ordering::Relaxed);
            let mut socket = hostile.sockets.connect().await;
            let head = format!(
                "POST {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\n\
                 Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
            );
            socket.write_all(head.as_bytes()).await.unwrap();
            // Within a tunnel this is the agent's to answer; to the server it has no credentials.
            socket.write_all(b"GET /pods HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut answers = Vec::new();
            drop(socket.read_to_end(&mut answers).await);
            let answers = String::from_utf8_lossy(&answers).into_owned();
            assert!(answers.starts_with(&format!("HTTP/1.1 {code} ")), "{target}: {answers}");
            assert_eq!(hostile.asked.load(Ordering::Relaxed) - before, 1, "{target}: {answers}");
        }
        hostile.stop().await;
    }
}
