//! What a pod can be told about itself: `fieldRef` and `resourceFieldRef`, in variables and in downward API volumes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector, ResourceList};

use super::error::EnvError;

/// What of the surroundings these fields can show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The node's addresses, primary first.
    pub host_ips: Vec<String>,
    /// The pod's addresses, primary first.
    pub pod_ips: Vec<String>,
    /// What the node can give to pods; stands in for limits that are not set.
    pub allocatable: ResourceList,
}

/// The value of a field of the pod.
pub(crate) fn field(pod: &Pod, selector: &ObjectFieldSelector, around: &Surroundings) -> Result<String, EnvError> {
    let meta = &pod.metadata;
    let path = selector.field_path.as_str();
    Ok(match path {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "metadata.labels" => lines(&meta.labels),
        "metadata.annotations" => lines(&meta.annotations),
        "spec.nodeName" => pod.spec.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.service_account_name.clone(),
        "status.hostIP" => around.host_ips.first().cloned().unwrap_or_default(),
        "status.hostIPs" => around.host_ips.join(","),
        "status.podIP" => around.pod_ips.first().cloned().unwrap_or_default(),
        "status.podIPs" => around.pod_ips.join(","),
        _ => entry(pod, path)?,
    })
}

/// `metadata.labels['key']` and its like; an absent key is an empty value.
fn entry(pod: &Pod, path: &str) -> Result<String, EnvError> {
    let unsupported = || EnvError::FieldPath(path.to_owned());
    let (map, rest) = if let Some(rest) = path.strip_prefix("metadata.labels['") {
        (&pod.metadata.labels, rest)
    } else if let Some(rest) = path.strip_prefix("metadata.annotations['") {
        (&pod.metadata.annotations, rest)
    } else {
        return Err(unsupported());
    };
    let key = rest.strip_suffix("']").ok_or_else(unsupported)?;
    Ok(map.get(key).cloned().unwrap_or_default())
}

/// A map as lines of `key="value"`, the value quoted as Go does it, without a last line break.
fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for symbol in text.chars() {
        match symbol {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            symbol if symbol.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(symbol));
            }
            symbol => out.push(symbol),
        }
    }
    out.push('"');
    out
}

/// The value of a container's resource field, divided and rounded up. `own` is the container that asks.
pub(crate) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    selector: &ResourceFieldSelector,
    around: &Surroundings,
) -> Result<String, EnvError> {
    let container = if selector.container_name.is_empty() {
        own.ok_or(EnvError::Unnamed)?
    } else {
        named(pod, &selector.container_name).ok_or_else(|| EnvError::NoContainer(selector.container_name.clone()))?
    };
    let unsupported = || EnvError::Resource(selector.resource.clone());
    let (side, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let amount = match side {
        _ if !known => return Err(unsupported()),
        "limits" => limit(pod, container, name, around),
        "requests" => container.resources.requests.get(name).cloned().unwrap_or_default(),
        _ => return Err(unsupported()),
    };
    Ok(divided(&amount, &selector.divisor, name == "cpu").to_string())
}

fn named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    pod.spec.containers.iter().chain(&pod.spec.init_containers).find(|container| container.name == name)
}

/// The container's limit, else the pod's, else all that the node has.
fn limit(pod: &Pod, container: &Container, name: &str, around: &Surroundings) -> Quantity {
    let set = |list: &ResourceList| list.get(name).filter(|amount| amount.cmp_i64(0).is_gt()).cloned();
    let of_pod = || pod.spec.resources.as_ref().and_then(|resources| set(&resources.limits));
    let of_node = || around.allocatable.get(name).cloned();
    set(&container.resources.limits).or_else(of_pod).or_else(of_node).unwrap_or_default()
}

fn divided(amount: &Quantity, divisor: &Quantity, milli: bool) -> i64 {
    let read = |quantity: &Quantity| if milli { quantity.milli_value() } else { quantity.value() };
    let divisor = match read(divisor) {
        0 if milli => 1000,
        0 => 1,
        divisor => divisor,
    };
    let amount = read(amount);
    amount.div_euclid(divisor) + i64::from(amount.rem_euclid(divisor) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        pod.metadata.labels = [("app".into(), "a \"b\"\n".into()), ("tier".into(), "x".into())].into();
        pod.spec.node_name = "n1".into();
        let mut container = Container { name: "main".into(), ..Container::default() };
        container.resources.requests.insert("cpu".into(), Quantity::parse("250m").unwrap());
        container.resources.limits.insert("memory".into(), Quantity::parse("64Mi").unwrap());
        pod.spec.containers.push(container);
        pod
    }

    #[test]
    fn fields_show_the_pod() {
        let around = Surroundings {
            host_ips: vec!["10.0.0.1".into(), "fd00::1".into()],
            pod_ips: vec!["10.1.0.4".into()],
            ..Surroundings::default()
        };
        let cases = [
            ("metadata.name", Ok("web")),
            ("metadata.labels", Ok("app=\"a \\\"b\\\"\\n\"\ntier=\"x\"")),
            ("metadata.labels['tier']", Ok("x")),
            ("metadata.labels['none']", Ok("")),
            ("spec.nodeName", Ok("n1")),
            ("status.hostIPs", Ok("10.0.0.1,fd00::1")),
            ("status.podIP", Ok("10.1.0.4")),
            ("spec.priority", Err("unsupported fieldPath: spec.priority")),
        ];
        for (path, expected) in cases {
            let selector = ObjectFieldSelector { field_path: path.into(), ..ObjectFieldSelector::default() };
            let found = field(&pod(), &selector, &around).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        }
    }

    #[test]
    fn resources_are_divided_and_rounded_up() {
        let mut around = Surroundings::default();
        around.allocatable.insert("cpu".into(), Quantity::parse("1500m").unwrap());
        let cases = [
            ("requests.cpu", "", Ok("1")),
            ("requests.cpu", "1m", Ok("250")),
            ("limits.cpu", "", Ok("2")),
            ("limits.memory", "1Mi", Ok("64")),
            ("limits.memory", "", Ok("67108864")),
            ("requests.memory", "", Ok("0")),
            ("limits.pods", "", Err("unsupported container resource : limits.pods")),
        ];
        for (resource_name, divisor, expected) in cases {
            let divisor = if divisor.is_empty() { Quantity::default() } else { Quantity::parse(divisor).unwrap() };
            let selector =
                ResourceFieldSelector { resource: resource_name.into(), divisor, ..ResourceFieldSelector::default() };
            let pod = pod();
            let found =
                resource(&pod, pod.spec.containers.first(), &selector, &around).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{resource_name}");
        }
    }
}
