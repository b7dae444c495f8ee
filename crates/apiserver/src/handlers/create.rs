//! `POST` to a collection.

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::StatusCode;
use registry::Hooks;

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming::{self, When};
use super::ownership::Ownership;
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::WriteOptions;
use crate::respond;

pub(super) async fn create(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    target.rendering(cx, &request)?;
    let options = WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())?;
    let mut object = incoming::read(&mut request, target, &options).await?;
    incoming::ensure_namespace(target, object.meta_mut())?;
    incoming::drop_duplicate_owners(object.meta_mut(), When::Received, request.warnings());

    let admission = Admitting::new(cx, &request, target, options.dry_run);
    let ownership = Ownership::new(target, target.type_node(), cx.lifecycle.gates(), cx.clock().wall().into());
    let track = |live: Option<&dyn Object>, new: &mut dyn Object| {
        ownership.track(live, new, &options.manager);
        Ok(())
    };
    let in_registry = target.request_cx(cx, &request, options.dry_run);
    let hooks = Hooks { admission: &admission, track: Some(&track) };
    let written = bounded(target.resource.create(&in_registry, object, &hooks)).await?;
    respond::stored(&target.rendering(cx, &request)?, StatusCode::CREATED, &written.item)
}
