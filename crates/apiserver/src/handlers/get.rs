//! `GET` of one object.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::StatusCode;

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;

pub(super) async fn get(cx: &Arc<ApiCx>, request: &Request<Authorized>, target: &Target) -> Result<Response, ApiError> {
    let rendering = target.rendering(cx, request)?;
    if request.query().flag("export") {
        return Err(ApiError::bad_request("the export parameter, deprecated since v1.14, is no longer supported"));
    }
    let version = request.query().text("resourceVersion");
    let found = target.resource.get(&target.request_cx(cx, request, false), target.name()?, &version).await?;
    respond::stored(&rendering, StatusCode::OK, &found)
}
