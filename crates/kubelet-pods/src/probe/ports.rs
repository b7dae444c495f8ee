//! Ports of probes and hooks: a number, a number as text, or the name of one of the container's ports.

use api_machinery::intstr::IntOrString;
use api_types::core_v1::Container;

/// Why a port is none. The pod would have to be another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    #[error("couldn't find port {0:?} in container")]
    Unknown(String),
    #[error("invalid port number: {0}")]
    Invalid(i32),
}

/// The number of a port.
///
/// # Errors
/// The container has no port of that name, or the number is none.
pub(crate) fn resolve(port: &IntOrString, container: &Container) -> Result<u16, PortError> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::Str(name) => match container.ports.iter().find(|port| port.name == *name) {
            Some(found) => found.container_port,
            None => name.parse().map_err(|_| PortError::Unknown(name.clone()))?,
        },
    };
    u16::try_from(number).ok().filter(|port| *port > 0).ok_or(PortError::Invalid(number))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ContainerPort;

    use super::*;

    #[test]
    fn names_and_numbers() {
        let port = ContainerPort { name: "web".into(), container_port: 80, ..ContainerPort::default() };
        let container = Container { ports: vec![port], ..Container::default() };
        for (port, expected) in [
            (IntOrString::Int(8080), Ok(8080)),
            (IntOrString::Str("web".into()), Ok(80)),
            (IntOrString::Str("81".into()), Ok(81)),
            (IntOrString::Str("nope".into()), Err("couldn't find port \"nope\" in container".to_owned())),
            (IntOrString::Int(0), Err("invalid port number: 0".to_owned())),
            (IntOrString::Int(70_000), Err("invalid port number: 70000".to_owned())),
        ] {
            assert_eq!(resolve(&port, &container).map_err(|error| error.to_string()), expected);
        }
    }
}
