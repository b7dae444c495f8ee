//! A request as it is matched: what has to be looked up for it is looked up once, however many ask.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use api_machinery::labels::Selector;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;

use crate::{Attributes, Context, Operation, Served};

/// A request with its objects.
pub struct Subject<'a> {
    pub(super) cx: &'a Context,
    pub(super) attributes: &'a Attributes,
    object: Option<&'a dyn Object>,
    old: Option<&'a dyn Object>,
    known: &'a Known,
}

/// What was looked up for a request. It outlives changes of the request's object.
#[derive(Default)]
pub struct Known {
    namespace: tokio::sync::OnceCell<Result<Arc<Namespace>, ApiError>>,
    equivalents: OnceLock<Vec<Arc<Served>>>,
}

impl Known {
    /// The namespace of a request, from the cache, or from the store where that does not know it.
    ///
    /// # Errors
    /// 404 or 500.
    pub async fn namespace(&self, cx: &Context, name: &str) -> Result<Arc<Namespace>, ApiError> {
        let found = self.namespace.get_or_init(|| async {
            let found = cx.lookup.namespace(name).await;
            found.map_err(|error| if error.is_not_found() { error } else { ApiError::internal(error) })
        });
        found.await.clone()
    }
}

impl<'a> Subject<'a> {
    /// A request with its objects as they are now.
    #[must_use]
    pub fn new(
        cx: &'a Context,
        attributes: &'a Attributes,
        object: Option<&'a dyn Object>,
        old: Option<&'a dyn Object>,
        known: &'a Known,
    ) -> Self {
        Self { cx, attributes, object, old, known }
    }

    /// Where else the resource is served.
    pub(super) fn equivalents(&self) -> &[Arc<Served>] {
        let (versions, subresource) = (&self.cx.versions, &self.attributes.subresource);
        let find = || versions.equivalents(self.attributes.place(), subresource).into_iter().map(Arc::new).collect();
        self.known.equivalents.get_or_init(find)
    }

    /// Whether the new or the old object has the labels. What has no metadata has none of any selector but the empty one.
    pub(super) fn has_labels(&self, selector: &Selector) -> bool {
        let fits = |object: Option<&dyn Object>| object.is_some_and(|own| selector.matches(&own.meta().labels));
        selector.is_everything() || fits(self.object) || fits(self.old)
    }

    /// Whether the namespace has the labels.
    pub(super) async fn is_in_namespace(&self, selector: &Selector) -> Result<bool, ApiError> {
        let attributes = self.attributes;
        if attributes.namespace.is_empty() {
            return Ok(true);
        }
        // A namespace that is written is judged by what it is to become.
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if let Some(object) = self.object.filter(|_| writes && attributes.is("", "namespaces")) {
            return Ok(selector.matches(&object.meta().labels));
        }
        let namespace = self.known.namespace(self.cx, &attributes.namespace).await?;
        let labels: &BTreeMap<String, String> = &namespace.metadata.labels;
        Ok(selector.matches(labels))
    }
}
