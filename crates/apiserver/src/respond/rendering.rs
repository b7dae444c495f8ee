//! How objects of a resource are to be shown to a client.

use api_machinery::status::ApiError;
use api_machinery::time::Time;
use kinds::rules::Rules;

use crate::negotiate::{Choice, Preferences};
use crate::request::IncludeObject;

/// What is needed to show objects of a resource.
pub(crate) struct Rendering<'a> {
    pub(crate) preferences: &'a Preferences,
    pub(crate) choice: Choice,
    pub(crate) rules: &'a dyn Rules,
    pub(crate) include: IncludeObject,
    pub(crate) now: Time,
    /// The kind of lists.
    pub(crate) list_kind: String,
}

impl Rendering<'_> {
    pub(crate) fn api_version(&self) -> String {
        let info = self.rules.info();
        if info.group.is_empty() { info.version.to_owned() } else { format!("{}/{}", info.group, info.version) }
    }

    /// The name that texts about the wrong projection print for a type.
    pub(super) fn type_name(&self, kind: &str) -> String {
        if self.is_custom() {
            let list = if kind == self.list_kind { "List" } else { "" };
            return format!("*unstructured.Unstructured{list}");
        }
        let info = self.rules.info();
        let group = info.storage.as_ref().map_or(info.group, |storage| storage.group);
        let group = group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        format!("*{group}.{kind}")
    }

    /// Whether it is a kind that came at run time, whose objects are free-form to upstream.
    pub(super) fn is_custom(&self) -> bool {
        let info = self.rules.info();
        kinds::find(info.group, info.version, info.resource).is_none()
    }

    /// What is told to who wants the metadata of a list of what is none.
    pub(super) fn refuse_list_form(&self) -> ApiError {
        ApiError::not_acceptable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            self.type_name(self.rules.info().kind)
        ))
    }
}
