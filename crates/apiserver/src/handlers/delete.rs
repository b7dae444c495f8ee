//! `DELETE` of one object.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::StatusCode;
use registry::{Deleted, Hooks};

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::target::Target;
use super::unread_permission;
use crate::authorization::attributes::attributes;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{MediaType, body_type};
use crate::request::{BodyVersions, delete_options};
use crate::respond;

pub(super) async fn delete(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    target.rendering(cx, &request)?;
    let body = request.read_body().await?;
    let forms = request.preferences().forms();
    let media = if body.is_empty() { MediaType::Json } else { body_type(request.headers(), forms, false)? };
    let (gates, audit) = (cx.lifecycle.gates(), request.audited().context());
    let options = delete_options(&body, media, BodyVersions::Any, request.query(), audit, gates)?;
    if options.ignore_store_read_error_with_cluster_breaking_potential == Some(true) {
        audit.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "");
        unread_permission::check(&*cx.authorizer, &attributes(request.user(), request.info())).await?;
    }
    let dry_run = !options.dry_run.is_empty();
    let admission = Admitting::new(cx, &request, target, dry_run).of_deletion(&options);
    let hooks = Hooks { admission: &admission, track: None };
    let in_registry = target.request_cx(cx, &request, dry_run);
    let deletion = bounded(target.resource.delete(&in_registry, target.name()?, &options, &hooks)).await?;
    let status = if deletion.accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
    match &deletion.body {
        Deleted::Object(object) => respond::stored(&target.rendering(cx, &request)?, status, object),
        Deleted::Status(outcome) => Ok(respond::success(request.preferences(), status, outcome)),
    }
}
