//! What takes input from outside.

mod codecs;
mod expressions;
mod patches;
mod requests;
mod schemas;
mod texts;

use crate::engine::Target;

/// All of them. Another one is a line here and a folder of inputs.
pub(crate) const TARGETS: &[Target] = &[
    codecs::JSON,
    codecs::YAML,
    codecs::CBOR,
    codecs::PROTOBUF,
    patches::JSON_PATCH,
    patches::MERGE_PATCH,
    patches::STRATEGIC_PATCH,
    patches::APPLY,
    patches::FIELD_SETS,
    texts::LABEL_SELECTORS,
    texts::FIELD_SELECTORS,
    texts::QUANTITIES,
    texts::TIMES,
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

/// How an outcome answers.
fn told<T, E: std::fmt::Display>(outcome: Result<T, E>, well: impl FnOnce(T) -> String) -> String {
    outcome.map_or_else(|error| error.to_string(), well)
}
