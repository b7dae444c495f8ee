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
    /// CBOR.
    Cbor,
}

/// Which forms the server speaks: feature gate `CBORServingAndStorage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Forms {
    /// JSON, YAML and protobuf.
    #[default]
    Usual,
    /// CBOR, too.
    WithCbor,
}

impl Forms {
    /// The order in which wildcards choose and errors list them.
    pub(crate) fn media_types(self) -> impl Iterator<Item = MediaType> {
        const ALL: [MediaType; 4] = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf, MediaType::Cbor];
        ALL.into_iter().filter(move |media| self == Self::WithCbor || *media != MediaType::Cbor)
    }
}

impl MediaType {
    /// Its name.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Cbor => "application/cbor",
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
            Self::Cbor => "cbor",
        }
    }
}
