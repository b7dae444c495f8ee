//! Structs as upstream prints them inside errors: JSON in the layout of its internal types, with capitalised names and
//! every field, and the difference between two of them line by line.

use api_machinery::field_path::BadValue;
use api_machinery::leaf::RawJson;
use api_machinery::reflect::{Field, Reflect, View};

use crate::internal_layout::{self, Member};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Beyond this many lines on either side the difference is not worked out line by line, as that takes the product.
const MAX_DIFF_LINES: usize = 4000;

/// A struct as the bad value of an error.
pub fn bad_value(value: &dyn Reflect) -> BadValue {
    BadValue::json(compact(value))
}

/// A struct on one line.
pub fn compact(value: &dyn Reflect) -> String {
    let mut out = String::new();
    structure(value, None, &mut out);
    out
}

/// A struct over many lines, each level indented by one space.
fn indented(value: &dyn Reflect) -> String {
    let mut out = String::new();
    structure(value, Some(0), &mut out);
    out
}

fn line(depth: Option<usize>, out: &mut String) {
    if let Some(depth) = depth {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    }
}

fn structure(value: &dyn Reflect, depth: Option<usize>, out: &mut String) {
    group(internal_layout::members(value), depth, out);
}

fn group(members: Vec<(String, Member<'_>)>, depth: Option<usize>, out: &mut String) {
    let inner = depth.map(|depth| depth + 1);
    let colon = if depth.is_some() { ": " } else { ":" };
    out.push('{');
    for (index, (name, member)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        line(inner, out);
        out.push_str(&format!("\"{name}\"{colon}"));
        match member {
            Member::Field(field) => item(field, inner, out),
            Member::Group(members) => group(members, inner, out),
        }
    }
    line(depth, out);
    out.push('}');
}

fn item(field: &dyn Field, depth: Option<usize>, out: &mut String) {
    let inner = depth.map(|depth| depth + 1);
    match field.view() {
        View::Struct(value) => structure(value, depth, out),
        View::Optional(None) => out.push_str("null"),
        View::Optional(Some(value)) => item(value, depth, out),
        View::List(list) if list.is_empty() => out.push_str("null"),
        View::List(list) => {
            out.push('[');
            for index in 0..list.len() {
                if index > 0 {
                    out.push(',');
                }
                line(inner, out);
                if let Some(value) = list.item(index) {
                    item(value, inner, out);
                }
            }
            line(depth, out);
            out.push(']');
        }
        View::Map(map) if map.is_empty() => out.push_str("null"),
        View::Map(map) => {
            let colon = if depth.is_some() { ": " } else { ":" };
            let mut first = true;
            out.push('{');
            map.each(&mut |key, value| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                line(inner, out);
                out.push_str(&serde_json::Value::from(key).to_string());
                out.push_str(colon);
                item(value, inner, out);
            });
            line(depth, out);
            out.push('}');
        }
        View::Bool(value) => out.push_str(&value.to_string()),
        View::Int32(value) => out.push_str(&value.to_string()),
        View::Int64(value) => out.push_str(&value.to_string()),
        View::Float(value) => out.push_str(&value.to_string()),
        View::Str(value) => out.push_str(BadValue::named(value).text()),
        View::Bytes(value) => out.push_str(&serde_json::Value::from(value).to_string()),
        // What is kept as text is shown as it is: its numbers may be beyond any type.
        View::Leaf(leaf) => match leaf.downcast_ref::<RawJson>().filter(|raw| !raw.is_empty()) {
            Some(raw) => out.push_str(raw.as_str()),
            None => out.push_str(&leaf.to_value().to_string()),
        },
        View::Dynamic(value) => out.push_str(&value.to_string()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// The unified difference of two structs, with three lines of context and no file names.
pub fn difference(old: &dyn Reflect, new: &dyn Reflect) -> String {
    let (old, new) = (indented(old), indented(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    hunks(&edits(&old, &new))
}

/// Every line of both texts in order, by the longest common subsequence of what lies between equal ends.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, ending) = old_rest.split_at(old_rest.len() - tail);
    let (new_middle, _) = new_rest.split_at(new_rest.len() - tail);
    let mut all: Vec<(Side, &str)> = old.iter().take(head).map(|line| (Side::Both, *line)).collect();
    all.extend(middle(old_middle, new_middle));
    all.extend(ending.iter().map(|line| (Side::Both, *line)));
    all
}

fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    if old.len() > MAX_DIFF_LINES || new.len() > MAX_DIFF_LINES {
        let old = old.iter().map(|line| (Side::Old, *line));
        return old.chain(new.iter().map(|line| (Side::New, *line))).collect();
    }
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    let at = |common: &[u16], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or(0);
    for (i, left) in old.iter().enumerate().rev() {
        for (j, right) in new.iter().enumerate().rev() {
            let best = match left == right {
                true => at(&common, i + 1, j + 1) + 1,
                false => at(&common, i + 1, j).max(at(&common, i, j + 1)),
            };
            if let Some(cell) = common.get_mut(i * width + j) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    loop {
        match (old.get(i), new.get(j)) {
            (Some(left), Some(right)) if left == right => {
                all.push((Side::Both, *left));
                (i, j) = (i + 1, j + 1);
            }
            (Some(left), right) if right.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1) => {
                all.push((Side::Old, *left));
                i += 1;
            }
            (_, Some(right)) => {
                all.push((Side::New, *right));
                j += 1;
            }
            _ => return all,
        }
    }
}

fn hunks(edits: &[(Side, &str)]) -> String {
    let changed: Vec<usize> =
        edits.iter().enumerate().filter(|(_, (side, _))| *side != Side::Both).map(|(index, _)| index).collect();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for index in changed {
        let (start, end) = (index.saturating_sub(CONTEXT), (index + CONTEXT + 1).min(edits.len()));
        match ranges.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => ranges.push((start, end)),
        }
    }
    let mut out = String::new();
    for (start, end) in ranges {
        let count = |from: usize, to: usize, other: Side| {
            edits.iter().take(to).skip(from).filter(|(side, _)| *side != other).count()
        };
        let (old_first, new_first) = (count(0, start, Side::New) + 1, count(0, start, Side::Old) + 1);
        let (old_lines, new_lines) = (count(start, end, Side::New), count(start, end, Side::Old));
        out.push_str(&format!("@@ -{old_first},{old_lines} +{new_first},{new_lines} @@\n"));
        for (side, line) in edits.iter().take(end).skip(start) {
            let mark = match side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            };
            out.push(mark);
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ContainerPort, PodAffinityTerm, PodSpec, SecurityContext, Toleration};

    use super::*;

    #[test]
    fn prints_every_field_in_internal_names() {
        let port = ContainerPort { container_port: 80, protocol: "TCP".into(), ..ContainerPort::default() };
        let expected = r#"{"Name":"","HostPort":0,"ContainerPort":80,"Protocol":"TCP","HostIP":""}"#;
        assert_eq!(bad_value(&port), BadValue::json(expected));
        let text = indented(&SecurityContext::default());
        assert!(text.contains("\n \"SELinuxOptions\": null,"), "{text}");
    }

    /// What the wire has beside each other stands elsewhere inside.
    #[test]
    fn specs_of_pods_have_an_order_of_their_own() {
        let old = PodSpec::default();
        let new = PodSpec { hostname: "h".into(), ..PodSpec::default() };
        let expected = "@@ -32,7 +32,7 @@\n   \"SELinuxChangePolicy\": null\n  },\n  \"ImagePullSecrets\": null,\n- \
                        \"Hostname\": \"\",\n+ \"Hostname\": \"h\",\n  \"Subdomain\": \"\",\n  \"SetHostnameAsFQDN\": null,\n  \
                        \"Affinity\": null,\n";
        assert_eq!(difference(&old, &new), expected);
        let text = compact(&PodSpec { host_users: Some(false), ..PodSpec::default() });
        let context = "\"NodeName\":\"\",\"SecurityContext\":{\"HostNetwork\":false,\"HostPID\":false,\"HostIPC\":false,\
                       \"ShareProcessNamespace\":null,\"HostUsers\":false,\"SELinuxOptions\":null,";
        assert!(text.contains(context), "{text}");
    }

    /// Selectors have one type inside and outside.
    #[test]
    fn shared_types_print_as_on_the_wire() {
        let mut term = PodAffinityTerm { topology_key: "k".into(), ..PodAffinityTerm::default() };
        term.label_selector.get_or_insert_default().match_labels.insert("a".into(), "b".into());
        let text = compact(&term);
        assert!(text.starts_with(r#"{"LabelSelector":{"matchLabels":{"a":"b"}},"Namespaces":null,"#), "{text}");
    }

    #[test]
    fn differences_have_three_lines_of_context() {
        let old = Toleration { key: "a".into(), ..Toleration::default() };
        let new = Toleration { key: "b".into(), toleration_seconds: Some(3), ..Toleration::default() };
        let expected = "@@ -1,7 +1,7 @@\n {\n- \"Key\": \"a\",\n+ \"Key\": \"b\",\n  \"Operator\": \"\",\n  \"Value\": \"\",\n  \
                        \"Effect\": \"\",\n- \"TolerationSeconds\": null\n+ \"TolerationSeconds\": 3\n }\n";
        assert_eq!(difference(&old, &new), expected);
        assert_eq!(difference(&old, &old), "");
    }
}
