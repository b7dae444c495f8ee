//! Logs, commands, ports and watches over the protocols that clients speak.

use api_machinery::protobuf::Decoder;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use streaming::{
    Carrier, ClientCommand, CommandStatus, PORT_FORWARD, PortForwardClient, Protocol, StreamSet, Subprotocol,
    WebSocketIo,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

use super::fake_kubelet::{INPUT, LOG};
use super::sockets::{Sockets, refusal, to_close};
use crate::config::OwnHost;

const POD: &str = "/api/v1/namespaces/default/pods/p";
const SET: StreamSet = StreamSet { stdin: true, stdout: true, stderr: false, tty: false };

#[tokio::test]
async fn logs_come_in_messages() {
    let sockets = Sockets::start().await;
    for protocol in ["", "binary.k8s.io", "base64.binary.k8s.io"] {
        let mut socket = sockets.messages(&format!("{POD}/log"), protocol, "*/*").await;
        let messages = to_close(&mut socket).await;
        assert!(messages[0].is_empty(), "an empty message comes first: {messages:?}");
        let is_text = protocol.starts_with("base64");
        assert!(messages.iter().all(|message| message.is_text() == is_text), "{protocol}: {messages:?}");
        let pieces = messages.iter().map(|message| message.clone().into_data());
        let log: Vec<u8> =
            pieces.flat_map(|data| if is_text { STANDARD.decode(data).unwrap() } else { data.into() }).collect();
        assert_eq!(log, LOG.as_bytes(), "{protocol}");
    }
    let log = |pod: &str| format!("/api/v1/namespaces/default/pods/{pod}/log");
    assert_eq!(refusal(sockets.websocket(&log("p"), &["channel.k8s.io"]).await), (403, String::new()));
    let (code, text) = refusal(sockets.websocket(&log("none"), &[]).await);
    assert_eq!((code, text.as_str()), (404, "pods \"none\" not found"));
    let (code, text) = refusal(sockets.websocket(&format!("{}?container=x", log("p")), &[]).await);
    assert_eq!((code, text.as_str()), (400, "container x is not valid for pod p"));
    sockets.stop().await;
}

/// Sends the input; what comes back is all output and how the command ended.
async fn run(mut command: ClientCommand) -> (String, CommandStatus) {
    command.stdin.as_mut().unwrap().write_all(INPUT).await.unwrap();
    let mut out = String::new();
    command.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    (out, command.status().await.unwrap())
}

/// The samples of a counter, once something was counted.
async fn counted(sockets: &Sockets, name: &str) -> Vec<String> {
    for _ in 0..500 {
        let metrics = sockets.api.get("/metrics").await.text;
        let found: Vec<String> = metrics.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect();
        if !found.is_empty() {
            return found;
        }
        tokio::task::yield_now().await;
    }
    Vec::new()
}

fn ended(protocol: Protocol) -> CommandStatus {
    let text = "error executing remote command: command terminated with non-zero exit code: command terminated with \
                exit code 3";
    if protocol.has_status() { CommandStatus::exit(3) } else { CommandStatus::Failure(text.to_owned()) }
}

#[tokio::test]
async fn commands_run_over_every_protocol() {
    let sockets = Sockets::start().await;
    let cases = [
        (format!("{POD}/exec?command=ls&command=-l&stdin=true&stdout=true"), "ls -l:HELLO"),
        (format!("{POD}/attach?stdin=1&stdout=1&container=c"), "attached:HELLO"),
    ];
    for (target, expected) in cases {
        for subprotocol in Subprotocol::SERVED.into_iter().chain(Subprotocol::TRANSLATED) {
            let wanted: Vec<&str> = Some(subprotocol.name).filter(|name| !name.is_empty()).into_iter().collect();
            let (io, chosen) = sockets.websocket(&target, &wanted).await.unwrap();
            assert_eq!(chosen, subprotocol.name);
            let command = ClientCommand::over_websocket(io, subprotocol, SET, &sockets.tasks).await;
            let (out, outcome) = run(command).await;
            assert_eq!((out.as_str(), outcome), (expected, ended(subprotocol.protocol)), "{}", subprotocol.name);
        }
        for protocol in Protocol::SPDY_SERVER {
            let (io, chosen) = sockets.spdy(&target, &[protocol.name()]).await.unwrap();
            assert_eq!(chosen, protocol.name());
            let command = ClientCommand::over_spdy(io, protocol, SET, &sockets.tasks).await.unwrap();
            let (out, outcome) = run(command).await;
            assert_eq!((out.as_str(), outcome), (expected, ended(protocol)), "{}", protocol.name());
        }
    }
    let translated = counted(&sockets, "apiserver_stream_translator").await;
    assert_eq!(translated, [r#"apiserver_stream_translator_requests_total{code="200"} 2"#], "an exit code is no fault");
    assert_eq!(
        counted(&sockets, "apiserver_websocket_streaming").await,
        [
            r#"apiserver_websocket_streaming_requests_total{proxy_type="proxied_to_kubelet",subresource="attach"} 9"#,
            r#"apiserver_websocket_streaming_requests_total{proxy_type="proxied_to_kubelet",subresource="exec"} 9"#,
            r#"apiserver_websocket_streaming_requests_total{proxy_type="translated_at_apiserver",subresource="attach"} 1"#,
            r#"apiserver_websocket_streaming_requests_total{proxy_type="translated_at_apiserver",subresource="exec"} 1"#,
        ]
    );
    sockets.stop().await;
}

#[tokio::test]
async fn commands_are_refused_before_the_upgrade_or_told_within_it() {
    let sockets = Sockets::start().await;
    let exec = |pod: &str| format!("/api/v1/namespaces/default/pods/{pod}/exec?command=ls&stdin=1&stdout=1");
    for protocol in ["v5.channel.k8s.io", "channel.k8s.io"] {
        let (code, text) = refusal(sockets.websocket(&exec("new"), &[protocol]).await);
        assert_eq!((code, text.as_str()), (400, "pod new does not have a host assigned"), "{protocol}");
        let (code, text) = refusal(sockets.websocket(&exec("none"), &[protocol]).await);
        assert_eq!((code, text.as_str()), (404, "pods \"none\" not found"), "{protocol}");
    }
    assert_eq!(refusal(sockets.websocket(&exec("p"), &["v9.channel.k8s.io"]).await), (403, String::new()));
    let (code, text) = refusal(sockets.websocket(&exec("lost"), &["v4.channel.k8s.io"]).await);
    assert!(code == 500 && text.contains("error dialing backend: dial tcp 127.0.0.1:"), "{code} {text}");
    sockets.add_pod("other", "n1").await;
    for (pod, expected) in [
        ("lost", "error dialing backend: dial tcp 127.0.0.1:"),
        ("other", "unable to upgrade connection: pod does not exist"),
    ] {
        let (io, _) = sockets.websocket(&exec(pod), &["v5.channel.k8s.io"]).await.unwrap();
        let mut command = ClientCommand::over_websocket(io, Subprotocol::TRANSLATED[0], SET, &sockets.tasks).await;
        let outcome = command.status().await.unwrap();
        let CommandStatus::Failure(text) = &outcome else { panic!("{outcome:?}") };
        assert!(text.contains(expected), "{pod}: {text}");
    }
    assert_eq!(
        counted(&sockets, "apiserver_stream_translator").await,
        [r#"apiserver_stream_translator_requests_total{code="500"} 2"#]
    );
    sockets.stop().await;
}

#[tokio::test]
async fn ports_are_forwarded_over_every_protocol() {
    let sockets = Sockets::start().await;
    let target = format!("{POD}/portforward");
    let tunnel = format!("SPDY/3.1+{PORT_FORWARD}");
    for carrier in [Carrier::Plain, Carrier::Tunnel] {
        let client = match carrier {
            Carrier::Plain => {
                let (io, chosen) = sockets.spdy(&target, &[PORT_FORWARD]).await.unwrap();
                assert_eq!(chosen, PORT_FORWARD);
                PortForwardClient::start(io, carrier, &sockets.tasks)
            }
            Carrier::Tunnel => {
                let (io, _) = sockets.websocket(&target, &[&tunnel]).await.unwrap();
                PortForwardClient::start(WebSocketIo::client(io).await, carrier, &sockets.tasks)
            }
        };
        let mut forward = client.open(80).await.unwrap();
        forward.data.write_all(INPUT).await.unwrap();
        let mut answer = String::new();
        forward.data.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "HELLO", "{carrier:?}");
    }
    assert_eq!(
        counted(&sockets, "apiserver_stream_tunnel").await,
        [r#"apiserver_stream_tunnel_requests_total{code="101"} 1"#]
    );
    let mut socket = sockets.messages(&format!("{target}?ports=80"), "v4.channel.k8s.io", "*/*").await;
    socket.send(Message::binary([b"\0", INPUT].concat())).await.unwrap();
    let messages: Vec<Vec<u8>> =
        to_close(&mut socket).await.into_iter().map(|message| message.into_data().to_vec()).collect();
    assert_eq!(messages, [b"\0\x50\0".to_vec(), b"\x01\x50\0".to_vec(), b"\0HELLO".to_vec()]);
    sockets.stop().await;
}

#[tokio::test]
async fn watches_come_in_messages() {
    let sockets = Sockets::start().await;
    sockets.api.config_map("seen").await;
    let target =
        "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dseen";
    let mut json = sockets.messages(target, "", "application/json").await;
    let Message::Text(event) = json.next().await.unwrap().unwrap() else { panic!("JSON is text") };
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&"ADDED".into(), &"seen".into()));

    let mut protobuf = sockets.messages(target, "", "application/vnd.kubernetes.protobuf;stream=watch").await;
    let Message::Binary(event) = protobuf.next().await.unwrap().unwrap() else { panic!("protobuf is binary") };
    let (number, kind) = Decoder::new(&event).next().unwrap().unwrap();
    assert_eq!((number, kind.text().unwrap().as_str()), (1, "ADDED"), "no length before it");

    sockets.api.delete("/api/v1/namespaces/default/configmaps/seen").await;
    let Message::Text(event) = json.next().await.unwrap().unwrap() else { panic!("JSON is text") };
    assert!(event.starts_with(r#"{"type":"DELETED","#), "{event}");
    json.close(None).await.unwrap();

    let mut short = sockets.messages(&format!("{target}&timeoutSeconds=1"), "", "application/json").await;
    assert_eq!(to_close(&mut short).await, []);
    let (code, _) = refusal(sockets.websocket(target, &[]).await);
    assert_eq!(code, 403, "who names no origin is no browser");
    let (code, text) = refusal(sockets.websocket("/api/v1/nothing?watch=true", &[]).await);
    assert_eq!(code, 404, "{text}");
    sockets.stop().await;
}

#[tokio::test]
async fn proxied_requests_say_whom_they_are_from() {
    let sockets = Sockets::start().await;
    let headers = sockets.get("/api/v1/nodes/n1/proxy/headers", ("x-forwarded-for", "10.0.0.1")).await;
    for part in
        [r#""x-forwarded-for": "10.0.0.1, 127.0.0.1""#, r#""x-forwarded-uri": "/api/v1/nodes/n1/proxy/headers""#]
    {
        assert!(headers.contains(part), "{part} in {headers}");
    }
    assert!(!headers.contains("authorization"), "{headers}");
    sockets.stop().await;
}

/// Whoever writes a node must not have the server show its certificate to what else listens on its host.
#[tokio::test]
async fn a_node_cannot_lead_to_the_servers_own_host() {
    let sockets = Sockets::with(|config| config.kubelet.own_host = OwnHost::KubeletPort).await;
    for target in ["/api/v1/nodes/n1/proxy/headers", "/api/v1/namespaces/default/pods/p/log"] {
        let answer = sockets.api.get(target).await;
        assert_eq!(answer.refusal(), (400, "address not allowed".to_owned()), "{target}");
    }
    for target in ["exec?command=ls&stdin=1&stdout=1", "attach?stdin=1&stdout=1", "portforward?ports=80"] {
        let target = format!("/api/v1/namespaces/default/pods/p/{target}");
        let (code, text) = refusal(sockets.websocket(&target, &["v4.channel.k8s.io"]).await);
        assert_eq!((code, text.as_str()), (400, "address not allowed"), "{target}");
    }
    for address in ["169.254.169.254", "::ffff:127.0.0.1", "::1", "fe80::1", "localhost"] {
        let status = format!(r#"{{"status":{{"addresses":[{{"type":"InternalIP","address":"{address}"}}]}}}}"#);
        assert_eq!(sockets.api.patch("merge-patch", "/api/v1/nodes/n1/status", &status).await.code, 200);
        let answer = sockets.api.get("/api/v1/nodes/n1/proxy/headers").await;
        assert_eq!(answer.refusal(), (400, "address not allowed".to_owned()), "{address}");
    }
    sockets.stop().await;
}
