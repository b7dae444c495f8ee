//! Entries of a record that a write cannot touch. They stay as they are, without being read: a kubelet that writes a pod's
//! status need not know who owns what of its spec.

use api_machinery::leaf::RawJson;
use api_machinery::meta::ManagedFieldsEntry;

use super::field_set::FieldSet;
use super::managers::FIELDS_TYPE;
use super::path::Element;

/// How many keys are looked for in a text: reading it costs less than to look for more.
const MAX_KEYS: u32 = 32;

/// The entries that none of these changes can be in, and those that have to be looked at: the others, and the manager's own.
pub(super) fn split<'a>(
    record: &'a [ManagedFieldsEntry],
    changes: [&FieldSet; 2],
    manager: &str,
) -> (Vec<ManagedFieldsEntry>, Vec<&'a ManagedFieldsEntry>) {
    let is_alone = |entry: &&ManagedFieldsEntry| {
        let text = entry.fields_v1.as_ref().map_or("", RawJson::as_str);
        let may_have = |change: &&FieldSet| Look { text, left: MAX_KEYS }.may_find(change);
        let is_read = entry.manager == manager || entry.fields_type != FIELDS_TYPE || !is_plain(text);
        !is_read && !changes.iter().any(may_have)
    };
    let (alone, rest): (Vec<_>, Vec<_>) = record.iter().partition(is_alone);
    (alone.into_iter().cloned().collect(), rest)
}

/// Whether a text is of a set with places, and hides no key behind an escape: ours have those of quotes and backslashes only.
fn is_plain(text: &str) -> bool {
    let is_known = |(at, _): (usize, &str)| matches!(text.as_bytes().get(at + 1), Some(b'"' | b'\\'));
    text.starts_with("{\"") && text.match_indices('\\').all(is_known)
}

/// A look for places in the text of a set.
struct Look<'a> {
    text: &'a str,
    /// How many keys may still be looked for.
    left: u32,
}

impl Look<'_> {
    /// Whether one of the places may be in the text: all fields on the way to it are keys there, wherever.
    fn may_find(&mut self, places: &FieldSet) -> bool {
        places.steps().any(|(step, entry)| self.has(step) && (entry.owned || self.may_find(&entry.below)))
    }

    /// Whether the step may be in the text. Items of lists are taken to be, and fields whose names would be escaped.
    fn has(&mut self, step: &Element) -> bool {
        let Element::Field(name) = step else { return true };
        let Some(left) = self.left.checked_sub(1) else { return true };
        self.left = left;
        name.contains(['"', '\\']) || self.text.contains(&format!("\"f:{name}\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_change_is_looked_at() {
        for (manager, text, is_alone) in [
            ("other", r#"{"f:spec":{"f:a":{}}}"#, true),
            ("other", r#"{"f:spec":{"k:{\"name\":\"a\"}":{}}}"#, true),
            ("me", r#"{"f:spec":{"f:a":{}}}"#, false),
            ("other", r#"{"f:status":{}}"#, true),
            ("other", r#"{"f:spec":{"f:status":{}}}"#, true),
            ("other", r#"{"f:spec":{"f:status":{},"f:phase":{}}}"#, false),
            ("other", r#"{"f:status":{"f:phase":{}}}"#, false),
            ("other", r#"{"\u0066:status":{}}"#, false),
            ("other", "{}", false),
            ("other", "", false),
        ] {
            let entry = ManagedFieldsEntry {
                manager: manager.into(),
                fields_type: FIELDS_TYPE.into(),
                fields_v1: Some(RawJson::from_text(text.to_owned())),
                ..ManagedFieldsEntry::default()
            };
            let entries = [entry];
            let (changes, none) = (FieldSet::of_fields(&["status.phase"]), FieldSet::default());
            let (alone, rest) = split(&entries, [&none, &changes], "me");
            assert_eq!((alone.len(), rest.len()), if is_alone { (1, 0) } else { (0, 1) }, "{manager} {text}");
            let odd = FieldSet::of_fields(&["a\"b"]);
            assert_eq!(split(&entries, [&odd, &none], "me").0.len(), 0, "{text}");
            let names: Vec<String> = (0..=MAX_KEYS).map(|number| format!("x{number}")).collect();
            let many = FieldSet::of_fields(&names.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(split(&entries, [&many, &none], "me").0.len(), 0, "{text}");
        }
    }
}
