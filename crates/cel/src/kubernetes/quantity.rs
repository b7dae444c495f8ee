//! Quantities.

use std::cmp::Ordering;

use api_machinery::quantity::{Format, Quantity};

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{Opaque, Value};

/// Quantities.
pub const QUANTITY: Library = Library { name: "quantity", functions: FUNCTIONS, types: &[NAME], macros: NO_MACROS };

const NAME: &str = "kubernetes.Quantity";
const ONE: Cost = Cost::Fixed(1);

/// A quantity as a value.
#[derive(Debug, Clone)]
pub struct QuantityValue(pub Quantity);

impl Opaque for QuantityValue {
    fn type_name(&self) -> &'static str {
        NAME
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }
}

const FUNCTIONS: &[Overload] = &[
    overload("string_to_quantity", "quantity(string) -> kubernetes.Quantity", Cost::Reads(0, 1), |args| {
        let parsed = Quantity::parse(args.str(0));
        parsed.map(made).map_err(|error| EvalError::failed(error.to_string()))
    }),
    overload("is_quantity_string", "isQuantity(string) -> bool", Cost::Reads(0, 1), |args| {
        Ok(Value::Bool(Quantity::parse(args.str(0)).is_ok()))
    }),
    overload("quantity_sign", "kubernetes.Quantity::sign() -> int", ONE, |args| {
        Ok(Value::Int(number(quantity(args, 0)?.cmp_i64(0))))
    }),
    overload("quantity_is_integer", "kubernetes.Quantity::isInteger() -> bool", ONE, |args| {
        Ok(Value::Bool(quantity(args, 0)?.as_i64().is_some()))
    }),
    overload("quantity_as_integer", "kubernetes.Quantity::asInteger() -> int", ONE, |args| {
        let value = quantity(args, 0)?.as_i64().map(Value::Int);
        value.ok_or_else(|| EvalError::failed("cannot convert value to integer"))
    }),
    overload("quantity_get_float", "kubernetes.Quantity::asApproximateFloat() -> double", ONE, |args| {
        Ok(Value::Double(quantity(args, 0)?.as_f64()))
    }),
    overload("quantity_add", "kubernetes.Quantity::add(kubernetes.Quantity) -> kubernetes.Quantity", ONE, |args| {
        changed(args, Quantity::add)
    }),
    overload("quantity_add_int", "kubernetes.Quantity::add(int) -> kubernetes.Quantity", ONE, |args| {
        changed(args, Quantity::add)
    }),
    overload("quantity_sub", "kubernetes.Quantity::sub(kubernetes.Quantity) -> kubernetes.Quantity", ONE, |args| {
        changed(args, Quantity::sub)
    }),
    overload("quantity_sub_int", "kubernetes.Quantity::sub(int) -> kubernetes.Quantity", ONE, |args| {
        changed(args, Quantity::sub)
    }),
    overload("quantity_is_less_than", "kubernetes.Quantity::isLessThan(kubernetes.Quantity) -> bool", ONE, |args| {
        Ok(Value::Bool(compare(args)? == Ordering::Less))
    }),
    overload(
        "quantity_is_greater_than",
        "kubernetes.Quantity::isGreaterThan(kubernetes.Quantity) -> bool",
        ONE,
        |args| Ok(Value::Bool(compare(args)? == Ordering::Greater)),
    ),
    overload("quantity_compare_to", "kubernetes.Quantity::compareTo(kubernetes.Quantity) -> int", ONE, |args| {
        Ok(Value::Int(number(compare(args)?)))
    }),
];

fn made<'v>(quantity: Quantity) -> Value<'v> {
    Value::opaque(QuantityValue(quantity))
}

fn quantity<'c>(args: &'c Args<'_, '_>, index: usize) -> Out<&'c Quantity> {
    args.get(index).as_opaque::<QuantityValue>().map(|value| &value.0).ok_or(EvalError::NoSuchOverload)
}

fn number(order: Ordering) -> i64 {
    i64::from(order as i8)
}

fn compare(args: &Args<'_, '_>) -> Out<Ordering> {
    Ok(quantity(args, 0)?.cmp(quantity(args, 1)?))
}

fn changed<'v>(args: &Args<'_, 'v>, change: fn(&mut Quantity, &Quantity)) -> Out<Value<'v>> {
    let mut out = quantity(args, 0)?.clone();
    match args.get(1) {
        Value::Int(value) => change(&mut out, &Quantity::from_value(*value, Format::DecimalSi)),
        _ => change(&mut out, quantity(args, 1)?),
    }
    Ok(made(out))
}
