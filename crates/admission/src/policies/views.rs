//! A request's objects, in the versions that policies want them in, and what else expressions see of it.

use std::sync::Arc;

use admission_cel::{Answers, Facts};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use cel::Value;

use crate::expressions::{lateness, request};
use crate::matching::{Known, Matched};
use crate::{Attributes, Context, Served};

/// The objects as another version has them.
struct View {
    served: Arc<Served>,
    object: Option<Box<dyn Object>>,
    old: Option<Box<dyn Object>>,
}

/// What is looked up and converted for a request once.
pub(crate) struct Views<'a> {
    attributes: &'a Attributes,
    object: Option<&'a dyn Object>,
    old: Option<&'a dyn Object>,
    namespace: Option<Arc<Namespace>>,
    converted: Vec<View>,
    /// Tells whether nobody waits any more.
    is_late: Box<dyn Fn() -> bool + Send + Sync>,
}

impl<'a> Views<'a> {
    /// The objects as they were sent, and the namespace: none for what is in no namespace, and for namespaces.
    ///
    /// # Errors
    /// 404 or 500, where the namespace cannot be found.
    pub(crate) async fn new(
        cx: &Context,
        attributes: &'a Attributes,
        known: &Known,
        object: Option<&'a dyn Object>,
        old: Option<&'a dyn Object>,
    ) -> Result<Self, ApiError> {
        let is_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        let namespace = if attributes.namespace.is_empty() || is_namespace {
            None
        } else {
            Some(known.namespace(cx, &attributes.namespace).await?)
        };
        let is_late = Box::new(lateness(attributes));
        Ok(Self { attributes, object, old, namespace, converted: Vec::new(), is_late })
    }

    /// Converts the objects to the version that was matched, where that is not done yet.
    ///
    /// # Errors
    /// When they cannot be.
    pub(crate) async fn show(&mut self, cx: &Context, matched: &Matched) -> Result<(), ApiError> {
        let Matched::As(served) = matched else { return Ok(()) };
        if self.converted.iter().any(|own| own.served == *served) {
            return Ok(());
        }
        let from = self.attributes.place();
        let mut shown = [None, None];
        for (place, own) in shown.iter_mut().zip([self.object, self.old]) {
            if let Some(own) = own {
                *place = Some(cx.versions.convert(own, from, served).await?);
            }
        }
        let [object, old] = shown;
        self.converted.push(View { served: Arc::clone(served), object, old });
        Ok(())
    }

    /// What expressions of a policy see that matched the request so.
    pub(crate) fn facts<'s>(&'s self, matched: &'s Matched, answers: &Arc<Answers>) -> Facts<'s> {
        let attributes = self.attributes;
        let (request, object, old) = match matched {
            Matched::AsRequested => (request(attributes, &attributes.kind, attributes.place()), self.object, self.old),
            Matched::As(served) => {
                let view = self.converted.iter().find(|own| own.served == *served);
                let (object, old) = view.map_or((None, None), |own| (own.object.as_deref(), own.old.as_deref()));
                (request(attributes, &served.kind, served.place()), object, old)
            }
        };
        let namespace = self.namespace.as_deref();
        Facts {
            object: object.map_or(Value::Null, Value::of_object),
            old_object: old.map_or(Value::Null, Value::of_object),
            request,
            namespace: namespace.map_or(Value::Null, |own| Value::of_object(own)),
            answers: Some(Arc::clone(answers)),
            interrupted: Some(&*self.is_late),
        }
    }
}
