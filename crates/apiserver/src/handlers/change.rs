//! Writes through the registry, with everything that runs inside them.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use kinds::rules::Endpoint;
use registry::{Change, Hooks, RequestCx, Track, Written};

use super::Target;
use super::admitting::Admitting;
use super::bounded_write::{bounded, is_too_large};

/// Whether the record of managers is kept by the registry's hook or by the change itself.
#[derive(Clone, Copy)]
pub(super) enum Record<'a> {
    /// By this hook.
    Tracked(&'a Track<'a>),
    /// By the change: an apply.
    ByChange,
}

/// Forgets the record: the last resort for an object that is too large with it.
fn forget(_: &dyn Object, new: &mut dyn Object) -> Result<(), ApiError> {
    new.meta_mut().managed_fields.clear();
    Ok(())
}

/// Updates an object; once more without its record when it is too large for the store.
pub(super) async fn update(
    target: &Target,
    request: &RequestCx,
    endpoint: Endpoint,
    change: &dyn Change,
    admission: &Admitting<'_>,
    record: Record<'_>,
) -> Result<Written, ApiError> {
    let name = target.name()?;
    let run = |track| {
        let hooks = Hooks { admission, track };
        async move { target.resource.update(request, name, endpoint, change, &hooks).await }
    };
    bounded(async {
        match record {
            Record::ByChange => run(None).await,
            Record::Tracked(track) => match run(Some(track)).await {
                Err(error) if is_too_large(&error) => run(Some(&forget)).await,
                outcome => outcome,
            },
        }
    })
    .await
}

/// Creates an object; once more without its record when it is too large for the store.
pub(super) async fn create(
    target: &Target,
    request: &RequestCx,
    object: Box<dyn Object>,
    admission: &Admitting<'_>,
    track: &Track<'_>,
) -> Result<Written, ApiError> {
    let run = |object, track| {
        let hooks = Hooks { admission, track: Some(track) };
        async move { target.resource.create(request, object, &hooks).await }
    };
    bounded(async {
        match run(object.clone(), track).await {
            Err(error) if is_too_large(&error) => run(object, &forget).await,
            outcome => outcome,
        }
    })
    .await
}
