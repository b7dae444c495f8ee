//! Why a request goes no further.

use api_machinery::status::ApiError;
use component_base::serving::Response;

/// Why a request goes no further.
pub(super) enum Refusal {
    /// As a `Status`.
    Error(ApiError),
    /// As it is.
    Plain(Box<Response>),
}

impl Refusal {
    /// The HTTP status.
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Error(error) => error.code,
            Self::Plain(response) => response.status().as_u16(),
        }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl From<Response> for Refusal {
    fn from(response: Response) -> Self {
        Self::Plain(Box::new(response))
    }
}
