//! The small part of JSONPath that definitions use: members, indexes, `[*]`, and filters by one equal member.

use api_machinery::value::Value;

/// The longest path that is read.
const MAX_STEPS: usize = 64;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
    Any,
    /// `[?(@.member=="value")]`
    Where(Vec<String>, String),
}

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Reads a path; nothing where it is none, or says more than is understood here.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        if !rest.starts_with('.') {
            return None;
        }
        while !rest.is_empty() {
            if steps.len() >= MAX_STEPS {
                return None;
            }
            if let Some(behind) = rest.strip_prefix('[') {
                let end = closing(behind)?;
                let (inner, behind) = behind.split_at_checked(end)?;
                steps.push(bracket(inner)?);
                rest = behind.strip_prefix(']')?;
            } else {
                let name = rest.strip_prefix('.')?;
                let (name, behind) = member(name);
                if !name.is_empty() {
                    steps.push(Step::Member(name));
                }
                rest = behind;
            }
        }
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// Whether it only names members, as scale and selectors want it.
    pub fn members(&self) -> Option<Vec<&str>> {
        let member = |step: &'_ Step| matches!(step, Step::Member(_));
        self.0.iter().all(member).then(|| {
            let names = self.0.iter().filter_map(|step| match step {
                Step::Member(name) => Some(name.as_str()),
                _ => None,
            });
            names.collect()
        })
    }

    /// The first value that the path leads to.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        follow(&self.0, root)
    }
}

/// Follows the steps, taking the first way that leads to something.
fn follow<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Member(name) => follow(rest, value.get(name)?),
        Step::Index(index) => follow(rest, value.get(index)?),
        Step::Any => match value {
            Value::Array(items) => items.iter().find_map(|item| follow(rest, item)),
            Value::Object(members) => members.values().find_map(|member| follow(rest, member)),
            _ => None,
        },
        Step::Where(path, wanted) => {
            let fits = |item: &&Value| match path.iter().try_fold(*item, |value, name| value.get(name)) {
                Some(Value::String(text)) => text == wanted,
                Some(other) => other.to_string().as_str() == wanted,
                None => false,
            };
            value.as_array()?.iter().filter(fits).find_map(|item| follow(rest, item))
        }
    }
}

/// A member's name, in which a backslash takes the meaning of what follows it.
fn member(text: &str) -> (String, &str) {
    let (mut name, mut chars) = (String::new(), text.char_indices());
    while let Some((at, character)) = chars.next() {
        match character {
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            other => name.push(other),
        }
    }
    (name, "")
}

/// Where a bracket closes, quotes left out of account.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (']', None) => return Some(at),
            ('\'' | '"', None) => quote = Some(character),
            (character, Some(open)) if character == open => quote = None,
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<String> {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).map(str::to_owned);
    quoted('\'').or_else(|| quoted('"'))
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::Any);
    }
    if let Some(name) = unquoted(inner) {
        return Some(Step::Member(name));
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (path, wanted) = filter.split_once("==")?;
        let path: Vec<String> = path.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
        let wanted = wanted.trim();
        return Some(Step::Where(path, unquoted(wanted).unwrap_or_else(|| wanted.to_owned())));
    }
    inner.parse().ok().map(Step::Index)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let value = json!({
            "spec": {"a.b": 1, "list": [{"x": 5}, {"x": 6}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        let cases = [
            (".spec.list[1].x", json!(6)),
            (".spec.list[*].x", json!(5)),
            (".spec['a.b']", json!(1)),
            (".spec.a\\.b", json!(1)),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
            (".spec.none", Value::Null),
        ];
        for (path, expected) in cases {
            let found = JsonPath::parse(path).unwrap().first(&value).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{path}");
        }
        for bad in ["spec", ".a[", ".a[b]", ""] {
            assert_eq!(JsonPath::parse(bad), None, "{bad}");
        }
    }
}
