//! What the subresources have in common: reading objects, admission of connections, and the second authorization that
//! sessions opened by GET need.

use api_machinery::gvk::GroupResource;
use api_machinery::object::{Object, Unstructured};
use api_machinery::status::ApiError;
use api_machinery::value::struct_to_map;
use api_types::core_v1::{
    NodeProxyOptions, PodAttachOptions, PodExecOptions, PodPortForwardOptions, PodProxyOptions, ServiceProxyOptions,
};
use authz::{Attributes, Decision};

use crate::authorization::attributes::attributes;
use crate::authorization::forbidden::forbidden;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates::SESSIONS_ARE_CREATED;
use crate::own_request::server_request;
use crate::plugin_notes;

/// Reads an object of the core group, from the cache where it may.
pub(super) async fn read<T: Object + Clone>(
    cx: &ApiCx,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<T, ApiError> {
    let missing =
        || ApiError::not_found(&GroupResource { group: "".into(), resource: resource.to_owned().into() }, name);
    let found = cx.registry().resource("", "v1", resource).ok_or_else(missing)?;
    let stored = found.get(&server_request(found.rule_context(), namespace), name, "").await?;
    stored.object().downcast_ref::<T>().cloned().ok_or_else(missing)
}

/// Passes a connection through admission, with the options as the object.
pub(super) async fn admit_connect(cx: &ApiCx, request: &Request<Authorized>) -> Result<(), ApiError> {
    let info = request.info();
    if request.query().first("dryRun").is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let mut options = connect_options(request);
    let attributes = admission::Attributes {
        operation: admission::Operation::Connect,
        kind: (&options as &dyn Object).gvk(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        user: request.user().clone(),
        dry_run: false,
        options: admission::OperationOptions::None,
        deadline: request.deadline(),
        warnings: admission::Warnings::default(),
        annotations: admission::Annotations::default(),
        findings: admission::Findings::default(),
        rounds: admission::Rounds::default(),
    };
    let mut outcome = cx.admission().mutate(&attributes, Some(&mut options), None).await;
    if outcome.is_ok() {
        outcome = cx.admission().validate(&attributes, Some(&options), None).await;
    }
    plugin_notes::hand_on(&attributes, request.warnings(), request.audited().context());
    outcome
}

/// What a connection asks for, as an object. A change of it by a plugin has no effect.
fn connect_options(request: &Request<Authorized>) -> Unstructured {
    let (info, query) = (request.info(), request.query());
    let flag = |name: &str| query.flag(name);
    let shown = |name: &str| query.switch(name).unwrap_or(true);
    let path = || format!("/{}", info.parts.get(3..).unwrap_or_default().join("/"));
    let (kind, content) = match (info.resource.as_str(), info.subresource.as_str()) {
        ("pods", "exec") => {
            let options = PodExecOptions {
                stdin: flag("stdin"),
                stdout: shown("stdout"),
                stderr: shown("stderr"),
                tty: flag("tty"),
                container: query.text("container"),
                command: query.all("command").map(str::to_owned).collect(),
            };
            ("PodExecOptions", struct_to_map(&options))
        }
        ("pods", "attach") => {
            let options = PodAttachOptions {
                stdin: flag("stdin"),
                stdout: shown("stdout"),
                stderr: shown("stderr"),
                tty: flag("tty"),
                container: query.text("container"),
            };
            ("PodAttachOptions", struct_to_map(&options))
        }
        ("pods", "portforward") => {
            let ports = query.all("ports").filter_map(|port| port.parse().ok()).collect();
            ("PodPortForwardOptions", struct_to_map(&PodPortForwardOptions { ports }))
        }
        ("pods", _) => ("PodProxyOptions", struct_to_map(&PodProxyOptions { path: path() })),
        ("services", _) => ("ServiceProxyOptions", struct_to_map(&ServiceProxyOptions { path: path() })),
        _ => ("NodeProxyOptions", struct_to_map(&NodeProxyOptions { path: path() })),
    };
    Unstructured { content: content.into_iter().collect(), ..Unstructured::new("v1", kind) }
}

/// Sessions change things, so whoever opens one must be allowed to create it, whatever the method was (gate
/// `AuthorizePodWebsocketUpgradeCreatePermission`).
pub(super) async fn require_create(cx: &ApiCx, request: &Request<Authorized>) -> Result<(), ApiError> {
    if request.info().verb == "create" || !cx.lifecycle.gates().enabled(SESSIONS_ARE_CREATED) {
        return Ok(());
    }
    let attributes = Attributes { verb: "create".to_owned(), ..attributes(request.user(), request.info()) };
    let outcome = cx.authorizer().authorize(&attributes).await;
    if outcome.decision == Decision::Allow { Ok(()) } else { Err(forbidden(&attributes, &outcome)) }
}
