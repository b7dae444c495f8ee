//! `format`: `%s %d %f %e %b %o %x %X %%`.

use crate::error::{EvalError, Out};
use crate::library::print_double;
use crate::time;
use crate::value::{List, Value};

/// The most digits behind the point.
const MAX_PRECISION: usize = 1000;
const DEFAULT_PRECISION: usize = 6;

pub(super) fn format(template: &str, args: &List<'_>) -> Out<String> {
    let mut out = String::with_capacity(template.len());
    let mut next = 0;
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let precision = precision(&mut rest)?;
        let verb = rest.chars().next().ok_or_else(|| EvalError::failed("unexpected end of string"))?;
        rest = rest.get(verb.len_utf8()..).unwrap_or_default();
        let arg = args.get(next).ok_or_else(|| EvalError::failed(format!("index {next} out of range")))?;
        next += 1;
        out.push_str(&clause(verb, precision, &arg)?);
    }
    out.push_str(rest);
    Ok(out)
}

fn precision(rest: &mut &str) -> Out<Option<usize>> {
    let Some(digits) = rest.strip_prefix('.') else { return Ok(None) };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let count = digits.get(..length).and_then(|text| text.parse().ok()).filter(|count| *count <= MAX_PRECISION);
    *rest = digits.get(length..).unwrap_or_default();
    count.map(Some).ok_or_else(|| EvalError::failed("error while parsing precision"))
}

fn clause(verb: char, precision: Option<usize>, arg: &Value<'_>) -> Out<String> {
    let precision = precision.unwrap_or(DEFAULT_PRECISION);
    match verb {
        's' => text(arg),
        'd' => decimal(arg),
        'f' => float(arg, |value| format!("{value:.precision$}")),
        'e' => float(arg, |value| scientific(value, precision)),
        'b' => match arg {
            Value::Bool(value) => Ok(u8::from(*value).to_string()),
            arg => radix(arg, "b", |value| format!("{value:b}")),
        },
        'o' => radix(arg, "o", |value| format!("{value:o}")),
        'x' => hex(arg),
        'X' => hex(arg).map(|text| text.to_uppercase()),
        other => Err(EvalError::failed(format!(
            "could not parse formatting clause: unrecognized formatting clause \"{other}\""
        ))),
    }
}

fn wrong(verb: &str, arg: &Value<'_>, kinds: &str) -> EvalError {
    let name = arg.type_of().name().to_owned();
    EvalError::Failed(format!("error during formatting: {verb} clause can only be used on {kinds}, was given {name}"))
}

fn text(arg: &Value<'_>) -> Out<String> {
    Ok(match arg {
        Value::String(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Value::Null => "null".to_owned(),
        Value::Double(value) if value.is_infinite() => if *value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Value::Double(value) => print_double(*value),
        Value::Duration(nanos) => time::print_duration(*nanos),
        Value::Timestamp(at) => at.to_string(),
        Value::Type(ty) => ty.name().to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => arg.to_display(),
        Value::List(list) => {
            let items = list.iter().map(|item| text(&item)).collect::<Out<Vec<_>>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.iter() {
                entries.push(format!("{}: {}", text(&key)?, text(&value)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => {
            let kinds = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
            return Err(wrong("string", other, kinds));
        }
    })
}

fn not_finite(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value.is_infinite().then(|| if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
}

fn decimal(arg: &Value<'_>) -> Out<String> {
    match arg {
        Value::Int(_) | Value::Uint(_) => Ok(arg.to_display()),
        Value::Double(value) if !value.is_finite() => Ok(not_finite(*value).unwrap_or_default()),
        other => Err(wrong("decimal", other, "integers")),
    }
}

fn float(arg: &Value<'_>, print: impl Fn(f64) -> String) -> Out<String> {
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    let value = match arg {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        other => return Err(wrong("fixed-point", other, "doubles")),
    };
    Ok(not_finite(value).unwrap_or_else(|| print(value)))
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn radix(arg: &Value<'_>, verb: &str, print: impl Fn(u64) -> String) -> Out<String> {
    match arg {
        Value::Int(value) => Ok(format!("{}{}", if *value < 0 { "-" } else { "" }, print(value.unsigned_abs()))),
        Value::Uint(value) => Ok(print(*value)),
        other => {
            let (verb, kinds) = if verb == "b" { ("binary", "integers and bools") } else { ("octal", "integers") };
            Err(wrong(verb, other, kinds))
        }
    }
}

fn hex(arg: &Value<'_>) -> Out<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match arg {
        Value::String(text) => Ok(bytes(text.as_str().as_bytes())),
        Value::Bytes(blob) => Ok(bytes(blob.as_bytes())),
        Value::Int(_) | Value::Uint(_) => radix(arg, "x", |value| format!("{value:x}")),
        other => Err(wrong("hex", other, "integers, byte buffers, and strings")),
    }
}
