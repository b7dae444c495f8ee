//! Label and field selectors of a list or watch, made into a part of the resource to look at and a filter.

use std::borrow::Cow;
use std::sync::Arc;

use api_machinery::fields::FieldSelector;
use api_machinery::labels::Selector;
use api_machinery::meta::ListOptions;
use api_machinery::names;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use kinds::rules::Rules;
use watch_cache::{Matcher, Scope, Stored};

use crate::resource::Resource;
use crate::shards::Shards;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// What a list or a watch is about.
pub(crate) struct Selection {
    /// The part of the resource.
    pub(crate) scope: Scope,
    /// The keys that the scope stands for where there is no index: a list prefix, or a key.
    pub(crate) list_prefix: String,
    /// The filter; nothing where everything in the scope is wanted.
    pub(crate) matcher: Option<Matcher>,
}

impl Selection {
    /// Looks at the object only where it has to: others may be at rest.
    pub(crate) fn matches(&self, item: &Stored) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher(item.object()))
    }
}

impl Resource {
    /// Reads the selectors of a list or watch in `namespace`.
    pub(crate) fn selection(&self, namespace: &str, options: &ListOptions) -> Result<Selection, ApiError> {
        let labels =
            Selector::parse(&options.label_selector).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields =
            FieldSelector::parse(&options.field_selector).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = fields.transform(|field, value| self.field_label(field, value))?;
        let (scope, list_prefix) = self.scope(namespace, &fields);
        let shards = match options.shard_selector.as_str() {
            "" => None,
            selector => {
                Some(Shards::parse(selector).ok_or_else(|| ApiError::internal("a shard selector is not normal"))?)
            }
        };
        let everything = labels.is_everything() && fields.is_everything();
        let matcher = (!everything || shards.is_some()).then(|| self.matcher(labels, fields, shards));
        Ok(Selection { scope, list_prefix, matcher })
    }

    /// The field's own name, where the kind can be selected by it.
    fn field_label(&self, field: &str, value: &str) -> Result<(String, String), ApiError> {
        let own = self.info().field_selectors;
        // An old name of it.
        let field = if field == "spec.host" && own.contains(&"spec.nodeName") { "spec.nodeName" } else { field };
        if matches!(field, NAME | NAMESPACE) || own.contains(&field) {
            return Ok((field.to_owned(), value.to_owned()));
        }
        Err(ApiError::bad_request(self.rules.unknown_field(field)))
    }

    fn scope(&self, namespace: &str, fields: &FieldSelector) -> (Scope, String) {
        let legal = |value: &&str| !value.is_empty() && names::path_segment_name(value).is_empty();
        let namespaced = self.info().namespaced;
        let pinned = fields.required_value(NAMESPACE).filter(legal).filter(|_| namespaced);
        let namespace = if namespace.is_empty() { pinned.unwrap_or_default() } else { namespace };
        if let Some(name) = fields.required_value(NAME).filter(legal).filter(|_| !namespaced || !namespace.is_empty()) {
            let key = if namespaced { format!("{namespace}/{name}") } else { name.to_owned() };
            return (Scope::Object(key.as_str().into()), key);
        }
        // Before the indexes, which know no namespaces.
        if namespaced && !namespace.is_empty() {
            return (Scope::Namespace(namespace.into()), format!("{namespace}/"));
        }
        for (at, index) in self.indexes.iter().enumerate() {
            if let Some(value) = fields.required_value(index.field).filter(|value| !value.is_empty()) {
                return (Scope::Indexed(at, value.into()), String::new());
            }
        }
        (Scope::All, String::new())
    }

    fn matcher(&self, labels: Selector, fields: FieldSelector, shards: Option<Shards>) -> Matcher {
        let (rules, conversion) = (self.rules.clone(), self.conversion.clone());
        Arc::new(move |object: &dyn Object| {
            if shards.as_ref().is_some_and(|shards| !shards.have(object.meta())) {
                return false;
            }
            if !labels.matches(&object.meta().labels) {
                return false;
            }
            if fields.is_everything() {
                return true;
            }
            let converted = conversion.as_ref().and_then(|conversion| conversion.for_selection(object));
            let object = converted.as_deref().unwrap_or(object);
            fields.matches(|field| field_value(&*rules, object, field))
        })
    }
}

fn field_value<'a>(rules: &dyn Rules, object: &'a dyn Object, field: &str) -> Cow<'a, str> {
    match field {
        NAME => Cow::Borrowed(&object.meta().name),
        NAMESPACE => Cow::Borrowed(&object.meta().namespace),
        other => Cow::Owned(rules.field(object, other).unwrap_or_default()),
    }
}
