//! Strings, by characters.

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::value::{List, Value};

use super::{Library, NO_MACROS};

mod format;

/// Strings.
pub const STRINGS: Library = Library { name: "strings", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const ONE: Cost = Cost::Fixed(1);
/// How long a text may become by replacing: more than any object that is stored.
const MAX_RESULT_BYTES: usize = 16 << 20;

const FUNCTIONS: &[Overload] = &[
    overload("string_char_at_int", "string::charAt(int) -> string", ONE, char_at),
    overload("string_index_of_string", "string::indexOf(string) -> int", Cost::Traverses, |a| index_of(a, 0)),
    overload("string_index_of_string_int", "string::indexOf(string, int) -> int", Cost::Traverses, |args| {
        index_of(args, args.int(2))
    }),
    overload("string_last_index_of_string", "string::lastIndexOf(string) -> int", Cost::Traverses, |args| {
        last_index_of(args, None)
    }),
    overload("string_last_index_of_string_int", "string::lastIndexOf(string, int) -> int", Cost::Traverses, |args| {
        last_index_of(args, Some(args.int(2)))
    }),
    overload("list_join", "list<string>::join() -> string", Cost::Joins, join),
    overload("list_join_string", "list<string>::join(string) -> string", Cost::Joins, join),
    overload("string_lower_ascii", "string::lowerAscii() -> string", Cost::Reads(0, 1), |args| {
        Ok(Value::text(args.str(0).to_ascii_lowercase()))
    }),
    overload("string_upper_ascii", "string::upperAscii() -> string", Cost::Reads(0, 1), |args| {
        Ok(Value::text(args.str(0).to_ascii_uppercase()))
    }),
    overload("string_replace_string_string", "string::replace(string, string) -> string", Cost::Replaces, |args| {
        replace(args, usize::MAX)
    }),
    overload(
        "string_replace_string_string_int",
        "string::replace(string, string, int) -> string",
        Cost::Replaces,
        |args| replace(args, usize::try_from(args.int(3)).unwrap_or(usize::MAX)),
    ),
    overload("string_split_string", "string::split(string) -> list<string>", Cost::Splits(0, 2), |a| split(a, -1)),
    overload("string_split_string_int", "string::split(string, int) -> list<string>", Cost::Splits(0, 2), |args| {
        split(args, args.int(2))
    }),
    overload("string_substring_int", "string::substring(int) -> string", Cost::Reads(0, 1), |args| {
        let end = i64::try_from(args.str(0).chars().count()).unwrap_or(i64::MAX);
        substring(args, args.int(1), end)
    }),
    overload("string_substring_int_int", "string::substring(int, int) -> string", Cost::Reads(0, 1), |args| {
        substring(args, args.int(1), args.int(2))
    }),
    overload("string_trim", "string::trim() -> string", Cost::Reads(0, 1), |args| {
        Ok(Value::text(args.str(0).trim_matches(is_space)))
    }),
    overload("string_reverse", "string::reverse() -> string", ONE, |args| {
        Ok(Value::text(args.str(0).chars().rev().collect::<String>()))
    }),
    overload("string_format", "string::format(list<dyn>) -> string", Cost::Reads(0, 1), |args| {
        let Value::List(list) = args.get(1) else { return Err(EvalError::NoSuchOverload) };
        format::format(args.str(0), list).map(Value::text)
    }),
    overload("strings_quote", "strings.quote(string) -> string", Cost::Reads(0, 1), |args| {
        Ok(Value::text(quote(args.str(0))))
    }),
];

/// What Unicode calls white space.
fn is_space(c: char) -> bool {
    c.is_whitespace()
}

/// A place in a text, by characters, as a byte offset; nothing where it is beyond the end.
fn offset(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().nth(index)
}

fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn out_of_range<'v>(index: i64) -> Out<Value<'v>> {
    Err(EvalError::failed(format!("index out of range: {index}")))
}

fn char_at<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let (text, index) = (args.str(0), args.int(1));
    let Some(at) = offset(text, index) else { return out_of_range(index) };
    let c = text.get(at..).and_then(|rest| rest.chars().next());
    Ok(Value::text(c.map(String::from).unwrap_or_default()))
}

fn index_of<'v>(args: &Args<'_, 'v>, from: i64) -> Out<Value<'v>> {
    let (text, wanted) = (args.str(0), args.str(1));
    let Some(start) = offset(text, from) else {
        // Upstream looks at an empty text first.
        return if wanted.is_empty() && from >= 0 { Ok(Value::Int(from)) } else { out_of_range(from) };
    };
    let rest = text.get(start..).unwrap_or_default();
    let found = rest.find(wanted).and_then(|at| rest.get(..at));
    Ok(Value::Int(found.map_or(-1, |before| from + count(before))))
}

fn last_index_of<'v>(args: &Args<'_, 'v>, from: Option<i64>) -> Out<Value<'v>> {
    let (text, wanted) = (args.str(0), args.str(1));
    let from = from.unwrap_or_else(|| count(text));
    if offset(text, from).is_none() {
        return if wanted.is_empty() && from >= 0 { Ok(Value::Int(count(text))) } else { out_of_range(from) };
    }
    // The match may begin at the place and end behind it.
    let end = offset(text, from.saturating_add(count(wanted))).unwrap_or(text.len());
    let found = text.get(..end).and_then(|head| head.rfind(wanted)).and_then(|at| text.get(..at));
    Ok(Value::Int(found.map_or(-1, count)))
}

/// A result may be as long as the product of two arguments, which the cost does not tell: it is bounded by itself.
fn replace<'v>(args: &Args<'_, 'v>, count: usize) -> Out<Value<'v>> {
    let (text, from, to) = (args.str(0), args.str(1), args.str(2));
    let hits = text.matches(from).count().min(count);
    if hits.saturating_mul(to.len()).saturating_add(text.len()) > MAX_RESULT_BYTES {
        return Err(EvalError::failed("result of replace() is too long"));
    }
    Ok(Value::text(text.replacen(from, to, count)))
}

fn join<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let Value::List(list) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    let items = strings(list)?;
    Ok(Value::text(items.join(args.str(1))))
}

fn strings(list: &List<'_>) -> Out<Vec<String>> {
    list.iter().map(|item| item.as_str().map(str::to_owned).ok_or(EvalError::NoSuchOverload)).collect()
}

fn split<'v>(args: &Args<'_, 'v>, limit: i64) -> Out<Value<'v>> {
    let (text, separator) = (args.str(0), args.str(1));
    let limit = if limit < 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let parts: Vec<Value<'v>> = if limit == 0 {
        Vec::new()
    } else if separator.is_empty() {
        characters(text, limit).into_iter().map(Value::text).collect()
    } else {
        text.splitn(limit, separator).map(Value::text).collect()
    };
    Ok(Value::list(parts))
}

fn characters(text: &str, limit: usize) -> Vec<String> {
    let total = text.chars().count();
    let single = total.min(limit.saturating_sub(1));
    let mut out: Vec<String> = text.chars().take(single).map(String::from).collect();
    if total > single {
        out.push(text.chars().skip(single).collect());
    }
    out
}

fn substring<'v>(args: &Args<'_, 'v>, start: i64, end: i64) -> Out<Value<'v>> {
    let text = args.str(0);
    let Some(from) = offset(text, start) else { return out_of_range(start) };
    let Some(to) = offset(text, end) else { return out_of_range(end) };
    if start > end {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(EvalError::Failed(message));
    }
    Ok(Value::text(text.get(from..to).unwrap_or_default()))
}

/// In quotes, with what does not print escaped.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
