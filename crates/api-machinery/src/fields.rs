//! Field selectors: `spec.nodeName=n1,status.phase!=Failed`.
//!
//! Which fields a kind can be selected by is the kind's business; this module reads, prints and evaluates the terms.

use std::borrow::Cow;
use std::fmt;

/// All terms must hold; none at all match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The field's name, such as `metadata.name`.
    pub field: String,
    /// Whether the field must equal the value or must not.
    pub equal: bool,
    /// The value, unescaped.
    pub value: String,
}

/// A text that is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole text.
        selector: String,
        /// The part that is no comparison.
        term: String,
    },
    /// A backslash before something that needs none, or at the end.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A comma or equals sign in a value without a backslash.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Matches every object.
    pub const fn everything() -> Self {
        Self { terms: Vec::new() }
    }

    /// A selector of one term that asks for equality.
    pub fn equals(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self { terms: vec![Term { field: field.into(), equal: true, value: value.into() }] }
    }

    /// Reads the text form; terms are sorted as text and empty ones skipped.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (field, equal, value) = split_term(part)
                .ok_or_else(|| FieldSelectorError::Term { selector: text.to_owned(), term: part.to_owned() })?;
            // A term of nothing asks for nothing.
            if equal && field.is_empty() && value.is_empty() {
                continue;
            }
            terms.push(Term { field: field.to_owned(), equal, value: unescape(value)?.into_owned() });
        }
        Ok(Self { terms })
    }

    /// The terms, in text order.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether it matches every object.
    pub const fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Evaluates the terms; `field` gives the value of a field, empty when it is not set.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }

    /// The one value that `field` must have, if the selector asks for one.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Passes each field and value through `convert`, which may rename or refuse them; terms that come back with an
    /// empty name match everything and are dropped.
    ///
    /// # Errors
    /// The first error that `convert` returns.
    pub fn transform<E>(&self, convert: impl Fn(&str, &str) -> Result<(String, String), E>) -> Result<Self, E> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let (field, value) = convert(&term.field, &term.value)?;
            if !field.is_empty() || !value.is_empty() {
                terms.push(Term { field, equal: term.equal, value });
            }
        }
        Ok(Self { terms })
    }
}

impl std::str::FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            write!(f, "{separator}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Escapes a value for use in a selector's text.
pub fn escape(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', ',', '=']) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\="))
}

fn unescape(value: &str) -> Result<Cow<'_, str>, FieldSelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some(escaped @ ('\\' | ',' | '='))) => plain.push(escaped),
            ('\\', Some(other)) => return Err(FieldSelectorError::Escape(format!("\\{other}"))),
            ('\\', None) => return Err(FieldSelectorError::Escape("\\".into())),
            (',' | '=', _) => return Err(FieldSelectorError::Unescaped(c)),
            _ => plain.push(c),
        }
    }
    Ok(Cow::Owned(plain))
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

/// Field, whether it must be equal, and value, cut at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let (field, rest) = term.split_at(term.char_indices().find_map(|(at, c)| {
        let rest = term.get(at..)?;
        (c == '=' || rest.starts_with("!=")).then_some(at)
    })?);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let cases = [
            ("", ""),
            (",", ""),
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("b!=c,a=b", "a=b,b!=c"),
            ("a=", "a="),
            ("a!b=c", "a!b=c"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("=x", "=x"),
        ];
        for (text, expected) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(FieldSelector::parse(r"a=x\,y\=z\\").unwrap().terms()[0].value, r"x,y=z\");
    }

    #[test]
    fn refuses_with_upstream_texts() {
        let cases = [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ];
        for (text, expected) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn matches_fields() {
        let field = |name: &str| Cow::Borrowed(if name == "a" { "b" } else { "" });
        let cases = [
            ("", true),
            ("a=b", true),
            ("a!=b", false),
            ("a=c", false),
            ("x=", true),
            ("x!=y", true),
            ("a=b,x=y", false),
        ];
        for (text, expected) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(field), expected, "{text}");
        }
        assert_eq!(FieldSelector::parse("a=b,c!=d").unwrap().required_value("a"), Some("b"));
        assert_eq!(FieldSelector::parse("a=b,c!=d").unwrap().required_value("c"), None);
    }

    #[test]
    fn transforms_terms() {
        let selector = FieldSelector::parse("spec.host=n,drop=x").unwrap();
        let renamed = selector.transform(|field, value| match field {
            "spec.host" => Ok(("spec.nodeName".to_owned(), value.to_owned())),
            "drop" => Ok(Default::default()),
            _ => Err(()),
        });
        assert_eq!(renamed.unwrap().to_string(), "spec.nodeName=n");
        assert!(selector.transform(|_, _| Err::<(String, String), _>("no")).is_err());
    }
}
