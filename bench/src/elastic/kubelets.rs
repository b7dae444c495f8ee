//! Hollow kubelets: one server for all nodes, each of which has a loopback address of its own, by which it is known which
//! node is asked. Each tells at `/metrics/resource` what a kubelet tells of its pods.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use anyhow::{Context, Result};
use base::{Clock as _, SystemClock, TaskGroup};
use bytes::Bytes;
use http::{Response, header};
use http_body_util::Full;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::objects::{PODS_OF_A_NODE, namespace, pod_name};
use crate::https::GroupExecutor;
use crate::identity::Identity;

/// Every pod uses so many processors all the time. Counters are told more precisely than the times that they are of, so what
/// follows from two of them differs a little each time. Halfway between two thousandths it does not show: autoscalers round
/// up to those, and find the same each time, so that what is measured is looking and not writing down what was seen.
const CORES: f64 = 0.0495;
const MEMORY_BYTES: u32 = 20 << 20;

/// The address of a node, and back.
pub(super) fn address(node: usize) -> Ipv4Addr {
    let [.., third, fourth] = u32::try_from(node + 1).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(127, 1, third, fourth)
}

fn node_at(address: IpAddr) -> Option<usize> {
    let IpAddr::V4(address) = address.to_canonical() else { return None };
    let [.., third, fourth] = address.octets();
    usize::from(u16::from_be_bytes([third, fourth])).checked_sub(1)
}

/// Serves until it is killed. `arguments` are the port and the directory of certificates.
///
/// # Errors
/// Arguments are missing, or the port is taken.
pub async fn serve(arguments: &[OsString]) -> Result<()> {
    let [port, identity] = arguments else { anyhow::bail!("want: PORT CERTIFICATES") };
    let port: u16 = port.to_str().and_then(|text| text.parse().ok()).context("the port is no number")?;
    let acceptor = TlsAcceptor::from(Identity::at(identity.as_ref()).server_tls()?);
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
    let tasks = TaskGroup::new("kubelets");
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, group) = (acceptor.clone(), tasks.clone());
        tasks.spawn("connection", async move {
            // Who asked sees how the connection ended.
            let _end = connection(acceptor, group, stream).await;
        });
    }
}

async fn connection(acceptor: TlsAcceptor, tasks: TaskGroup, stream: TcpStream) -> Result<()> {
    let node = node_at(stream.local_addr()?.ip()).context("no node has this address")?;
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let service = service_fn(move |_| {
        let mut response = Response::new(Full::new(Bytes::from(told(node, SystemClock.wall()))));
        let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    http2::Builder::new(GroupExecutor(tasks)).serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

/// What the kubelet of a node tells.
fn told(node: usize, now: SystemTime) -> String {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (at, used) = (now.as_millis(), now.as_secs_f64() * CORES);
    let mut text = String::with_capacity(PODS_OF_A_NODE * 700);
    // Writing into a text does not fail.
    let _ = writeln!(text, "node_cpu_usage_seconds_total {used} {at}\nnode_memory_working_set_bytes 1e+09 {at}");
    for number in node * PODS_OF_A_NODE..(node + 1) * PODS_OF_A_NODE {
        let labels = format!("namespace=\"{}\",pod=\"{}\"", namespace(number), pod_name(number));
        let _ = write!(
            text,
            "container_cpu_usage_seconds_total{{container=\"main\",{labels}}} {used} {at}\n\
             container_memory_working_set_bytes{{container=\"main\",{labels}}} {MEMORY_BYTES} {at}\n\
             container_start_time_seconds{{container=\"main\",{labels}}} 1.7e+09\n\
             container_swap_usage_bytes{{container=\"main\",{labels}}} 0 {at}\n\
             pod_cpu_usage_seconds_total{{{labels}}} {used} {at}\n\
             pod_memory_working_set_bytes{{{labels}}} {MEMORY_BYTES} {at}\n\
             pod_swap_usage_bytes{{{labels}}} 0 {at}\n"
        );
    }
    text.push_str("resource_scrape_error 0\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_known_by_their_addresses() {
        for node in [0, 1, 254, 255, 256, 4_999] {
            assert_eq!(node_at(address(node).into()), Some(node));
        }
        assert!(told(3, SystemTime::UNIX_EPOCH).contains(&format!("pod=\"{}\"", pod_name(3 * PODS_OF_A_NODE))));
    }
}
