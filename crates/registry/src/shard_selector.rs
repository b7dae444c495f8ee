//! `ShardedListAndWatch` (KEP-5866): selectors of shards, as clients write them. They are expressions of CEL that are taken apart
//! and never evaluated: `shardRange(object.metadata.uid, '0x…', '0x…') || …`.

use std::sync::LazyLock;

use cel::Environment;
use cel::ast::{Expr, Kind, Literal};

/// Hex digits of a bound.
const DIGITS: usize = 16;
/// The bound after the last.
const END: &str = "0x10000000000000000";
const FIELDS: [&str; 2] = ["object.metadata.uid", "object.metadata.namespace"];

/// One range, as it was written.
struct Range {
    field: String,
    start: String,
    end: String,
}

/// The selector in the one form that the registry reads, and that lists show.
///
/// # Errors
/// What is wrong with it, in upstream's words but for mistakes of syntax.
pub fn normalized(text: &str) -> Result<String, String> {
    static SYNTAX: LazyLock<Environment> = LazyLock::new(|| Environment::new(&[]));
    let text = text.trim();
    if text.is_empty() {
        return Err("empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned());
    }
    let parsed = SYNTAX.parse(text).map_err(|issues| {
        let first = issues.list().first().map(|issue| issue.message.clone()).unwrap_or_default();
        format!("CEL parse error: {first}")
    })?;
    let mut ranges = Vec::new();
    walk(&parsed, &mut ranges)?;
    let first = ranges.first().map(|range: &Range| range.field.clone()).unwrap_or_default();
    if let Some(other) = ranges.iter().find(|range| range.field != first) {
        return Err(format!("all shard ranges must use the same field, got {first:?} and {:?}", other.field));
    }
    let shown = |Range { field, start, end }: &Range| format!("shardRange({field}, '{start}', '{end}')");
    Ok(ranges.iter().map(shown).collect::<Vec<_>>().join(" || "))
}

fn walk(expr: &Expr, ranges: &mut Vec<Range>) -> Result<(), String> {
    let Kind::Call { function, args, .. } = &expr.kind else {
        return Err(format!("unexpected expression kind {}; expected shardRange() call or || operator", number(expr)));
    };
    match &**function {
        "_||_" => args.iter().try_for_each(|side| walk(side, ranges)),
        "shardRange" => {
            ranges.push(range(args)?);
            Ok(())
        }
        other => Err(format!("unsupported function {other:?}; only shardRange() and || are allowed")),
    }
}

fn range(args: &[Expr]) -> Result<Range, String> {
    let [field, start, end] = args else {
        return Err(format!("shardRange() requires exactly 3 arguments, got {}", args.len()));
    };
    let field = path(field).map_err(|why| format!("shardRange() first argument: {why}"))?;
    if !FIELDS.contains(&field.as_str()) {
        return Err(format!("unsupported field path {field:?}; supported: {}", FIELDS.join(", ")));
    }
    let (start, end) = (bound(start, "hexStart")?, bound(end, "hexEnd")?);
    // Longer is more, and among the same length the order of texts is that of numbers.
    if (start.len(), &start) >= (end.len(), &end) {
        return Err(format!("shard range start {start} must be less than end {end}"));
    }
    Ok(Range { field, start, end })
}

fn path(expr: &Expr) -> Result<String, String> {
    match &expr.kind {
        Kind::Ident(name) => Ok((**name).to_owned()),
        Kind::Select { operand, field, .. } => Ok(format!("{}.{field}", path(operand)?)),
        _ => Err(format!("expected field path (e.g. object.metadata.uid), got expression kind {}", number(expr))),
    }
}

fn bound(expr: &Expr, what: &str) -> Result<String, String> {
    let Kind::Literal(literal) = &expr.kind else {
        return Err(format!("{what} must be a string literal (e.g. '0xff'), got expression kind {}", number(expr)));
    };
    let Literal::String(text) = literal else {
        return Err(format!("{what} must be a string literal, got {}", type_of(literal)));
    };
    let Some(hex) = text.strip_prefix("0x") else {
        return Err(format!("{what} must have '0x' prefix, got {text:?}"));
    };
    if hex.is_empty() {
        return Err(format!("{what}: hex value is required after '0x'"));
    }
    if hex.len() > DIGITS + 1 {
        return Err(format!("{what}: hex value too long ({} chars, max {}): {hex:?}", hex.len(), DIGITS + 1));
    }
    if let Some(bad) = hex.chars().find(|digit| !matches!(digit, '0'..='9' | 'a'..='f')) {
        return Err(format!("{what}: invalid hex character {:?} in {text:?}", bad.to_string()));
    }
    match hex.len() {
        DIGITS => {}
        length if length > DIGITS && **text == *END => {}
        length if length > DIGITS => {
            return Err(format!("{what}: 17-digit hex value must be '{END}' (2^64), got {text:?}"));
        }
        _ => {
            let padded = format!("0x{hex:0>DIGITS$}");
            return Err(format!(
                "{what} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean {padded:?}?)"
            ));
        }
    }
    Ok((**text).to_owned())
}

/// Upstream's number for what an expression is.
fn number(expr: &Expr) -> u8 {
    match &expr.kind {
        Kind::Call { .. } => 1,
        Kind::Comprehension(_) => 2,
        Kind::Ident(_) => 3,
        Kind::List { .. } => 4,
        Kind::Literal(_) => 5,
        Kind::Map { .. } => 6,
        Kind::Select { .. } => 7,
        Kind::Struct { .. } => 8,
    }
}

/// Go's name for the type of a constant.
fn type_of(literal: &Literal) -> &'static str {
    match literal {
        Literal::Null => "structpb.NullValue",
        Literal::Bool(_) => "bool",
        Literal::Int(_) => "int64",
        Literal::Uint(_) => "uint64",
        Literal::Double(_) => "float64",
        Literal::String(_) => "string",
        Literal::Bytes(_) => "[]uint8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')";

    #[test]
    fn selectors_are_brought_into_one_form() {
        let halves = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || \
                      shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";
        let odd = halves.replace('\'', "\"").replace(", ", ",").replace(" || ", "\n||\t");
        for (text, expected) in [(ALL, ALL), (halves, halves), (&odd, halves), (&format!(" ({ALL}) "), ALL)] {
            assert_eq!(normalized(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn mistakes_have_upstreams_texts() {
        let uid = "object.metadata.uid";
        let (low, high) = ("'0x0000000000000001'", "'0x0000000000000002'");
        for (text, expected) in [
            (" ".to_owned(), "empty shard selector is not allowed; omit the parameter for unfiltered lists"),
            (uid.to_owned(), "unexpected expression kind 7; expected shardRange() call or || operator"),
            ("a && b".to_owned(), "unsupported function \"_&&_\"; only shardRange() and || are allowed"),
            (format!("shardRange({uid})"), "shardRange() requires exactly 3 arguments, got 1"),
            (
                format!("shardRange(object.spec.x, {low}, {high})"),
                "unsupported field path \"object.spec.x\"; supported: object.metadata.uid, object.metadata.namespace",
            ),
            (
                format!("shardRange('a', {low}, {high})"),
                "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 5",
            ),
            (
                format!("shardRange({uid}, '0x1', {high})"),
                "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x1\" (did you mean \"0x0000000000000001\"?)",
            ),
            (format!("shardRange({uid}, {low}, 5)"), "hexEnd must be a string literal, got int64"),
            (format!("shardRange({uid}, 'ff', {high})"), "hexStart must have '0x' prefix, got \"ff\""),
            (format!("shardRange({uid}, '0xFF', {high})"), "hexStart: invalid hex character \"F\" in \"0xFF\""),
            (
                format!("shardRange({uid}, {low}, '0x20000000000000000')"),
                "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
            ),
            (
                format!("shardRange({uid}, {high}, {low})"),
                "shard range start 0x0000000000000002 must be less than end 0x0000000000000001",
            ),
            (
                format!("shardRange({uid}, {low}, {high}) || shardRange(object.metadata.namespace, {low}, {high})"),
                "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
            ),
        ] {
            assert_eq!(normalized(&text).as_ref().map_err(String::as_str), Err(expected), "{text}");
        }
        assert!(normalized("shardRange(").is_err_and(|why| why.starts_with("CEL parse error: ")));
    }
}
