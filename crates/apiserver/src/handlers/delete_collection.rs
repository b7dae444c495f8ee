//! `DELETE` of a collection.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;
use registry::Hooks;

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{MediaType, body_type};
use crate::request::{BodyVersions, delete_options, sharded_list_options};
use crate::respond;

pub(super) async fn delete_collection(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    target.rendering(cx, &request)?;
    let selection = sharded_list_options(request.query(), cx.lifecycle.gates())?;
    let body = request.read_body().await?;
    let forms = request.preferences().forms();
    let media = if body.is_empty() { MediaType::Json } else { body_type(request.headers(), forms, false)? };
    let versions = if target.is_custom() { BodyVersions::Any } else { BodyVersions::Registered };
    let (gates, audit) = (cx.lifecycle.gates(), request.audited().context());
    let options = delete_options(&body, media, versions, request.query(), audit, gates)?;
    let dry_run = !options.dry_run.is_empty();
    let admission = Admitting::new(cx, &request, target, dry_run).of_deletion(&options);
    let hooks = Hooks { admission: &admission, track: None };
    let in_registry = target.request_cx(cx, &request, dry_run);
    let deleting = target.resource.delete_collection(&in_registry, &selection, &options, &hooks);
    let deleted = bounded(deleting).await?;
    respond::list(&target.rendering(cx, &request)?, &deleted).await
}
