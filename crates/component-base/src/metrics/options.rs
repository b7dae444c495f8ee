//! The metrics flags: what is shown and which label values are.

use std::collections::{BTreeMap, BTreeSet};

use feature_gates::{BINARY, Gates, MinorVersion};

use super::Desc;
use super::desc::parse_minor;
use super::family::Allowed;
use super::native;
use crate::config_file;
use crate::flags::{Errors, Options};

/// What the metrics flags say.
#[derive(Debug, Clone, Default)]
pub struct MetricsOptions {
    /// Names that are not shown.
    pub disabled: BTreeSet<String>,
    /// The release whose hidden families are shown once more.
    pub show_hidden: Option<MinorVersion>,
    /// Allowed values by `metric,label`.
    pub allowed_labels: BTreeMap<String, BTreeSet<String>>,
    /// Whether histograms have native buckets beside the others.
    pub has_native_histograms: bool,
}

impl MetricsOptions {
    /// Reads the flags, adding what is wrong with them to `errors`.
    pub fn from_options(options: &Options, errors: &mut Errors) -> Self {
        let mut parsed = Self {
            disabled: options.strings("disabled-metrics").iter().cloned().collect(),
            show_hidden: show_hidden(options.string("show-hidden-metrics-for-version"), errors),
            ..Self::default()
        };
        for text in options.strings("allow-metric-labels") {
            if let Some(pairs) = errors.ok(parse_labels(text)) {
                parsed.allowed_labels.extend(pairs);
            }
        }
        let manifest = options.string("allow-metric-labels-manifest");
        if !manifest.is_empty() {
            parsed.read_manifest(manifest, errors);
        }
        parsed
    }

    /// As the gates of a component want it.
    #[must_use]
    pub fn obeying(self, gates: &Gates) -> Self {
        Self { has_native_histograms: gates.enabled(native::GATE), ..self }
    }

    fn read_manifest(&mut self, path: &str, errors: &mut Errors) {
        let Some(document) = errors.ok(config_file::load(std::path::Path::new(path))) else { return };
        let Some(map) = document.as_object() else {
            return errors.push(format!("{path}: allow-metric-labels-manifest is not a map"));
        };
        for (key, values) in map {
            match values.as_str() {
                Some(values) if key.contains(',') => {
                    self.allowed_labels.insert(key.clone(), split_values(values));
                }
                _ => errors.push(format!("{path}: invalid metric label entry {key:?}")),
            }
        }
    }

    /// The lists that concern a family.
    pub(super) fn allowed(&self, desc: &Desc) -> Allowed {
        let labels = desc.label_names.iter().enumerate();
        labels
            .filter_map(|(index, label)| {
                let values = self.allowed_labels.get(&format!("{},{label}", desc.name))?;
                Some((index, values.clone()))
            })
            .collect()
    }
}

/// Only the release before this one can be asked for.
fn show_hidden(text: &str, errors: &mut Errors) -> Option<MinorVersion> {
    if text.is_empty() {
        return None;
    }
    let previous = MinorVersion { minor: BINARY.minor - 1, ..BINARY };
    if parse_minor(text) == Some(previous) && text.split('.').count() == 2 {
        return Some(previous);
    }
    errors.push(format!(
        "--show-hidden-metrics-for-version must be omitted or have the value '{previous}'. Only the previous minor \
         version is allowed"
    ));
    None
}

/// `metric,label='a,b',metric,label=c`: keys are pairs, values may be quoted to hold commas.
pub(super) fn parse_labels(text: &str) -> Result<Vec<(String, BTreeSet<String>)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let bad = || format!("invalid allow-metric-labels entry {rest:?}: expected <metric>,<label>='<value>,...'");
        let (key, after) = rest.split_once('=').ok_or_else(bad)?;
        if key.split(',').filter(|part| !part.trim().is_empty()).count() != 2 {
            return Err(bad());
        }
        let (values, next) = match after.strip_prefix('\'') {
            Some(quoted) => {
                let (values, next) = quoted.split_once('\'').ok_or_else(bad)?;
                (values, next.trim_start_matches(','))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        pairs.push((key.trim().to_owned(), split_values(values)));
        rest = next;
    }
    Ok(pairs)
}

fn split_values(text: &str) -> BTreeSet<String> {
    text.split(',').map(|value| value.trim().to_owned()).collect()
}
