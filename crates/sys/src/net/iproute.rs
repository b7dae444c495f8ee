//! The network by way of `ip` and `conntrack`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Address, Conntrack, Destination, Interface, NetError, Network, Protocol, Route, Tracked};
use crate::exec::{Command, Exec, ExecError, Output};

/// The network of the caller's namespace, or of another by path.
pub struct IpRoute {
    exec: Arc<dyn Exec>,
    netns: Option<PathBuf>,
}

impl IpRoute {
    pub fn new(exec: Arc<dyn Exec>, netns: Option<&Path>) -> Self {
        Self { exec, netns: netns.map(Path::to_owned) }
    }

    async fn run(&self, program: &str, args: &[&str]) -> Result<Output, ExecError> {
        self.exec.run(&Command::with(program, args).netns(self.netns.as_ref())).await
    }

    /// Runs `ip`, taking a refusal whose words contain `fine` for done.
    async fn ip(&self, args: &[&str], fine: &[&str]) -> Result<(), NetError> {
        let output = self.run("ip", args).await?;
        let words = output.error_text();
        if output.success() || fine.iter().any(|part| words.contains(part)) {
            return Ok(());
        }
        let line = Command::with("ip", args).line();
        Err(ExecError::Failed { line, exit: output.exit, stderr: words }.into())
    }

    async fn json(&self, args: &[&str]) -> Result<Vec<Value>, NetError> {
        let output = self.exec.run_ok(&Command::with("ip", args).netns(self.netns.as_ref())).await?;
        if output.stdout.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| NetError::Listing("ip", error))
    }
}

/// Some hundred thousand connections; what is beyond is not looked at this time.
const TRACKED_LIMIT_BYTES: usize = 64 * 1024 * 1024;
const EXISTS: &[&str] = &["File exists", "already assigned"];
const GONE: &[&str] = &["Cannot find device", "No such process", "No such device"];

#[async_trait]
impl Network for IpRoute {
    async fn interfaces(&self) -> Result<Vec<Interface>, NetError> {
        Ok(self.json(&["-j", "address", "show"]).await?.iter().filter_map(interface).collect())
    }

    async fn routes(&self) -> Result<Vec<Route>, NetError> {
        let mut routes: Vec<_> =
            self.json(&["-j", "-4", "route", "show"]).await?.iter().filter_map(|route_| route(route_, false)).collect();
        routes.extend(self.json(&["-j", "-6", "route", "show"]).await?.iter().filter_map(|route_| route(route_, true)));
        Ok(routes)
    }

    async fn add_bridge(&self, name: &str) -> Result<(), NetError> {
        self.ip(&["link", "add", name, "type", "bridge"], EXISTS).await?;
        self.set_up(name).await
    }

    async fn add_veth(&self, name: &str, peer: &str, peer_netns: &str) -> Result<(), NetError> {
        self.ip(&["link", "add", name, "type", "veth", "peer", "name", peer, "netns", peer_netns], EXISTS).await
    }

    async fn set_master(&self, link: &str, bridge: &str) -> Result<(), NetError> {
        self.ip(&["link", "set", link, "master", bridge, "up"], &[]).await
    }

    async fn set_up(&self, link: &str) -> Result<(), NetError> {
        self.ip(&["link", "set", link, "up"], &[]).await
    }

    async fn add_address(&self, link: &str, address: Address) -> Result<(), NetError> {
        let text = address.to_string();
        let mut args = vec!["address", "add", &text, "dev", link];
        if address.ip.is_ipv6() {
            // Without this the address cannot be used for the second or two that looking for a duplicate takes.
            args.push("nodad");
        }
        self.ip(&args, EXISTS).await
    }

    async fn set_route(&self, route: &Route) -> Result<(), NetError> {
        let destination = route.destination.to_string();
        let family = if route.destination.is_v6() { "-6" } else { "-4" };
        let mut args = vec![family.to_owned(), "route".to_owned(), "replace".to_owned(), destination];
        let options = [
            ("via", route.gateway.map(|gateway| gateway.to_string())),
            ("dev", route.device.clone()),
            ("src", route.source.map(|source| source.to_string())),
        ];
        for (name, value) in options {
            args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        self.ip(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]).await
    }

    async fn delete_route(&self, destination: Destination) -> Result<(), NetError> {
        let family = if destination.is_v6() { "-6" } else { "-4" };
        self.ip(&[family, "route", "delete", &destination.to_string()], GONE).await
    }

    async fn delete_link(&self, name: &str) -> Result<(), NetError> {
        self.ip(&["link", "delete", name], GONE).await
    }

    async fn connections(&self, protocol: Protocol, v6: bool) -> Result<Vec<Tracked>, NetError> {
        let family = if v6 { "ipv6" } else { "ipv4" };
        let command = Command::with("conntrack", &["-L", "-p", protocol.name(), "-f", family]);
        let command = command.output_limit_bytes(TRACKED_LIMIT_BYTES).netns(self.netns.as_ref());
        let output = self.exec.run(&command).await?;
        // The table changes while it is read, and the kernel may break the listing off: what came is true.
        if !output.success() && output.stdout.is_empty() {
            let (line, exit, stderr) = (command.line(), output.exit, output.error_text());
            return Err(ExecError::Failed { line, exit, stderr }.into());
        }
        Ok(output.text().lines().filter_map(tracked).collect())
    }

    async fn forget_connections(&self, which: &Conntrack) -> Result<(), NetError> {
        let mut args = vec!["-D".to_owned(), "-p".to_owned(), which.protocol.name().to_owned()];
        args.extend(["-f".to_owned(), if which.v6 { "ipv6" } else { "ipv4" }.to_owned()]);
        let options = [
            ("--orig-dst", which.original_destination.map(|ip| ip.to_string())),
            ("--orig-port-dst", which.original_port.map(|port| port.to_string())),
            ("--reply-src", which.reply_source.map(|ip| ip.to_string())),
            ("--reply-port-src", which.reply_port.map(|port| port.to_string())),
        ];
        for (name, value) in options {
            args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let output = self.run("conntrack", &args).await?;
        let words = output.error_text();
        // It takes finding nothing for a failure.
        if output.success() || words.contains("0 flow entries") {
            return Ok(());
        }
        Err(ExecError::Failed { line: Command::with("conntrack", &args).line(), exit: output.exit, stderr: words }
            .into())
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number<T: TryFrom<u64>>(value: &Value, key: &str) -> Option<T> {
    value.get(key)?.as_u64()?.try_into().ok()
}

/// One entry of `ip -j address show`. Entries without a name are artefacts of some versions and are left out.
fn interface(value: &Value) -> Option<Interface> {
    let flags: Vec<_> = value.get("flags")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let addresses = value.get("addr_info").and_then(Value::as_array).into_iter().flatten();
    Some(Interface {
        index: number(value, "ifindex")?,
        name: value.get("ifname")?.as_str()?.to_owned(),
        mtu: number(value, "mtu").unwrap_or(0),
        hardware_address: text(value, "address"),
        is_up: flags.contains(&"UP"),
        is_loopback: flags.contains(&"LOOPBACK"),
        addresses: addresses
            .filter_map(|info| {
                Some(Address { ip: text(info, "local").parse().ok()?, prefix: number(info, "prefixlen")? })
            })
            .collect(),
    })
}

/// A line of `conntrack -L`: words `name=value`, those of the original direction before those of the reply.
fn tracked(line: &str) -> Option<Tracked> {
    let of = |name: &str| -> Vec<&str> {
        line.split_whitespace().filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).collect()
    };
    let (destinations, ports) = (of("dst"), of("dport"));
    let (sources, source_ports) = (of("src"), of("sport"));
    Some(Tracked {
        original_destination: destinations.first()?.parse().ok()?,
        original_port: ports.first()?.parse().ok()?,
        reply_source: sources.get(1)?.parse().ok()?,
        reply_port: source_ports.get(1)?.parse().ok()?,
    })
}

/// One entry of `ip -j route show`.
fn route(value: &Value, v6: bool) -> Option<Route> {
    let destination = match value.get("dst")?.as_str()? {
        "default" => Destination::default_of(v6),
        network => network.parse().ok()?,
    };
    let ip = |key| text(value, key).parse::<IpAddr>().ok();
    let device = value.get("dev").and_then(Value::as_str).map(str::to_owned);
    Some(Route { destination, gateway: ip("gateway"), device, source: ip("prefsrc") })
}

#[cfg(test)]
#[path = "iproute_tests.rs"]
mod tests;
