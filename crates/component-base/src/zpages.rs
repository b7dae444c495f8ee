//! `/statusz` and `/flagz`: what a component is and how it was started, for people, and as objects of `config.k8s.io`
//! for who asks for them by all three parameters (KEP-4827, KEP-4828).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use api_machinery::{cbor, yaml};
use base::{SharedClock, SharedRng};
use feature_gates::shared::CBOR;
use feature_gates::{Feature, Gates};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::Lifecycle;
use crate::debugging::escaped;
use crate::flags::Versions;
use crate::serving::{Response, full, text};
use crate::version;

/// There is `/flagz`.
pub const FLAGZ: Feature = Feature::named("ComponentFlagz");
/// There is `/statusz`.
pub const STATUSZ: Feature = Feature::named("ComponentStatusz");
/// The gates of the pages, which every component that has the pages can switch.
pub const GATES: &[Feature] = &[FLAGZ, STATUSZ];

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.\n";
/// What may stand between a name and its value. Upstream varies it on purpose, so that nobody parses the pages.
const SEPARATORS: [&str; 4] = [":", ": ", "=", " "];
const GROUP: &str = "config.k8s.io";
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// One of the two pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Flagz,
    Statusz,
}

impl Page {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/flagz" => Some(Self::Flagz),
            "/statusz" => Some(Self::Statusz),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Flagz => "flagz",
            Self::Statusz => "statusz",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Flagz => "Flagz",
            Self::Statusz => "Statusz",
        }
    }
}

/// The pages of a component.
pub struct Zpages {
    component: &'static str,
    /// What the component serves besides, for people to try.
    paths: Vec<String>,
    flags: BTreeMap<String, String>,
    gates: Gates,
    versions: Versions,
    started: SystemTime,
    clock: SharedClock,
    rng: SharedRng,
    /// Made once, as upstream's.
    flags_text: String,
}

impl Zpages {
    /// The paths of the pages that the gates let there be.
    #[must_use]
    pub fn served(gates: &Gates) -> Vec<&'static str> {
        let pages = [("/flagz", FLAGZ), ("/statusz", STATUSZ)];
        pages.into_iter().filter(|(_, gate)| gates.enabled(*gate)).map(|(path, _)| path).collect()
    }

    /// The pages of a component which serves these `paths` besides.
    #[must_use]
    pub fn new(component: &'static str, lifecycle: &Lifecycle, paths: &[&str]) -> Self {
        let rng = lifecycle.rng();
        let mut flags_text = heading(component, Page::Flagz);
        let separator = separator(rng);
        for (name, value) in lifecycle.command_line() {
            let _ = writeln!(flags_text, "{name}{separator}{}", escaped(value));
        }
        let mut paths: Vec<String> =
            paths.iter().copied().chain(Self::served(lifecycle.gates())).map(str::to_owned).collect();
        paths.sort_unstable();
        paths.dedup();
        Self {
            component,
            paths,
            flags: lifecycle.command_line().clone(),
            gates: lifecycle.gates().clone(),
            versions: lifecycle.versions(),
            started: lifecycle.started(),
            clock: SharedClock::clone(lifecycle.clock()),
            rng: SharedRng::clone(rng),
            flags_text,
        }
    }

    /// The answer to a request for one of the pages; nothing for other paths, and where the gate is off.
    #[must_use]
    pub fn answer(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let page = Page::of(path).filter(|_| Self::served(&self.gates).contains(&path))?;
        Some(match self.wanted(page, headers) {
            Some(Form::Text) => text(StatusCode::OK, self.text(page)),
            Some(Form::Object { media, version }) => self.object(page, media, version),
            None => self.not_acceptable(),
        })
    }

    fn text(&self, page: Page) -> String {
        match page {
            Page::Flagz => self.flags_text.clone(),
            Page::Statusz => self.status_text(),
        }
    }

    fn status_text(&self) -> String {
        let seconds = self.uptime().as_secs();
        let facts = [
            ("Started", as_unix_date(self.started)),
            ("Up", format!("{} hr {:02} min {:02} sec", seconds / 3600, seconds / 60 % 60, seconds % 60)),
            ("Go version", go_version()),
            ("Binary version", binary_version().to_owned()),
            ("Emulation version", self.versions.emulated.to_string()),
            ("Paths", self.paths.join(" ")),
        ];
        let mut page = heading(self.component, Page::Statusz);
        let separator = separator(&self.rng);
        for (name, value) in facts {
            let _ = writeln!(page, "{name}{separator}{}", escaped(&value));
        }
        page
    }

    fn uptime(&self) -> Duration {
        self.clock.wall().duration_since(self.started).unwrap_or_default()
    }

    fn object(&self, page: Page, media: Media, version: &str) -> Response {
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{{\"name\":{}}}",
            json!(page.kind()),
            json!(format!("{GROUP}/{version}")),
            json!(self.component)
        );
        let rest = match page {
            Page::Flagz => format!(",\"flags\":{}}}\n", json!(self.flags)),
            Page::Statusz => format!(
                ",\"startTime\":{},\"uptimeSeconds\":{},\"goVersion\":{},\"binaryVersion\":{},\"emulationVersion\":{},\
                 \"paths\":{}}}\n",
                json!(Time::from(self.started).to_string()),
                self.uptime().as_secs(),
                json!(go_version()),
                json!(binary_version()),
                json!(self.versions.emulated.to_string()),
                json!(self.paths),
            ),
        };
        let mut response = media.response(head + &rest);
        if version != VERSIONS[0] {
            let warning = format!(
                "299 - \"This version of the {} endpoint is deprecated. Please use a newer version.\"",
                page.name()
            );
            if let Ok(warning) = HeaderValue::try_from(warning) {
                response.headers_mut().insert(header::WARNING, warning);
            }
        }
        response
    }

    /// The form that a client would like best, of those that there are.
    fn wanted(&self, page: Page, headers: &HeaderMap) -> Option<Form> {
        let accept: Vec<&str> =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let accept = accept.join(",");
        if accept.trim().is_empty() {
            return Some(Form::Text);
        }
        let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
        clauses.sort_by(|one, other| other.quality.total_cmp(&one.quality));
        clauses.iter().find_map(|clause| clause.form(page, self.gates.enabled(CBOR)))
    }

    fn not_acceptable(&self) -> Response {
        let forms = Media::among(self.gates.enabled(CBOR)).map(Media::name).collect::<Vec<_>>().join(", ");
        let message = format!("only the following media types are accepted: {forms}, text/plain");
        let status = format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":{},\
             \"reason\":\"NotAcceptable\",\"code\":406}}\n",
            json!(message)
        );
        let mut response = Media::Json.response(status);
        *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
        response
    }
}

/// What a page is sent as.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Object { media: Media, version: &'static str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Yaml,
    Cbor,
}

impl Media {
    fn among(with_cbor: bool) -> impl Iterator<Item = Self> {
        [Self::Json, Self::Yaml, Self::Cbor].into_iter().filter(move |media| with_cbor || *media != Self::Cbor)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Cbor => "application/cbor",
        }
    }

    /// A document, given as JSON, in this form.
    fn response(self, document: String) -> Response {
        // What this module has written parses.
        let value = || serde_json::from_str(&document).unwrap_or_default();
        let content = match self {
            Self::Json => document.into_bytes(),
            Self::Yaml => yaml::to_yaml(&value()).into_bytes(),
            Self::Cbor => cbor::encode_value(&value()),
        };
        let mut response = Response::new(full(content));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.name()));
        response
    }
}

/// One clause of the `Accept` header.
struct Clause<'a> {
    media: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(name, _)| *name == "q").and_then(|(_, value)| value.parse().ok());
        Self { media, quality: quality.unwrap_or(1.0), parameters }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn form(&self, page: Page, with_cbor: bool) -> Option<Form> {
        if matches!(self.media, "text/plain" | "text/*" | "*/*") {
            return Some(Form::Text);
        }
        let media = Media::among(with_cbor).find(|media| media.name() == self.media)?;
        let version = VERSIONS.into_iter().find(|version| self.parameter("v") == Some(version))?;
        let fits = self.parameter("g") == Some(GROUP) && self.parameter("as") == Some(page.kind());
        fits.then_some(Form::Object { media, version })
    }
}

fn heading(component: &str, page: Page) -> String {
    format!("\n{component} {}\n{WARNING}\n", page.name())
}

fn separator(rng: &SharedRng) -> &'static str {
    let chance = usize::try_from(rng.below(SEPARATORS.len() as u64)).unwrap_or_default();
    SEPARATORS.get(chance).copied().unwrap_or(SEPARATORS[0])
}

/// What stands where upstream tells of Go: the compiler of this build.
fn go_version() -> String {
    let facts = version::facts();
    facts.into_iter().find(|(name, _)| *name == "goVersion").map(|(_, value)| value).unwrap_or_default()
}

fn binary_version() -> &'static str {
    version::git_version().trim_start_matches('v')
}

/// As `date` prints a time: `Wed Oct 16 21:03:43 UTC 2024`.
fn as_unix_date(time: SystemTime) -> String {
    let instant = jiff::Timestamp::try_from(time).unwrap_or_default();
    instant.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()
}

#[cfg(test)]
mod tests;
