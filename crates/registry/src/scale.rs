//! The `scale` subresource: the wanted number of replicas of a kind that has one.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::autoscaling_v1::{Scale, ScaleSpec, ScaleStatus};
use kinds::rules::Endpoint;
use watch_cache::Stored;

use crate::context::{Change, CreateWhenAbsent, Hooks, RequestCx, RulesRef};
use crate::resource::Resource;

/// What changes are shown as the wanted replicas of an object that does not say, as upstream does.
const UNSAID: i32 = i32::MIN;

/// A change of the scale, as a change of the object that has it.
struct ScaleChange<'a> {
    rules: &'a RulesRef,
    change: &'a dyn Change,
}

impl Change for ScaleChange<'_> {
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        let live = live.ok_or_else(|| ApiError::internal("a scale needs an object"))?;
        let scale = self.rules.scale(live).ok_or_else(ApiError::unknown_resource)?;
        let replicas = scale.spec_replicas.clone();
        let mut shown = shown(live, replicas.clone().unwrap_or(UNSAID), scale);
        shown.metadata.managed_fields.clone_from(&live.meta().managed_fields);
        let wanted = self.change.apply(Some(&shown))?;
        let wanted = wanted.downcast_ref::<Scale>().ok_or_else(|| ApiError::bad_request("expected a Scale"))?;
        if let (Err(path), UNSAID) = (replicas, wanted.spec.replicas) {
            return Err(ApiError::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
        }
        check(wanted)?;
        let mut object = live.clone_object();
        // Pinned where the client pinned it; the update checks it.
        if !matches!(wanted.metadata.resource_version.as_str(), "" | "0") {
            object.meta_mut().resource_version = wanted.metadata.resource_version.clone();
        }
        if !wanted.metadata.uid.is_empty() {
            object.meta_mut().uid = wanted.metadata.uid.clone();
        }
        object.meta_mut().managed_fields.clone_from(&wanted.metadata.managed_fields);
        self.rules.set_replicas(&mut *object, wanted.spec.replicas);
        Ok(object)
    }

    fn creates(&self) -> CreateWhenAbsent {
        CreateWhenAbsent::Never
    }
}

impl Resource {
    /// The scale of an object.
    ///
    /// # Errors
    /// When there is no such object, its kind has no scale, or it does not say how many replicas it wants.
    pub async fn scale(&self, cx: &RequestCx, name: &str) -> Result<Scale, ApiError> {
        let item = self.get(cx, name, "").await?;
        scale_of(&self.rules, item.object())
    }

    /// Changes the scale of an object; `change` works on `autoscaling/v1` scales. Hooks see the object itself. The change
    /// keeps the record of managers: the scale that it sees and makes carries the object's.
    ///
    /// # Errors
    /// Those of an update.
    pub async fn update_scale(
        &self,
        cx: &RequestCx,
        name: &str,
        change: &dyn Change,
        hooks: &Hooks<'_>,
    ) -> Result<Scale, ApiError> {
        let change = ScaleChange { rules: &self.rules, change };
        let written = self.update(cx, name, Endpoint::Main, &change, hooks).await?;
        let item: Arc<Stored> = written.item;
        scale_of(&self.rules, item.object())
    }
}

fn scale_of(rules: &RulesRef, object: &dyn Object) -> Result<Scale, ApiError> {
    let scale = rules.scale(object).ok_or_else(ApiError::unknown_resource)?;
    let missing = |path: &String| ApiError::internal(format!("the spec replicas field {path:?} does not exist"));
    let replicas = *scale.spec_replicas.as_ref().map_err(missing)?;
    Ok(shown(object, replicas, scale))
}

fn shown(object: &dyn Object, replicas: i32, scale: kinds::rules::Scale) -> Scale {
    let mut shown = Scale {
        spec: ScaleSpec { replicas },
        status: ScaleStatus { replicas: scale.status_replicas, selector: scale.selector },
        ..Scale::default()
    };
    let meta = object.meta();
    shown.metadata.name = meta.name.clone();
    shown.metadata.namespace = meta.namespace.clone();
    shown.metadata.uid = meta.uid.clone();
    shown.metadata.resource_version = meta.resource_version.clone();
    shown.metadata.creation_timestamp = meta.creation_timestamp;
    shown
}

fn check(scale: &Scale) -> Result<(), ApiError> {
    if scale.spec.replicas >= 0 {
        return Ok(());
    }
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("replicas");
    errors.push(path.invalid(scale.spec.replicas, "must be greater than or equal to 0"));
    Err(ApiError::invalid(&GroupKind::new("autoscaling", "Scale"), &scale.metadata.name, &errors))
}
