//! Warnings of containers: variables and ports that hide each other, and amounts that are no whole bytes.

use std::collections::BTreeMap;

use api_machinery::field_path::Path;
use api_types::core_v1::{Container, ContainerPort, ResourceList};

use super::ENOUGH;

/// A later variable of the same name hides an earlier one, unless it adds to it.
pub(super) fn repeated_variables(path: &Path, container: &Container, texts: &mut Vec<String>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, variable) in container.env.iter().enumerate() {
        let before = seen.insert(&variable.name, &variable.value);
        let itself = format!("$({})", variable.name);
        let adds = variable.value.contains(&itself) && variable.value != itself;
        if before.is_some() && !adds {
            let at = path.child("env").index(index);
            let text = "which may be dropped when using apply";
            texts.push(format!("{at}: hides previous definition of \"{}\", {text}", variable.name));
        }
    }
}

/// Bytes come whole; `path` is the list's.
pub(crate) fn fractional_bytes(path: &Path, list: &ResourceList, names: &[&str], texts: &mut Vec<String>) {
    for (name, quantity) in list {
        if names.contains(&name.as_str()) && !quantity.is_integer() {
            let at = path.key(name);
            texts.push(format!("{at}: fractional byte value \"{quantity}\" is invalid, must be an integer"));
        }
    }
}

/// The ports of all containers, as each is held against those before it.
#[derive(Default)]
pub(super) struct Ports<'a> {
    same: BTreeMap<(i32, &'a str), Vec<(Path, &'a ContainerPort)>>,
    names: BTreeMap<&'a str, Path>,
}

impl<'a> Ports<'a> {
    /// Looks at the ports of one more container.
    pub(super) fn look(&mut self, path: &Path, container: &'a Container, texts: &mut Vec<String>) {
        for (index, port) in container.ports.iter().enumerate() {
            let at = path.child("ports").index(index);
            if !port.host_ip.is_empty() && port.host_port == 0 {
                let ContainerPort { name, container_port, protocol, host_ip, .. } = port;
                texts.push(format!(
                    "{at}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{container_port} \
                     Protocol:{protocol} HostIP:{host_ip}}}"
                ));
            }
            let others = self.same.entry((port.container_port, port.protocol.as_str())).or_default();
            for (other_at, other) in others.iter() {
                if texts.len() >= ENOUGH {
                    break;
                }
                texts.extend(clash(port, other).map(|how| format!("{at}: {how} port definition with {other_at}")));
            }
            if others.len() < ENOUGH {
                others.push((at.clone(), port));
            }
            self.look_at_name(at, &port.name, texts);
        }
    }

    fn look_at_name(&mut self, at: Path, name: &'a str, texts: &mut Vec<String>) {
        if name.is_empty() {
            return;
        }
        match self.names.get(name) {
            Some(other) => texts.push(format!(
                "{at}: duplicate port name \"{name}\" with {other}, services and probes that select ports by name \
                 will use {other}"
            )),
            None => {
                self.names.insert(name, at);
            }
        }
    }
}

/// How two definitions of one port get in each other's way.
fn clash(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    if port.host_ip == other.host_ip && port.host_port == other.host_port {
        return Some("duplicate");
    }
    if port.host_port == 0 || other.host_port == 0 {
        return Some("overlapping");
    }
    let one_is_open = port.host_ip.is_empty() != other.host_ip.is_empty();
    (port.host_port == other.host_port && one_is_open).then_some("dangerously ambiguous")
}
