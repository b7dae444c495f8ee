//! Sessions with pods over WebSockets, and connections.

use std::time::Duration;

use component_base::Gates;
use component_base::tls::{ClientTls, ServerTrust};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use streaming::PORT_FORWARD;

use crate::tests::harness::Api;
use crate::tests::hostile_paths::allow;
use crate::tests::sockets::Sockets;

const POD: &str = "/api/v1/namespaces/default/pods/p";

/// What is seen on sockets, where time does not stand still.
async fn on_sockets(gates: Gates, see: impl AsyncFnOnce(&Sockets) -> String) -> String {
    tokio::time::resume();
    let sockets = Sockets::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let seen = see(&sockets).await;
    sockets.stop().await;
    tokio::time::pause();
    seen
}

/// What becomes of a session that asks for a protocol.
async fn passed_on(sockets: &Sockets, target: &str, protocol: &str) -> String {
    drop(sockets.websocket(&format!("{POD}/{target}"), &[protocol]).await);
    let text = sockets.api.get("/metrics").await.text;
    let line = text.lines().find(|line| line.starts_with("apiserver_websocket_streaming_requests_total{"));
    let (_, rest) = line.expect("it is counted").split_once("proxy_type=\"").expect("it says how");
    rest.split('"').next().unwrap_or_default().to_owned()
}

const COMMAND: &str = "exec?command=ls&stdin=true&stdout=true";

/// Who takes a command apart that asks for the newest protocol.
pub(super) async fn command(gates: Gates) -> String {
    on_sockets(gates, async |sockets| passed_on(sockets, COMMAND, "v5.channel.k8s.io").await).await
}

/// Who takes forwarded ports apart that come through a tunnel.
pub(super) async fn ports(gates: Gates) -> String {
    let tunnel = format!("SPDY/3.1+{PORT_FORWARD}");
    on_sockets(gates, async |sockets| passed_on(sockets, "portforward", &tunnel).await).await
}

/// The same of a command, where the node says that its agent does it.
pub(super) async fn with_a_node_that_translates(gates: Gates) -> String {
    on_sockets(gates, async |sockets| {
        let declared = r#"{"status":{"declaredFeatures":["ExtendWebSocketsToKubelet"]}}"#;
        let said = sockets.api.patch("merge-patch", "/api/v1/nodes/n1/status", declared).await;
        assert_eq!(said.code, 200, "{}", said.text);
        passed_on(sockets, COMMAND, "v5.channel.k8s.io").await
    })
    .await
}

/// How alice is answered who may read commands, and not create them.
pub(super) async fn of_somebody_who_may_read_them(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    allow(&api, "default", json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]})).await;
    let answer = api.send(&format!("GET {POD}/exec?command=ls"), &[("authorization", "Bearer alice")], "").await;
    answer.code.to_string()
}

/// What becomes of a connection over which somebody has asked whom the server does not know.
pub(super) async fn unknown(gates: Gates) -> String {
    on_sockets(gates, async |sockets| {
        let tls = ClientTls { alpn: vec![b"h2".to_vec()], ..ClientTls::new(ServerTrust::Anyone) };
        let io = TokioIo::new(sockets.connect_with(&tls).await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
        let request = http::Request::get("https://127.0.0.1/version").body(String::new()).expect("a request");
        let asks = async move {
            let answer = sender.send_request(request).await.expect("an answer");
            drop(http_body_util::BodyExt::collect(answer.into_body()).await);
            // Held, so that the end is not the client's own.
            std::future::pending::<()>().await;
        };
        let ended = async {
            tokio::select! {
                _ = connection => "ends",
                () = asks => "stays",
            }
        };
        tokio::time::timeout(Duration::from_secs(1), ended).await.unwrap_or("stays").to_owned()
    })
    .await
}
