//! `find` and `findAll`.

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::pattern;
use crate::value::Value;

/// `find` and `findAll`.
pub const REGEX: Library = Library { name: "regex", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const FUNCTIONS: &[Overload] = &[
    overload("string_find_string", "string::find(string) -> string", Cost::Finds, |args| {
        let found = with(args, |regex| regex.find(args.str(0)).map(|found| found.as_str().to_owned()))?;
        Ok(Value::text(found.unwrap_or_default()))
    }),
    overload("string_find_all_string", "string::findAll(string) -> list<string>", Cost::Finds, |a| find_all(a, -1)),
    overload("string_find_all_string_int", "string::findAll(string, int) -> list<string>", Cost::Finds, |args| {
        find_all(args, args.int(2))
    }),
];

fn with<T>(args: &Args<'_, '_>, run: impl FnOnce(&::regex::Regex) -> T) -> Out<T> {
    if let Some(regex) = args.regex {
        return Ok(run(regex));
    }
    let regex = pattern::compile(args.str(1)).map_err(|error| EvalError::failed(format!("Illegal regex: {error}")))?;
    Ok(run(&regex))
}

fn find_all<'v>(args: &Args<'_, 'v>, limit: i64) -> Out<Value<'v>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = with(args, |regex| {
        regex.find_iter(args.str(0)).take(limit).map(|found| Value::text(found.as_str())).collect()
    })?;
    Ok(Value::list(found))
}
