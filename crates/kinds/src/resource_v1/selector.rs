//! Expressions that select devices: what they may use, and what is told of those that cannot be used.

use std::sync::LazyLock;

use api_machinery::field_path::{ErrorList, Path};
use api_types::resource_v1::DeviceSelector;
use cel::kubernetes::Minor;
use cel::{Environment, Type};
use dra::selector::{DeviceType, Includes, environment};
use feature_gates::Gates;

use super::values;
use crate::gates;

/// Greatest length of an expression.
const EXPRESSION_MAX_BYTES: usize = 10 * 1024;
/// What an expression may cost at most by what is known of devices.
const MAX_COST: u64 = 1_000_000;
const SELECTORS_MAX: usize = 32;
/// The release whose expressions every server of the cluster understands while it is brought up to this one.
const COMPATIBLE: Minor = Minor(35);
const CURRENT: Minor = Minor(36);

/// How an expression is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// It is stored already, so that whatever this server understands will do.
    pub(crate) stored: bool,
    /// What the process has.
    pub(crate) gates: &'a Gates,
}

impl Reading<'_> {
    fn shares(self) -> bool {
        self.gates.enabled(gates::CONSUMABLE_CAPACITY)
    }

    fn environment(self) -> &'static Environment {
        use Includes::{Known, Unknown};
        static NEW: LazyLock<Environment> = LazyLock::new(|| environment(COMPATIBLE, false, Unknown));
        static NEW_SHARED: LazyLock<Environment> = LazyLock::new(|| environment(COMPATIBLE, true, Unknown));
        static NEW_LISTS: LazyLock<Environment> = LazyLock::new(|| environment(COMPATIBLE, false, Known));
        static NEW_SHARED_LISTS: LazyLock<Environment> = LazyLock::new(|| environment(COMPATIBLE, true, Known));
        static STORED: LazyLock<Environment> = LazyLock::new(|| environment(CURRENT, false, Known));
        static STORED_SHARED: LazyLock<Environment> = LazyLock::new(|| environment(CURRENT, true, Known));
        match (self.stored, self.shares(), self.gates.enabled(gates::LIST_ATTRIBUTES)) {
            (false, false, false) => &NEW,
            (false, true, false) => &NEW_SHARED,
            (false, false, true) => &NEW_LISTS,
            (false, true, true) => &NEW_SHARED_LISTS,
            (true, false, _) => &STORED,
            (true, true, _) => &STORED_SHARED,
        }
    }
}

/// Checks a list of selectors.
pub(super) fn validate(path: &Path, selectors: &[DeviceSelector], reading: Reading<'_>, errors: &mut ErrorList) {
    if !values::fits(path, selectors, SELECTORS_MAX, errors) {
        return;
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index).child("cel");
        match &selector.cel {
            Some(cel) => expression(&path.child("expression"), &cel.expression, reading, errors),
            None => errors.push(path.required("")),
        }
    }
}

fn expression(path: &Path, text: &str, reading: Reading<'_>, errors: &mut ErrorList) {
    if text.len() > EXPRESSION_MAX_BYTES {
        return errors.push(path.too_long(EXPRESSION_MAX_BYTES));
    }
    let program = match reading.environment().compile(text) {
        Ok(program) => program,
        Err(issues) => return errors.push(path.invalid(text, format!("compilation failed: {issues}"))),
    };
    let result = program.result_type();
    if !matches!(result, Type::Bool | Type::Dyn) {
        return errors.push(path.invalid(text, format!("must evaluate to bool or the unknown type, not {result}")));
    }
    if program.estimate(&DeviceType { shared: reading.shares() }).max > MAX_COST {
        errors.push(path.forbidden("too complex, exceeds cost limit"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_compiled_and_bounded() {
        let long = format!("true{}", " ".repeat(EXPRESSION_MAX_BYTES));
        let costly = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                      device.attributes.all(d, a + b + c + d == ''))))";
        for (text, expected) in [
            ("device.driver == 'gpu.example.com'", ""),
            ("device.attributes['gpu.example.com'].model == 'x'", ""),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi')) >= 0", ""),
            ("cel.bind(a, device.attributes['x.y'], a.fast && semver('1.0.0').isLessThan(a.version))", ""),
            ("device.allowMultipleAllocations == true", ""),
            (&long, "p: Too long: may not be more than 10240 bytes"),
            (
                "device.driver",
                "p: Invalid value: \"device.driver\": must evaluate to bool or the unknown type, not string",
            ),
            (
                "device.nothing",
                "p: Invalid value: \"device.nothing\": compilation failed: ERROR: <input>:1:7: undefined field 'nothing'",
            ),
            (costly, "p: Forbidden: too complex, exceeds cost limit"),
        ] {
            let mut errors = ErrorList::new();
            let gates = Gates::default().with(gates::CONSUMABLE_CAPACITY, true);
            expression(&Path::new("p"), text, Reading { stored: false, gates: &gates }, &mut errors);
            let found = errors.iter().map(ToString::to_string).collect::<String>();
            assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{text}: {found}");
        }
    }

    #[test]
    fn a_field_is_there_with_its_feature() {
        let gates = Gates::default().with(gates::CONSUMABLE_CAPACITY, false);
        for stored in [false, true] {
            let mut errors = ErrorList::new();
            let reading = Reading { stored, gates: &gates };
            expression(&Path::new("p"), "device.allowMultipleAllocations == true", reading, &mut errors);
            assert_eq!(errors.len(), 1);
        }
    }
    #[test]
    fn what_attributes_include_is_asked_by_the_gate_or_where_it_was_before() {
        let text = "device.attributes['d'].roots.includes('a')";
        for (stored, on, expected) in
            [(false, true, true), (false, false, false), (true, false, true), (true, true, true)]
        {
            let gates = Gates::default().with(gates::LIST_ATTRIBUTES, on);
            let mut errors = ErrorList::new();
            expression(&Path::new("p"), text, Reading { stored, gates: &gates }, &mut errors);
            assert_eq!(errors.is_empty(), expected, "{stored} {on}: {errors:?}");
        }
    }
}
