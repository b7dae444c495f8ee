//! Named formats: what names, labels, dates and such have to look like.

use api_machinery::names;
use base64::Engine as _;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::time::Timestamp;
use crate::value::{Opaque, Value};

/// Named formats.
pub const FORMAT: Library = Library { name: "format", functions: FUNCTIONS, types: &[NAME], macros: NO_MACROS };

const NAME: &str = "kubernetes.NamedFormat";
const ONE: Cost = Cost::Fixed(1);

/// A format: its name, what upstream takes its pattern's length to be, and what is wrong with a text.
#[derive(Debug)]
struct Format {
    name: &'static str,
    pattern_size: u64,
    validate: fn(&str) -> Vec<String>,
}

#[derive(Debug)]
struct FormatValue(&'static Format);

impl Opaque for FormatValue {
    fn type_name(&self) -> &'static str {
        NAME
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| other.0.name == self.0.name)
    }

    fn size(&self) -> u64 {
        self.0.pattern_size
    }
}

const fn format(name: &'static str, pattern_size: u64, validate: fn(&str) -> Vec<String>) -> Format {
    Format { name, pattern_size, validate }
}

static FORMATS: [Format; 13] = [
    format("dns1123Label", 30, names::dns1123_label),
    format("dns1123Subdomain", 60, names::dns1123_subdomain),
    format("dns1035Label", 30, names::dns1035_label),
    format("qualifiedName", 60, names::qualified_name),
    format("dns1123LabelPrefix", 30, |text| names::dns1123_label(&names::mask_trailing_dash(text))),
    format("dns1123SubdomainPrefix", 60, |text| names::dns1123_subdomain(&names::mask_trailing_dash(text))),
    format("dns1035LabelPrefix", 30, |text| names::dns1035_label(&names::mask_trailing_dash(text))),
    format("labelValue", 40, names::label_value),
    format("uri", 1103, uri),
    format("uuid", 77, |text| problem(is_uuid(text), "does not match the UUID format")),
    format("byte", 84, |text| {
        problem(base64::engine::general_purpose::STANDARD.decode(text).is_ok(), "invalid base64")
    }),
    format("date", 21, |text| problem(Timestamp::parse(&format!("{text}T00:00:00Z")).is_some(), "invalid date")),
    format("datetime", 86, |text| problem(Timestamp::parse(text).is_some(), "invalid datetime")),
];

/// A row for each format.
macro_rules! constants {
    ($($name:literal),*) => {
        [$(overload(concat!("format_", $name), concat!("format.", $name, "() -> kubernetes.NamedFormat"), ONE, |_| {
            find($name).map(Value::opaque).ok_or(EvalError::NoSuchOverload)
        })),*]
    };
}

const CONSTANTS: [Overload; 13] = constants!(
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime"
);

const FUNCTIONS: &[Overload] = &{
    let named = overload("format-named", "format.named(string) -> optional<kubernetes.NamedFormat>", ONE, named);
    let validate = overload(
        "format-validate",
        "kubernetes.NamedFormat::validate(string) -> optional<list<string>>",
        Cost::Validates,
        validate,
    );
    let mut out = [named; CONSTANTS.len() + 2];
    out[1] = validate;
    let mut at = 0;
    while at < CONSTANTS.len() {
        out[at + 2] = CONSTANTS[at];
        at += 1;
    }
    out
};

fn find(name: &str) -> Option<FormatValue> {
    FORMATS.iter().find(|format| format.name == name).map(FormatValue)
}

fn named<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    Ok(find(args.str(0)).map_or(Value::Optional(None), |format| Value::some(Value::opaque(format))))
}

fn validate<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let format = args.get(0).as_opaque::<FormatValue>().ok_or(EvalError::NoSuchOverload)?;
    let problems = (format.0.validate)(args.str(1));
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(problems.into_iter().map(Value::text).collect())))
}

fn problem(valid: bool, text: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![text.to_owned()] }
}

fn is_uuid(text: &str) -> bool {
    let bare = text.replace('-', "");
    let grouped = text.len() == 32 || [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    bare.len() == 32 && grouped && bare.bytes().all(|b| b.is_ascii_hexdigit())
}

fn uri(text: &str) -> Vec<String> {
    problem(super::url::is_url(text), "invalid URI")
}
