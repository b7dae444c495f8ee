//! Attributes of devices, of which each may be one value or a list of some: `includes` (KEP-5491).

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::Value;

/// How many values all attributes of a device have at most. Lists that are longer are not looked through.
const MOST: usize = 48;

/// What is asked of an attribute.
pub const DEVICES: Library = Library { name: "devices", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const FUNCTIONS: &[Overload] =
    &[overload("dra_includes_dyn_dyn", "dyn::includes(dyn) -> bool", Cost::Fixed(MOST as u64), includes)];

/// One value includes itself alone.
fn includes<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let (target, wanted) = (args.get(0), args.get(1));
    let Value::List(list) = target else { return Ok(Value::Bool(target.equals(wanted))) };
    if list.iter().take(MOST).any(|item| item.equals(wanted)) {
        return Ok(Value::Bool(true));
    }
    if list.len() > MOST {
        let why = format!("'includes' function cannot be applied to lists longer than {MOST} values");
        return Err(EvalError::failed(why));
    }
    Ok(Value::Bool(false))
}
