//! What the rows of a table are to carry: the parameter `includeObject`.

use api_machinery::status::ApiError;

use super::query::Query;

/// What each row carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the parameter.
    ///
    /// # Errors
    /// 400 for other words.
    pub(crate) fn read(query: &Query) -> Result<Self, ApiError> {
        match query.first("includeObject").unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}
