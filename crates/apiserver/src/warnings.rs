//! `Warning` headers: texts collected while a request is worked on, within a budget.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;

/// Characters of all texts together; beyond it texts are cut.
const BUDGET_CHARACTERS: usize = 4096;
/// What texts are cut to once the budget is used up.
const CUT_CHARACTERS: usize = 256;

/// The warnings of one request; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Collected>>);

#[derive(Debug, Default)]
struct Collected {
    seen: BTreeSet<String>,
    texts: Vec<String>,
}

impl Warnings {
    /// Adds a text; one that was added before, is empty or holds control characters is dropped.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() || text.chars().any(char::is_control) {
            return;
        }
        let mut collected = self.0.lock();
        if collected.seen.insert(text.clone()) {
            collected.texts.push(text);
        }
    }

    /// Adds several.
    pub(crate) fn extend(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// Writes the headers.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        for text in within_budget(&self.0.lock().texts) {
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                headers.append(WARNING, value);
            }
        }
    }
}

/// The texts, cut when they are too much together, as many as fit.
fn within_budget(texts: &[String]) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if texts.iter().map(|text| length(text)).sum::<usize>() <= BUDGET_CHARACTERS {
        return texts.to_vec();
    }
    let mut used = 0;
    let cut = texts.iter().map(|text| text.chars().take(CUT_CHARACTERS).collect::<String>());
    cut.take_while(|text| {
        used += length(text);
        used <= BUDGET_CHARACTERS
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(texts: &[&str]) -> Vec<String> {
        let warnings = Warnings::default();
        warnings.extend(texts.iter().map(|&text| text.to_owned()));
        let mut headers = HeaderMap::new();
        warnings.write(&mut headers);
        headers.get_all(WARNING).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn texts_are_quoted_and_told_once() {
        let got = written(&["unknown field \"spec.a\"", "b", "b", "bad\ntext", ""]);
        assert_eq!(got, ["299 - \"unknown field \\\"spec.a\\\"\"", "299 - \"b\""]);
    }

    #[test]
    fn the_budget_cuts_and_drops() {
        let long: Vec<String> = (0..40).map(|n| format!("{n:04}{}", "x".repeat(300))).collect();
        let got = written(&long.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(got.len(), 16);
        assert!(got.iter().all(|text| text.len() == 256 + 8), "{}", got[0].len());
    }
}
