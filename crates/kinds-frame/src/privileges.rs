//! What no pod may ask for where the server allows no privileges, whichever kind it comes from.

use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::PodSpec;

use crate::pod_containers::each_container;

/// Refuses what gives a container the powers of the host.
pub(crate) fn refuse(path: &Path, spec: &PodSpec, errors: &mut ErrorList) {
    for (at, container) in each_container(spec, path) {
        if container.security_context.as_ref().is_some_and(|context| context.privileged == Some(true)) {
            let at = at.child("securityContext").child("privileged");
            errors.push(at.forbidden("disallowed by cluster policy"));
        }
    }
    if has_host_process(spec) {
        errors.push(path.forbidden("hostProcess containers are disallowed by cluster policy"));
    }
}

/// Whether any container is a process of the host.
fn has_host_process(spec: &PodSpec) -> bool {
    let shared = spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
    let shared = shared.and_then(|options| options.host_process);
    each_container(spec, &Path::nil()).iter().any(|(_, container)| {
        let options = container.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
        options.and_then(|options| options.host_process).or(shared) == Some(true)
    })
}
