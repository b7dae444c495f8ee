//! The `scale` subresource: the replicas of a kind, whatever kind it is.

use std::sync::Arc;

use api_machinery::field_path::Path;
use api_machinery::gvk::GroupKind;
use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::autoscaling_v1::{Scale, ScaleSpec, ScaleStatus};
use component_base::serving::Response;
use http::StatusCode;
use kinds::rules::Endpoint;
use registry::{Change, CreateWhenAbsent};

use super::Target;
use super::admitting::Admitting;
use super::change::{self, Record};
use super::incoming;
use super::ownership::Ownership;
use super::patch_body::PatchBody;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{PatchType, patch_type};
use crate::request::{PatchKind, WriteOptions};
use crate::respond;

pub(super) async fn get(cx: &Arc<ApiCx>, request: &Request<Authorized>, target: &Target) -> Result<Response, ApiError> {
    let version = request.query().text("resourceVersion");
    let found = target.resource.get(&target.request_cx(cx, request, false), target.name()?, &version).await?;
    respond::object(request.wish(), StatusCode::OK, &scale_of(target, found.object())?)
}

pub(super) async fn update(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("UpdateOptions", request.query(), request.user_agent())?;
    let mut wanted: Scale = request.decode().await?;
    incoming::settle_namespace(target, &mut wanted.metadata)?;
    incoming::check_name(target, &wanted.metadata)?;
    write(cx, &request, target, &options, |_| Ok(wanted.clone())).await
}

pub(super) async fn patch(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let kind = patch_type(request.headers(), target.is_custom())?;
    if kind == PatchType::Apply {
        return Err(ApiError::unsupported_media_type(
            "server-side apply of the scale subresource is not supported by this server; use a merge patch",
        ));
    }
    let body = request.read_body().await?;
    let options = WriteOptions::of_patch(PatchKind::Other, request.query(), request.user_agent())?;
    let patch = PatchBody::read(kind, &body, options.strictness, request.warnings())?;
    write(cx, &request, target, &options, |live| {
        use api_machinery::reflect::Reflect as _;
        let node = schema::TypeNode::of_struct(live.struct_type());
        let patched = patch.apply((live as &dyn Object).to_value(), node)?;
        let mut wanted: Scale =
            api_machinery::object::from_value(&patched).map_err(|error| ApiError::bad_request(error.to_string()))?;
        incoming::settle_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        Ok(wanted)
    })
    .await
}

async fn write<F>(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
    make: F,
) -> Result<Response, ApiError>
where
    F: Fn(&Scale) -> Result<Scale, ApiError> + Send + Sync,
{
    let admission = Admitting::new(cx, request, target, options.dry_run);
    let ownership = Ownership::new(target, target.type_node(), cx.clock().wall().into());
    let track = |live: &dyn Object, new: &mut dyn Object| ownership.track(live, new, &options.manager);
    let in_registry = target.request_cx(cx, request, options.dry_run);
    let scaling = Scaling { target, make };
    let endpoint = Endpoint::Other("scale");
    let written =
        change::update(target, &in_registry, endpoint, &scaling, &admission, Record::Tracked(&track)).await?;
    request.warnings().extend(written.warnings);
    respond::object(request.wish(), StatusCode::OK, &scale_of(target, written.item.object())?)
}

/// Sets the replicas of the live object.
struct Scaling<'a, F> {
    target: &'a Target,
    make: F,
}

impl<F> Change for Scaling<'_, F>
where
    F: Fn(&Scale) -> Result<Scale, ApiError> + Send + Sync,
{
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        let target = self.target;
        let live = live.ok_or_else(|| ApiError::not_found(target.resource.group_resource(), target.name().unwrap_or_default()))?;
        let wanted = (self.make)(&scale_of(target, live)?)?;
        if wanted.spec.replicas < 0 {
            let mut errors = api_machinery::field_path::ErrorList::default();
            let detail = "must be greater than or equal to 0";
            errors.push(Path::new("spec").child("replicas").invalid(i64::from(wanted.spec.replicas), detail));
            return Err(ApiError::invalid(&GroupKind::new("autoscaling", "Scale"), &wanted.metadata.name, &errors));
        }
        let mut object = live.clone_object();
        target.rules().set_replicas(&mut *object, wanted.spec.replicas);
        if !wanted.metadata.resource_version.is_empty() {
            object.meta_mut().resource_version = wanted.metadata.resource_version;
        }
        if !wanted.metadata.uid.is_empty() {
            object.meta_mut().uid = wanted.metadata.uid;
        }
        Ok(object)
    }

    fn creates(&self) -> CreateWhenAbsent {
        CreateWhenAbsent::Never
    }
}

/// An object's scale.
fn scale_of(target: &Target, object: &dyn Object) -> Result<Scale, ApiError> {
    let seen = target.rules().scale(object);
    let seen = seen.ok_or_else(|| ApiError::internal("the kind has no replicas"))?;
    let meta = object.meta();
    Ok(Scale {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            creation_timestamp: meta.creation_timestamp,
            ..ObjectMeta::default()
        },
        spec: ScaleSpec { replicas: seen.spec_replicas },
        status: ScaleStatus { replicas: seen.status_replicas, selector: seen.selector },
    })
}
