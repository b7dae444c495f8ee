//! The way to the nodes: logs, commands, forwarded ports and proxied requests, passed on to where a pod or Service is.
//! Nothing here follows a redirect, and the caller's credentials never travel on.

mod access;
pub(crate) mod connection;
mod container;
pub(crate) mod forward;
pub(crate) mod guard;
mod html_links;
mod kubelet;
mod logs;
mod page_body;
mod port_forward;
pub(crate) mod proxy;
mod proxy_id;
mod proxy_target;
mod remote_command;
mod target;
mod throttle;
pub(crate) mod upgrade;

use std::sync::Arc;

use crate::routes::Routes;
use kubelet::Kubelets;
use page_body::Pages;

/// Adds the subresources.
pub(crate) fn install(routes: &mut Routes) {
    let kubelets = Arc::new(Kubelets::default());
    routes.subresource("", "v1", "pods", "log", Arc::new(logs::Logs { kubelets: Arc::clone(&kubelets) }));
    for kind in [remote_command::Kind::Exec, remote_command::Kind::Attach] {
        let endpoint = remote_command::RemoteCommands { kind, kubelets: Arc::clone(&kubelets) };
        routes.subresource("", "v1", "pods", kind.name(), Arc::new(endpoint));
    }
    let forward = port_forward::PortForwards { kubelets: Arc::clone(&kubelets) };
    routes.subresource("", "v1", "pods", "portforward", Arc::new(forward));
    let pages = Arc::new(Pages::default());
    for resource in ["pods", "services", "nodes"] {
        let endpoint = proxy::Proxy { kubelets: Arc::clone(&kubelets), pages: Arc::clone(&pages) };
        routes.subresource("", "v1", resource, "proxy", Arc::new(endpoint));
    }
}
