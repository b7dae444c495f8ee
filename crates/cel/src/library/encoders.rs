//! Base64.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::cost::Cost;
use crate::error::EvalError;
use crate::function::{Overload, overload};
use crate::value::Value;

use super::{Library, NO_MACROS};

/// `base64.encode` and `base64.decode`.
pub const ENCODERS: Library = Library { name: "encoders", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const FUNCTIONS: &[Overload] = &[
    overload("base64_decode_string", "base64.decode(string) -> bytes", Cost::Fixed(1), |args| {
        let text = args.str(0);
        let decoded = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text));
        decoded.map(Value::blob).map_err(|_| EvalError::failed("illegal base64 data at input byte 0"))
    }),
    overload("base64_encode_bytes", "base64.encode(bytes) -> string", Cost::Fixed(1), |args| match args.get(0) {
        Value::Bytes(bytes) => Ok(Value::text(STANDARD.encode(bytes.as_bytes()))),
        _ => Err(EvalError::NoSuchOverload),
    }),
];
