//! Which container of a pod is meant, and where the pod is.

use api_machinery::status::ApiError;
use api_types::core_v1::Pod;

/// The container that is named, or the only one.
///
/// # Errors
/// 400 when there is no such container, or several.
pub(super) fn choose(pod: &Pod, wanted: &str) -> Result<String, ApiError> {
    let name = &pod.metadata.name;
    let spec = &pod.spec;
    if !wanted.is_empty() {
        return if names(pod).any(|own| own == wanted) {
            Ok(wanted.to_owned())
        } else {
            Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {name}")))
        };
    }
    match spec.containers.as_slice() {
        [only] => Ok(only.name.clone()),
        [] => Err(ApiError::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let all: Vec<&str> = names(pod).collect();
            let all = all.join(" ");
            Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{all}]"
            )))
        }
    }
}

/// The names of all containers: ordinary, init and ephemeral ones.
fn names(pod: &Pod) -> impl Iterator<Item = &str> {
    let spec = &pod.spec;
    let ordinary = spec.containers.iter().map(|container| container.name.as_str());
    let init = spec.init_containers.iter().map(|container| container.name.as_str());
    ordinary.chain(init).chain(spec.ephemeral_containers.iter().map(|own| own.ephemeral_container_common.name.as_str()))
}

/// The node that a pod is bound to.
///
/// # Errors
/// 400 where it is bound to none.
pub(super) fn host(pod: &Pod) -> Result<&str, ApiError> {
    let node = pod.spec.node_name.as_str();
    if node.is_empty() {
        let name = &pod.metadata.name;
        return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;

    use super::*;

    fn pod(containers: &[&str], init: &[&str]) -> Pod {
        let of = |names: &[&str]| {
            names.iter().map(|&name| Container { name: name.into(), ..Container::default() }).collect::<Vec<_>>()
        };
        let mut pod = Pod::default();
        pod.metadata.name = "p".into();
        pod.spec.containers = of(containers);
        pod.spec.init_containers = of(init);
        pod
    }

    #[test]
    fn containers_are_chosen_with_upstreams_texts() {
        let text = |pod: &Pod, wanted: &str| choose(pod, wanted).unwrap_or_else(|error| error.message);
        let (one, two) = (pod(&["a"], &["i"]), pod(&["a", "b"], &["i"]));
        assert_eq!(text(&one, ""), "a");
        assert_eq!(text(&one, "i"), "i");
        assert_eq!(text(&one, "x"), "container x is not valid for pod p");
        assert_eq!(text(&two, ""), "a container name must be specified for pod p, choose one of: [a b i]");
        assert_eq!(text(&pod(&[], &[]), ""), "a container name must be specified for pod p");
        assert_eq!(host(&one).unwrap_err().message, "pod p does not have a host assigned");
    }
}
