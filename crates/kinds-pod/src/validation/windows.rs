//! Rules of what only Windows containers have.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::{PodSpec, WindowsSecurityContextOptions};
use kinds_frame::pod_containers::each_container;

use super::nothing;

const MAX_SPEC_BYTES: usize = 64 * 1024;
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;
const NOT_IN_USERS: [char; 14] = ['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@'];

pub(super) fn validate_options(options: &WindowsSecurityContextOptions, path: &Path, errors: &mut ErrorList) {
    if let Some(name) = &options.gmsa_credential_spec_name {
        errors.push_invalid(&path.child("gmsaCredentialSpecName"), name, names::dns1123_subdomain(name));
    }
    if let Some(spec) = &options.gmsa_credential_spec {
        let at = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.push(at.invalid(spec, "gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > MAX_SPEC_BYTES {
            errors.push(at.invalid(spec, "gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    if let Some(name) = &options.run_as_user_name {
        for problem in user_problems(name) {
            errors.push(path.child("runAsUserName").invalid(name, problem));
        }
    }
}

fn user_problems(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.chars().any(char::is_control) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut problems = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN {
            problems.push("runAsUserName's Domain length must be under 256 characters");
        }
        if !is_netbios(domain) && !is_dns(domain) {
            problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty");
    } else if user.len() > MAX_USER {
        problems.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|c| NOT_IN_USERS.contains(&c) || matches!(c, '[' | ']')) {
        problems.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    problems
}

fn is_netbios(domain: &str) -> bool {
    const NOT: [char; 8] = ['\\', '/', ':', '*', '?', '"', '<', '>'];
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(NOT)
        && !domain.contains('|')
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| names::dns1123_label(&label.to_lowercase()).is_empty())
}

/// Either all containers of a pod are processes of the host, or none is.
pub(super) fn validate_host_process(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    let shared = spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
    let shared = shared.and_then(|options| options.host_process);
    let containers = each_container(spec, path);
    let mut hosted = 0;
    for (path, container) in &containers {
        let options = container.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
        let own = options.and_then(|options| options.host_process);
        if let (Some(shared), Some(own)) = (shared, own)
            && shared != own
        {
            let at = path.child("securityContext").child("windowsOptions").child("hostProcess");
            let detail = format!("pod hostProcess value must be identical if both are specified, was {shared}");
            errors.push(at.invalid(own, detail));
        }
        hosted += usize::from(own.or(shared) == Some(true));
    }
    if hosted == 0 {
        return;
    }
    if hosted != containers.len() {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(path.invalid(nothing(), detail));
    }
    if !spec.host_network {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(path.child("hostNetwork").invalid(false, detail));
    }
}
