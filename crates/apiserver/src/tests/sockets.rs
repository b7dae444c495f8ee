//! Connections that are upgraded: a server behind a real socket, with a node whose agent is a fake.

use std::net::SocketAddr;

use base::{Rng, TaskGroup};
use component_base::lifecycle::Lifecycle;
use component_base::serving::ServerHandle;
use component_base::tls::{ClientTls, ServerTrust};
use futures_util::StreamExt as _;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, ORIGIN};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use streaming::{DialError, UpgradedIo, dial_spdy, dial_websocket, spdy_request, websocket_request};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::fake_kubelet;
use super::harness::Api;
use super::https::serving;
use crate::config::ServerConfig;

/// A server with the pods `p` on a node, `lost` on one whose agent is gone, and `new`, which is on none.
pub(super) struct Sockets {
    pub(super) api: Api,
    pub(super) tasks: TaskGroup,
    handle: ServerHandle,
}

impl Sockets {
    pub(super) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with another configuration.
    pub(super) async fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::as_process(|lifecycle| lifecycle, change).await
    }

    /// The same of a process that was started in another way.
    pub(super) async fn as_process(
        process: impl FnOnce(Lifecycle) -> Lifecycle,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        component_base::tls::install_default();
        let api = Api::as_process(process, |config| {
            config.serving = Some(serving());
            change(config);
        })
        .await;
        let handle = api.server.listen().unwrap().expect("it listens");
        let tasks = TaskGroup::new("sockets");
        let kubelet = fake_kubelet::start(&tasks);
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let sockets = Self { api, tasks, handle };
        sockets.add_node("n1", kubelet.address()).await;
        sockets.add_node("n2", gone).await;
        for (name, node) in [("p", "n1"), ("lost", "n2"), ("new", "")] {
            sockets.add_pod(name, node).await;
        }
        sockets
    }

    pub(super) async fn add_pod(&self, name: &str, node: &str) {
        let spec = format!(r#"{{"nodeName":"{node}","containers":[{{"name":"c","image":"i"}}]}}"#);
        let pod = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
        let made = self.api.post("/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }

    pub(super) async fn add_node(&self, name: &str, agent: SocketAddr) {
        let made = self.api.post("/api/v1/nodes", &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let (ip, port) = (agent.ip(), agent.port());
        let status = format!(
            r#"{{"status":{{"addresses":[{{"type":"InternalIP","address":"{ip}"}}],
            "daemonEndpoints":{{"kubeletEndpoint":{{"Port":{port}}}}}}}}}"#
        );
        let patched = self.api.patch("merge-patch", &format!("/api/v1/nodes/{name}/status"), &status).await;
        assert_eq!(patched.code, 200, "{}", patched.text);
    }

    pub(super) async fn connect(&self) -> TlsStream<TcpStream> {
        let tls = ClientTls { alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(ServerTrust::Anyone) };
        self.connect_with(&tls).await
    }

    pub(super) async fn connect_with(&self, tls: &ClientTls) -> TlsStream<TcpStream> {
        let tcp = TcpStream::connect(self.handle.address()).await.unwrap();
        let connector = TlsConnector::from(tls.config().unwrap());
        connector.connect(tls.name_for("127.0.0.1").unwrap(), tcp).await.unwrap()
    }

    /// Opens a WebSocket; none of the protocols means that none is asked for.
    pub(super) async fn websocket(&self, target: &str, protocols: &[&str]) -> Result<(UpgradedIo, String), DialError> {
        let request = websocket_request(target, "127.0.0.1", protocols, &Rng::seeded(1)).unwrap();
        dial_websocket(self.connect().await, authorized(request)).await
    }

    /// The body of a plain request with one header.
    pub(super) async fn get(&self, target: &str, (name, value): (&'static str, &str)) -> String {
        let io = TokioIo::new(self.connect().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        self.tasks.spawn_cancellable("client", async move { drop(connection.await) });
        let request = Request::get(target).header("host", "127.0.0.1").header(name, value).body(()).unwrap();
        let request = authorized(request).map(|()| http_body_util::Empty::<bytes::Bytes>::new());
        let answer = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
        String::from_utf8(answer.to_bytes().to_vec()).unwrap()
    }

    /// Opens SPDY streams.
    pub(super) async fn spdy(&self, target: &str, protocols: &[&str]) -> Result<(UpgradedIo, String), DialError> {
        dial_spdy(self.connect().await, authorized(spdy_request(target, "127.0.0.1", protocols).unwrap())).await
    }

    /// Opens a WebSocket that is read message by message.
    pub(super) async fn messages(&self, target: &str, protocol: &str, accept: &str) -> WebSocketStream<UpgradedIo> {
        let protocols: Vec<&str> = Some(protocol).filter(|name| !name.is_empty()).into_iter().collect();
        let request = websocket_request(target, "127.0.0.1", &protocols, &Rng::seeded(1)).unwrap();
        let mut request = authorized(request);
        request.headers_mut().insert(ACCEPT, accept.parse().unwrap());
        request.headers_mut().insert(ORIGIN, "http://localhost".parse().unwrap());
        let (io, chosen) = dial_websocket(self.connect().await, request).await.unwrap();
        assert_eq!(chosen, protocol);
        WebSocketStream::from_raw_socket(io, Role::Client, None).await
    }

    pub(super) async fn stop(self) {
        self.tasks.cancel();
        self.api.server.cx().watches().end(std::time::Duration::ZERO).await;
        self.handle.shutdown(std::time::Duration::from_secs(2)).await;
    }
}

fn authorized(mut request: Request<()>) -> Request<()> {
    request.headers_mut().insert(AUTHORIZATION, "Bearer root".parse().unwrap());
    request
}

/// The code of a refusal and what its text is.
pub(super) fn refusal(result: Result<(UpgradedIo, String), DialError>) -> (u16, String) {
    match result {
        Err(DialError::Refused(refused)) => (refused.parts.status.as_u16(), refused.message()),
        other => panic!("not refused: {:?}", other.map(|(_, chosen)| chosen)),
    }
}

/// All messages up to the end, without the close that it must end with.
pub(super) async fn to_close(socket: &mut WebSocketStream<UpgradedIo>) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        messages.push(message);
    }
    assert!(messages.pop().is_some_and(|last| last.is_close()), "it ends with a close: {messages:?}");
    messages
}
