//! What the rules of a few kinds have to know of what is around an object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use kinds::rules::RuleContext;

use crate::context::RequestCx;
use crate::resource::{Resource, Shared};

impl Resource {
    /// What rules may know of a request about an object.
    pub(crate) async fn rules_about<'a>(&self, cx: &'a RequestCx, object: &dyn Object) -> Cow<'a, RuleContext> {
        if !self.rules.reads_namespace(object) {
            return Cow::Borrowed(&cx.rules);
        }
        let labels = self.shared.namespace_labels(&object.meta().namespace).await;
        let namespace_labels = Some(labels.map_err(|error| error.message));
        Cow::Owned(RuleContext { namespace_labels, ..cx.rules.clone() })
    }
}

impl Shared {
    /// The labels of a namespace as the store has them.
    async fn namespace_labels(&self, name: &str) -> Result<BTreeMap<String, String>, ApiError> {
        let registry = self.registry.upgrade().ok_or_else(ApiError::unknown_resource)?;
        let [group, version, resource] = Namespace::TYPE.place();
        let namespaces = registry.resource(group, version, resource).ok_or_else(ApiError::unknown_resource)?;
        let cx = RequestCx { rules: self.rule_context(), namespace: String::new(), dry_run: false };
        Ok(namespaces.get(&cx, name, "").await?.object().meta().labels.clone())
    }
}
