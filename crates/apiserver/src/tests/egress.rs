//! What the server connects to, through proxies of the tests.

use std::path::Path;
use std::sync::Arc;

use api_types::apiserver_config_v1::EgressSelectorConfiguration;
use base::TaskGroup;
use parking_lot::Mutex;
use serde_json::json;
use storage::EtcdOptions;
use test_facts::etcd::{EtcdServer, Security};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use super::harness::Api;
use super::review_server::configure;
use crate::config::{BackendConfig, ServerConfig, TokenWebhookConfig};

/// What becomes of who is let through.
#[derive(Clone)]
enum Behind {
    /// Nobody is.
    Nothing,
    /// A server of HTTP that says `hi`.
    Greeting,
    /// Whatever listens at a port of this host.
    Port(u16),
}

/// A proxy for each kind of destination.
struct Proxies {
    directory: tempfile::TempDir,
    tasks: TaskGroup,
    /// Which proxy was asked for what.
    asked: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Proxies {
    fn start(behind: [(&'static str, Behind); 3]) -> Self {
        let own = Self {
            directory: tempfile::tempdir().expect("a directory"),
            tasks: TaskGroup::new("proxies"),
            asked: Arc::default(),
        };
        for (name, behind) in behind {
            let listener = UnixListener::bind(own.directory.path().join(name)).expect("a socket");
            let (asked, tasks) = (Arc::clone(&own.asked), own.tasks.clone());
            own.tasks.spawn_cancellable("proxy", async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (asked, behind) = (Arc::clone(&asked), behind.clone());
                    tasks.spawn_cancellable("proxied", async move {
                        let _gone = serve(stream, name, &asked, behind).await;
                    });
                }
            });
        }
        own
    }

    fn configuration(&self) -> EgressSelectorConfiguration {
        let selections = ["cluster", "controlplane", "etcd"].map(|name| {
            let socket = self.directory.path().join(name);
            json!({
                "name": name,
                "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": socket}}},
            })
        });
        let file = self.directory.path().join("egress.json");
        let text = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
            "egressSelections": selections,
        });
        std::fs::write(&file, text.to_string()).expect("a file");
        egress::read(Path::new(&file)).expect("a configuration")
    }

    async fn server(&self, change: impl FnOnce(&mut ServerConfig)) -> Api {
        Api::with(|config| {
            config.egress = Some(self.configuration());
            change(config);
        })
        .await
    }

    /// What was asked for since this was looked at last.
    fn asked(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.asked.lock())
    }
}

async fn serve(
    mut stream: UnixStream,
    name: &'static str,
    asked: &Mutex<Vec<(&'static str, String)>>,
    behind: Behind,
) -> std::io::Result<()> {
    let head = head(&mut stream).await?;
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().push((name, target));
    if matches!(behind, Behind::Nothing) {
        return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    match behind {
        Behind::Port(port) => {
            let mut inner = TcpStream::connect(("127.0.0.1", port)).await?;
            tokio::io::copy_bidirectional(&mut stream, &mut inner).await.map(drop)
        }
        _ => {
            self::head(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await
        }
    }
}

async fn head(stream: &mut UnixStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn to(proxy: &'static str, target: &str) -> Vec<(&'static str, String)> {
    vec![(proxy, target.to_owned())]
}

#[tokio::test]
async fn nodes_are_reached_by_names_that_only_the_proxy_knows() {
    let (greeting, nothing) = (Behind::Greeting, Behind::Nothing);
    let proxies = Proxies::start([("cluster", greeting), ("controlplane", nothing.clone()), ("etcd", nothing)]);
    let api = proxies.server(|_| ()).await;
    let node =
        r#"{"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"n1.cluster.invalid"}]}}"#;
    assert_eq!(api.post("/api/v1/nodes", node).await.code, 201);
    let answer = api.get("/api/v1/nodes/http:n1:8080/proxy/").await;
    assert_eq!((answer.code, answer.text.as_str()), (200, "hi"));
    assert_eq!(proxies.asked(), to("cluster", "n1.cluster.invalid:8080"));
    // An address says what it is, whoever connects.
    let local = r#"{"metadata":{"name":"n2"},"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]}}"#;
    assert_eq!(api.post("/api/v1/nodes", local).await.code, 201);
    assert_eq!(api.get("/api/v1/nodes/http:n2:8080/proxy/").await.code, 400);
    assert_eq!(proxies.asked(), []);
    proxies.tasks.cancel();
}

#[tokio::test]
async fn webhooks_are_reached_where_they_are() {
    let nothing = || Behind::Nothing;
    let proxies = Proxies::start([("cluster", nothing()), ("controlplane", nothing()), ("etcd", nothing())]);
    let kubeconfig = proxies.directory.path().join("tokens.yaml");
    let text = "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \"https://tokens.example:8443\"}}], \
                contexts: [{name: c, context: {cluster: c}}], current-context: c}";
    std::fs::write(&kubeconfig, text).expect("a file");
    let api = proxies
        .server(|config| {
            config.authentication.token_webhook = Some(TokenWebhookConfig {
                file: kubeconfig,
                version: authn::TokenReviewVersion::V1,
                ttl: std::time::Duration::ZERO,
            });
        })
        .await;
    let webhook = |address: serde_json::Value| {
        json!({
            "name": "w.example.com", "clientConfig": address, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        })
    };
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 443}]}}).to_string();
    assert_eq!(api.post("/api/v1/namespaces/default/services", &service).await.code, 201);
    let slice = json!({
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "s"}}, "addressType": "IPv4",
        "ports": [{"name": "", "port": 9443}], "endpoints": [{"addresses": ["10.1.2.3"]}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(api.post(slices, &slice.to_string()).await.code, 201);
    for (name, address, proxy, target) in [
        ("url", json!({"url": "https://hook.example:8443/"}), "controlplane", "hook.example:8443"),
        ("service", json!({"service": {"namespace": "default", "name": "s"}}), "cluster", "10.1.2.3:9443"),
    ] {
        configure(&api, "validating", name, &[webhook(address)]).await;
        let refused = api.post("/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"m"}}"#).await;
        let (code, message) = refused.refusal();
        let said = format!("while dialing {target}, code 502: 502 Bad Gateway");
        assert!(code == 500 && message.contains(&said), "{message}");
        assert!(proxies.asked().contains(&(proxy, target.to_owned())));
        let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        assert_eq!(api.delete(&format!("{configurations}/{name}")).await.code, 200);
        // A read waits until the cache is as new as the store.
        api.get(configurations).await;
    }
    let unknown = api.send("GET /api/v1/pods", &[("authorization", "Bearer unknown")], "").await;
    assert_eq!(unknown.code, 401);
    assert!(proxies.asked().contains(&("controlplane", "tokens.example:8443".to_owned())));
    let metrics = api.get("/metrics").await.text;
    let counted =
        "apiserver_egress_dialer_dial_failure_count{protocol=\"http_connect\",stage=\"proxy\",transport=\"uds\"}";
    assert!(metrics.contains(counted), "{metrics}");
    proxies.tasks.cancel();
}

/// Where etcd listens on this host.
fn port(etcd: &EtcdServer) -> u16 {
    etcd.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

#[tokio::test]
async fn etcd_is_reached_through_its_proxy_and_some_resources_in_another() {
    let (Some(one), Some(two)) = (EtcdServer::start(Security::Plain), EtcdServer::start(Security::Plain)) else {
        return;
    };
    let behind = Behind::Port(port(&one));
    let proxies = Proxies::start([("cluster", Behind::Nothing), ("controlplane", Behind::Nothing), ("etcd", behind)]);
    let api = proxies
        .server(|config| {
            let options = EtcdOptions::new(["http://etcd.invalid:2379"]);
            config.storage.backend = BackendConfig::Etcd(Box::new(options));
        })
        .await;
    api.config_map("m").await;
    let asked = proxies.asked();
    assert!(asked.iter().all(|own| *own == ("etcd", "etcd.invalid:2379".to_owned())) && !asked.is_empty(), "{asked:?}");
    proxies.tasks.cancel();

    // The second server has the first etcd directly, and keeps two kinds in the other.
    let (main, other) = (EtcdOptions::new([one.url.clone()]), EtcdOptions::new([two.url.clone()]));
    let kept = ["configmaps", "events"].map(|name| (api_machinery::gvk::GroupResource::named("", name), other.clone()));
    let api = Api::with(|config| {
        config.storage.backend = BackendConfig::Etcd(Box::new(main));
        config.storage.elsewhere = kept.into();
    })
    .await;
    let ready = api.get("/readyz?verbose=true&exclude=etcd").await.text;
    for line in ["etcd-override-0 excluded with etcd: ok", "etcd-readiness ok", "etcd-override-readiness-0 ok"] {
        assert!(ready.contains(&format!("[+]{line}\n")), "{line} is not in {ready}");
    }
    assert!(!ready.contains("etcd-override-1"), "both resources are in one");
    let statuses = api.get("/api/v1/componentstatuses").await.json();
    let names: Vec<_> =
        statuses["items"].as_array().unwrap().iter().map(|own| own["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["controller-manager", "scheduler", "etcd-0", "etcd-1"]);
    assert_eq!(api.get("/api/v1/namespaces/default/configmaps/m").await.code, 404, "it is in the first");
    api.config_map("n").await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "r",
        "reportingComponent": "c", "reportingInstance": "i", "action": "a", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    assert_eq!(api.post("/api/v1/namespaces/default/events", &event.to_string()).await.code, 201);
    assert_eq!(api.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.code, 200);
    let secret = r#"{"metadata":{"name":"s"}}"#;
    assert_eq!(api.post("/api/v1/namespaces/default/secrets", secret).await.code, 201);
    let main = api.server.cx().backend();
    for (key, is_there) in [
        ("/registry/configmaps/default/n", false),
        ("/registry/events/default/e", false),
        ("/registry/secrets/default/s", true),
        ("/registry/configmaps/default/m", true),
    ] {
        assert_eq!(main.get(&key.into()).await.expect("a read").kv.is_some(), is_there, "{key}");
    }
}
