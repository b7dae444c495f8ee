//! The `Accept` header: clauses by preference, projections as parameters.
//! Concept: <https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources>

use api_machinery::status::ApiError;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};

use super::Forms;
use super::media_type::MediaType;
use crate::request::Query;

/// What an object is turned into before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Target {
    /// Nothing else.
    #[default]
    Object,
    /// A table, in this version of meta.k8s.io.
    Table(&'static str),
    /// Its metadata.
    Metadata(&'static str),
    /// The metadata of a list's items.
    MetadataList(&'static str),
}

/// What an endpoint can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Whether it has a protobuf form.
    pub protobuf: bool,
    /// Whether tables and metadata can be asked for.
    pub projections: bool,
    /// Whether it is a stream.
    pub stream: bool,
}

impl Offer {
    /// A resource; custom kinds have no protobuf form.
    #[must_use]
    pub(crate) const fn resource(is_custom: bool) -> Self {
        Self { protobuf: !is_custom, projections: true, stream: false }
    }

    /// Documents that are what they are.
    pub(crate) const PLAIN: Self = Self { protobuf: true, projections: false, stream: false };

    /// The same as a stream.
    #[must_use]
    pub(crate) const fn as_stream(self) -> Self {
        Self { stream: true, ..self }
    }

    fn media_types(self, forms: Forms) -> impl Iterator<Item = MediaType> {
        // Metadata of custom kinds does have a protobuf form; the projection decides later.
        forms.media_types().filter(move |media| !(self.stream && *media == MediaType::Yaml))
    }

    fn refusal(self, forms: Forms) -> ApiError {
        let name = |media: MediaType| match (self.stream, media) {
            (false, _) => media.name().to_owned(),
            (true, MediaType::Cbor) => CBOR_SEQUENCE.to_owned(),
            (true, _) => format!("{};stream=watch", media.name()),
        };
        // Protobuf is named even where there is none of the object, as upstream names it for custom kinds.
        let names: Vec<String> = self.media_types(forms).map(name).collect();
        ApiError::not_acceptable(format!("only the following media types are accepted: {}", names.join(", ")))
    }
}

/// A stream of CBOR is of another type than one document.
pub(crate) const CBOR_SEQUENCE: &str = "application/cbor-seq";

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The form.
    pub media: MediaType,
    /// The projection.
    pub target: Target,
    /// Whether JSON is indented.
    pub pretty: bool,
}

/// What a client says it would like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preferences {
    accept: String,
    /// `?pretty`, or by the user agent; the header can ask for it as well.
    pretty: bool,
    /// Whether the client takes what is compressed.
    pub(crate) gzip: bool,
    /// Whether large answers are compressed for it.
    pub(crate) compresses: bool,
    /// What the server speaks.
    forms: Forms,
    /// Where the answer is noted, whatever its form.
    audit: audit::Context,
}

/// One clause of the header.
struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl Preferences {
    /// Reads headers and parameters.
    #[must_use]
    pub(crate) fn new(headers: &HeaderMap, query: &Query) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let browser = ["curl", "Wget", "Mozilla/5.0"].iter().any(|agent| text(USER_AGENT).starts_with(agent));
        let pretty = match query.first("pretty") {
            None | Some("") => browser,
            Some(value) => matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True"),
        };
        let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let encodings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let gzip = encodings.flat_map(|value| value.split(',')).any(|token| token.trim() == "gzip");
        Self {
            accept: accept.join(","),
            pretty,
            gzip,
            compresses: gzip,
            forms: Forms::Usual,
            audit: audit::Context::UNHEARD,
        }
    }

    /// Says where the answer is noted.
    pub(crate) fn note_in(&mut self, audit: audit::Context) {
        self.audit = audit;
    }

    /// Where the answer is noted.
    pub(crate) fn audit(&self) -> &audit::Context {
        &self.audit
    }

    /// The same of a server that speaks these forms.
    pub(crate) fn among(self, forms: Forms) -> Self {
        Self { forms, ..self }
    }

    /// What the server speaks, and reads.
    pub(crate) fn forms(&self) -> Forms {
        self.forms
    }

    /// The same of a server that compresses large answers only where `on`: feature gate `APIResponseCompression`.
    pub(crate) fn compressing(mut self, on: bool) -> Self {
        self.compresses = self.gzip && on;
        self
    }

    /// Chooses among what is offered.
    ///
    /// # Errors
    /// 406 when nothing fits.
    pub(crate) fn choose(&self, offer: Offer) -> Result<Choice, ApiError> {
        if self.accept.trim().is_empty() {
            return Ok(Choice { media: MediaType::Json, target: Target::Object, pretty: self.pretty });
        }
        for clause in clauses(&self.accept) {
            for media in offer.media_types(self.forms) {
                if let Some(target) = clause.accepts(media, offer) {
                    let pretty = self.pretty || clause.parameter("pretty") == Some("1");
                    return Ok(Choice { media, target, pretty });
                }
            }
        }
        Err(offer.refusal(self.forms))
    }

    /// The choice for an error: what can be had, else indented JSON.
    pub(crate) fn choose_for_error(&self) -> Choice {
        self.choose(Offer { protobuf: true, projections: true, stream: false })
            .map(|choice| Choice { target: Target::Object, ..choice })
            .unwrap_or(Choice { media: MediaType::Json, target: Target::Object, pretty: true })
    }

    /// The header, for endpoints that negotiate by themselves.
    #[must_use]
    pub(crate) fn accept(&self) -> &str {
        &self.accept
    }
}

/// The media type that a header asks for first, of those that there are; the first one where it asks for none.
pub(crate) fn preferred<'a>(accept: &str, offered: &[&'a str]) -> Option<&'a str> {
    if accept.trim().is_empty() {
        return offered.first().copied();
    }
    let fits = |clause: &Clause<'_>, name: &str| {
        let (main, sub) = name.split_once('/').unwrap_or_default();
        [(clause.main, main), (clause.sub, sub)].iter().all(|(wanted, own)| *wanted == "*" || wanted == own)
    };
    clauses(accept).iter().find_map(|clause| offered.iter().copied().find(|name| fits(clause, name)))
}

fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|one, other| {
        let wildcards = |clause: &Clause<'_>| (clause.main == "*", clause.sub == "*");
        other.quality.total_cmp(&one.quality).then(wildcards(one).cmp(&wildcards(other)))
    });
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next()?;
        let (main, sub) = if name == "*" { ("*", "*") } else { name.split_once('/')? };
        let parameters: Vec<_> =
            parts.filter_map(|part| part.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q");
        let quality = quality.map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0));
        Some(Self { main, sub, quality, parameters })
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// The projection that the clause asks for, if this form and the offer satisfy it.
    fn accepts(&self, media: MediaType, offer: Offer) -> Option<Target> {
        let fits = match (self.main, self.sub) {
            ("*", "*") => true,
            ("application", "*") => true,
            ("application", sub) => sub == media.subtype(),
            _ => false,
        };
        let sane_stream = self.parameter("stream").is_none_or(|value| value.is_empty() || value == "watch");
        let sane_version = self.parameter("sv").is_none_or(|value| value.is_empty() || value == "v1");
        if !fits || !sane_stream || !sane_version {
            return None;
        }
        let target = self.target(offer)?;
        match (&target, media) {
            (Target::Table(_), MediaType::Protobuf | MediaType::Cbor) => None,
            (Target::Object, MediaType::Protobuf) if !offer.protobuf => None,
            _ => Some(target),
        }
    }

    fn target(&self, offer: Offer) -> Option<Target> {
        let parameter = |name| self.parameter(name).unwrap_or_default();
        let (kind, group) = (parameter("as"), parameter("g"));
        if kind.is_empty() {
            return Some(Target::Object);
        }
        let version = match parameter("v") {
            "v1" => "v1",
            "v1beta1" => "v1beta1",
            _ => return None,
        };
        if !offer.projections || group != "meta.k8s.io" {
            return None;
        }
        match kind {
            "Table" => Some(Target::Table(version)),
            "PartialObjectMetadata" => Some(Target::Metadata(version)),
            "PartialObjectMetadataList" => Some(Target::MetadataList(version)),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;
