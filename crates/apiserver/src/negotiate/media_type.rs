//! The forms in which objects travel.

use http::HeaderValue;

/// A form of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Enveloped protobuf.
    Protobuf,
}

impl MediaType {
    /// The order in which wildcards choose and errors list them.
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// Its name.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// The part of its name behind the slash.
    pub(crate) fn subtype(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Protobuf => "vnd.kubernetes.protobuf",
        }
    }
}
