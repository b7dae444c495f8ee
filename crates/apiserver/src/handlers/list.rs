//! `GET` of a collection.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::sharded_list_options;
use crate::respond;

pub(super) async fn list(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let rendering = target.rendering(cx, request)?;
    let options = sharded_list_options(request.query(), cx.lifecycle.gates())?;
    let found = target.resource.list(&target.request_cx(cx, request, false), &options).await?;
    respond::list(&rendering, &found).await
}
