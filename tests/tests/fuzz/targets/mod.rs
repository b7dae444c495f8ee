//! What takes input from outside.

mod codecs;
mod expressions;
mod kinds_of_objects;
mod patches;
mod requests;
mod schemas;
mod stored;
mod texts;
mod tokens;

use kinds::rules::Rules;

use crate::engine::Target;

/// All of them. Another one is a line here, and a folder of inputs in `tests/corpus`.
pub(crate) const TARGETS: &[Target] = &[
    codecs::JSON,
    codecs::YAML,
    codecs::CBOR,
    codecs::PROTOBUF,
    stored::STORED,
    kinds_of_objects::KINDS,
    patches::JSON_PATCH,
    patches::MERGE_PATCH,
    patches::STRATEGIC_PATCH,
    patches::APPLY,
    patches::FIELD_SETS,
    texts::LABEL_SELECTORS,
    texts::FIELD_SELECTORS,
    texts::SHARD_SELECTORS,
    texts::QUANTITIES,
    texts::TIMES,
    texts::SCHEDULES,
    texts::JSON_PATHS,
    tokens::CONTINUE_TOKENS,
    schemas::SCHEMAS,
    schemas::RULES,
    expressions::SOURCES,
    expressions::OBJECTS,
    requests::REQUESTS,
];

/// The text of an input, up to the first byte that is none; targets that take text get no other.
fn text(input: &[u8]) -> &str {
    match std::str::from_utf8(input) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&input[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The parts of an input, which lines of `---` divide; what is missing is empty.
fn parts<const N: usize>(input: &[u8]) -> [&str; N] {
    let mut rest = text(input).split("\n---\n");
    std::array::from_fn(|_| rest.next().unwrap_or_default())
}

/// The kind that the first line of an input names (or any, but always the same, where it names none), and the rest.
fn of_kind(input: &[u8]) -> (&'static dyn Rules, &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (line, rest) = input.split_at(end);
    let named = kinds::all().find(|rules| line_of(*rules).as_bytes() == line);
    let any = || {
        let number: usize = line.iter().map(|byte| usize::from(*byte)).sum();
        kinds::all().nth(number % kinds::all().count()).expect("there are kinds")
    };
    (named.unwrap_or_else(any), rest.strip_prefix(b"\n").unwrap_or(rest))
}

/// The line that names a kind.
fn line_of(rules: &dyn Rules) -> String {
    format!("{} {}", rules.info().api_version(), rules.info().kind)
}
