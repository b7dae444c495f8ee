//! Webhooks and policies that files state beside those of the API (KEP-5793). They come before those, nobody removes them
//! through the API, and they are asked about the kinds of the API's own webhooks and policies, too.

use std::sync::Arc;

use api_machinery::object::Object;

use crate::lookup::typed;

/// What files state.
pub trait Manifests: Send + Sync {
    /// The objects of the files of a plugin as they are now, by kind and name: always those of one reading, which others
    /// replace as a whole.
    fn of_plugin(&self, plugin: &str) -> Arc<[Arc<dyn Object>]>;
}

/// There are no files.
pub struct NoManifests;

impl Manifests for NoManifests {
    fn of_plugin(&self, _: &str) -> Arc<[Arc<dyn Object>]> {
        Arc::from([])
    }
}

/// Those of a type.
pub(crate) fn of_type<T: Object>(objects: &[Arc<dyn Object>]) -> Vec<Arc<T>> {
    objects.iter().filter_map(|object| typed(Arc::clone(object))).collect()
}
