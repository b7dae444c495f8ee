//! The field that a rule is about, as a path from where the rule stands: `.spec['a/b'].c`.

use api_machinery::field_path::Path;

use super::Structural;

/// The field that a path names, as errors show it; nothing where the schema declares no such field.
#[must_use]
pub fn field_path(schema: &Structural, path: &str) -> Option<Path> {
    let (mut at, mut node, mut rest) = (Path::default(), schema, path.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        if let Some(below) = node.properties.get(&name) {
            (at, node) = (at.child(name), below);
        } else {
            (at, node) = (at.key(&name), node.additional_properties.as_deref()?);
        }
        rest = after;
    }
    Some(at)
}

/// The first name of a path, and what follows.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        return (!name.is_empty() && name.chars().all(is_name)).then(|| (name.to_owned(), after));
    }
    let mut name = String::new();
    let mut chars = path.strip_prefix("['")?.char_indices();
    let text = path.get(2..)?;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '\'' => return Some((name, text.get(at..)?.strip_prefix("']")?)),
            other => name.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_declared_fields() {
        let text = json!({"type": "string"});
        let schema = Structural::root(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": text, "d": text}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"e": text}}},
            "list": {"type": "array", "items": text},
        }}));
        for (path, expected) in [
            (".a", Some("a")),
            (".a.d", Some("a.d")),
            (".a['b.c']", Some("a.b.c")),
            (r".a['b\.c']", Some("a.b.c")),
            (".map.x.e", Some("map[x].e")),
            (".map['x'].e", Some("map[x].e")),
            (".list", Some("list")),
            (".list[0]", None),
            (".list['0']", None),
            (".zzz", None),
            ("a[", None),
            (".a.", None),
            (".", None),
            ("", None),
            (".a['d", None),
        ] {
            assert_eq!(field_path(&schema, path).map(|at| at.to_string()).as_deref(), expected, "{path}");
        }
    }
}
