//! The ports on which load balancers ask whether this node has endpoints of a Service.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_types::core_v1::ObjectReference;
use base::TaskGroup;
use client::{EventType, ObjectKey, SeriesEvent, SeriesRecorder};
use component_base::serving::{Body, Request, Response, Security, Server, ServerHandle, full, handler_fn};
use tokio::net::{TcpListener, TcpSocket};

use crate::health::Health;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;
/// How long answers may take when a port is closed.
const DRAIN: Duration = Duration::from_millis(100);

/// What one Service's port has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// `spec.healthCheckNodePort`
    pub port: u16,
    /// Ready endpoints on this node.
    pub local_endpoints: usize,
}

/// The open ports of one family.
pub struct HealthPorts {
    addresses: Vec<IpAddr>,
    health: Arc<Health>,
    tasks: TaskGroup,
    node: String,
    events: Option<SeriesRecorder>,
    open: BTreeMap<ObjectKey, Open>,
}

struct Open {
    port: u16,
    local_endpoints: Arc<AtomicUsize>,
    servers: Vec<ServerHandle>,
}

impl HealthPorts {
    /// No ports yet; they will be opened at these addresses.
    pub fn new(
        addresses: Vec<IpAddr>,
        health: Arc<Health>,
        tasks: TaskGroup,
        node: &str,
        events: Option<SeriesRecorder>,
    ) -> Self {
        Self { addresses, health, tasks, node: node.to_owned(), events, open: BTreeMap::new() }
    }

    /// Opens, closes and updates ports so that these are there. What could not be opened is tried again next time.
    pub async fn sync(&mut self, checks: &BTreeMap<ObjectKey, Check>) {
        let gone: Vec<ObjectKey> = self
            .open
            .iter()
            .filter(|(key, open)| checks.get(*key).is_none_or(|check| check.port != open.port))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            for server in self.open.remove(&key).map(|open| open.servers).unwrap_or_default() {
                server.shutdown(DRAIN).await;
            }
        }
        for (key, check) in checks {
            if let Some(open) = self.open.get(key) {
                open.local_endpoints.store(check.local_endpoints, Ordering::Relaxed);
                continue;
            }
            match self.listen(key, *check) {
                Ok(open) => drop(self.open.insert(key.clone(), open)),
                Err(error) => self.tell(key, check.port, &error),
            }
        }
    }

    fn listen(&self, key: &ObjectKey, check: Check) -> std::io::Result<Open> {
        let local_endpoints = Arc::new(AtomicUsize::new(check.local_endpoints));
        let mut servers = Vec::new();
        for address in &self.addresses {
            let (key, health, count) = (key.clone(), Arc::clone(&self.health), Arc::clone(&local_endpoints));
            let handler = handler_fn(move |_: Request| {
                let response = answer(&key, count.load(Ordering::Relaxed), health.is_healthy());
                async move { response }
            });
            let server = bind(SocketAddr::new(*address, check.port))
                .and_then(|listener| Server::new(Arc::new(handler), Security::Plain).spawn(&self.tasks, listener));
            match server {
                Ok(server) => servers.push(server),
                Err(error) => {
                    // Those that are open already would hold their ports against the next try.
                    servers.iter().for_each(ServerHandle::stop_accepting);
                    return Err(error);
                }
            }
        }
        Ok(Open { port: check.port, local_endpoints, servers })
    }

    fn tell(&self, key: &ObjectKey, port: u16, error: &std::io::Error) {
        let (node, service) = (&self.node, format!("{}/{}", key.namespace, key.name));
        tracing::error!(service, port, %error, "Failed to start a health check of a Service");
        let Some(events) = &self.events else { return };
        events.event(SeriesEvent {
            regarding: ObjectReference {
                kind: "Service".into(),
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                ..ObjectReference::default()
            },
            related: None,
            kind: EventType::Warning,
            reason: "FailedToStartServiceHealthcheck".to_owned(),
            action: "Listen".to_owned(),
            note: format!("node {node} failed to start healthcheck {service:?} on port {port}: {error}"),
        });
    }
}

/// A listener of one family only: the other family's proxy opens the same port.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() {
        socket2::SockRef::from(&socket).set_only_v6(true)?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn answer(key: &ObjectKey, count: usize, healthy: bool) -> Response {
    let body = format!(
        "{{\n\t\"service\": {{\n\t\t\"namespace\": {:?},\n\t\t\"name\": {:?}\n\t}},\n\t\"localEndpoints\": {count},\n\t\
         \"serviceProxyHealthy\": {healthy}\n}}",
        key.namespace, key.name
    );
    let response = http::Response::builder()
        .status(if count != 0 && healthy { 200 } else { 503 })
        .header("content-type", "application/json")
        .header("x-content-type-options", "nosniff")
        .header("x-load-balancing-endpoint-weight", count)
        .body(full(body));
    response.unwrap_or_else(|_| http::Response::new(Body::default()))
}

#[cfg(test)]
mod tests {
    use base::TokioClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::Family;

    async fn ask(port: u16) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        stream.write_all(b"GET /any HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        Some(text)
    }

    /// A port that was free a moment ago.
    async fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn ports_follow_their_services() {
        let health = Health::new(TokioClock::shared(), Duration::from_secs(60));
        health.synced(Family::V4);
        let tasks = TaskGroup::new("test");
        let mut ports = HealthPorts::new(vec![[127, 0, 0, 1].into()], health, tasks.clone(), "n", None);
        let (key, port) = (ObjectKey::new("demo", "web"), free_port().await);
        let check = |local_endpoints| BTreeMap::from([(key.clone(), Check { port, local_endpoints })]);
        ports.sync(&check(2)).await;
        let text = ask(port).await.unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("x-load-balancing-endpoint-weight: 2"),
            "{text}"
        );
        let body = "{\n\t\"service\": {\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}";
        assert!(text.ends_with(body), "{text}");
        ports.sync(&check(0)).await;
        assert!(ask(port).await.unwrap().starts_with("HTTP/1.1 503"));
        ports.sync(&BTreeMap::new()).await;
        assert_eq!(ask(port).await, None, "closed");
        tasks.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn a_taken_port_is_tried_again() {
        let health = Health::new(TokioClock::shared(), Duration::from_secs(60));
        let tasks = TaskGroup::new("test");
        let mut ports = HealthPorts::new(vec![[127, 0, 0, 1].into()], health, tasks.clone(), "n", None);
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let checks = BTreeMap::from([(ObjectKey::new("demo", "web"), Check { port, local_endpoints: 1 })]);
        ports.sync(&checks).await;
        assert!(ports.open.is_empty());
        drop(taken);
        ports.sync(&checks).await;
        assert!(ask(port).await.unwrap().starts_with("HTTP/1.1 200"));
        tasks.shutdown(Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn half_a_health_check_does_not_stand_in_its_own_way() {
        let health = Health::new(TokioClock::shared(), Duration::from_secs(60));
        let tasks = TaskGroup::new("test");
        let taken = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let addresses = vec![[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
        let mut ports = HealthPorts::new(addresses, health, tasks.clone(), "n", None);
        let checks = BTreeMap::from([(ObjectKey::new("demo", "web"), Check { port, local_endpoints: 1 })]);
        ports.sync(&checks).await;
        assert!(ports.open.is_empty());
        drop(taken);
        for _ in 0..100 {
            ports.sync(&checks).await;
            if !ports.open.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!ports.open.is_empty());
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}
