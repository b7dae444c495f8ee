//! Which parts of a capacity may be asked for.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::quantity::Quantity;
use api_types::resource_v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity};

use super::values::{Unique, fits};

const OPTIONS_MAX: usize = 10;
const NO_OPTION: &str = "default value is not valid according to the requestPolicy";

/// Checks a capacity; `shared` where several claims may have parts of it.
pub(super) fn validate(path: &Path, capacity: &DeviceCapacity, shared: bool, errors: &mut ErrorList) {
    let (path, Some(policy)) = (path.child("requestPolicy"), &capacity.request_policy) else { return };
    if !shared {
        return errors.push(path.forbidden("allowMultipleAllocations must be true"));
    }
    let CapacityRequestPolicy { default, valid_values, valid_range } = policy;
    match (valid_values.is_empty(), valid_range) {
        (false, Some(_)) => errors.push(path.forbidden(
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        )),
        (false, None) => {
            need_default(&path, default.as_ref(), "validValues", errors);
            validate_values(&path.child("validValues"), valid_values, default.as_ref(), &capacity.value, errors);
        }
        (true, Some(range)) => {
            need_default(&path, default.as_ref(), "validRange", errors);
            Range { path: path.child("validRange"), range, default: default.as_ref(), capacity: &capacity.value }
                .validate(errors);
        }
        (true, None) => {}
    }
}

fn need_default(path: &Path, default: Option<&Quantity>, with: &str, errors: &mut ErrorList) {
    if default.is_none() {
        errors.push(path.child("default").required(format!("required when {with} is defined")));
    }
}

fn validate_values(
    path: &Path,
    options: &[Quantity],
    default: Option<&Quantity>,
    capacity: &Quantity,
    errors: &mut ErrorList,
) {
    if !options.is_sorted() {
        errors.push(path.invalid(BadValue::list(&texts(options)), "values must be sorted in ascending order"));
    }
    if !fits(path, options, OPTIONS_MAX, errors) {
        return;
    }
    let mut seen = Unique::new();
    for (index, option) in options.iter().enumerate() {
        let path = path.index(index);
        if option > capacity {
            errors.push(path.invalid(option, format!("option is larger than capacity value: {capacity}")));
        }
        seen.note(&path, option, option, errors);
    }
    if let Some(default) = default.filter(|default| !options.contains(default)) {
        errors.push(path.invalid(default, NO_OPTION));
    }
}

fn texts(options: &[Quantity]) -> Vec<String> {
    options.iter().map(ToString::to_string).collect()
}

/// A range of what may be asked for, with what it is held against.
struct Range<'a> {
    path: Path,
    range: &'a CapacityRequestPolicyRange,
    default: Option<&'a Quantity>,
    capacity: &'a Quantity,
}

impl Range<'_> {
    fn validate(&self, errors: &mut ErrorList) {
        let at = self.path.child("min");
        let Some(min) = &self.range.min else {
            return errors.push(at.required("required when validRange is defined"));
        };
        if min > self.capacity {
            errors.push(at.invalid(min, format!("min is larger than capacity value: {}", self.capacity)));
        }
        if let Some(default) = self.default.filter(|default| *default < min) {
            errors.push(at.invalid(default, format!("default is less than min: {min}")));
        }
        self.validate_max(min, errors);
        self.validate_step(min, errors);
    }

    fn validate_max(&self, min: &Quantity, errors: &mut ErrorList) {
        let (at, Some(max)) = (self.path.child("max"), &self.range.max) else { return };
        if min > max {
            errors.push(at.invalid(min, format!("min is larger than max: {max}")));
        }
        if max > self.capacity {
            errors.push(at.invalid(max, format!("max is larger than capacity value: {}", self.capacity)));
        }
        if let Some(default) = self.default.filter(|default| *default > max) {
            errors.push(at.invalid(default, format!("default is more than max: {max}")));
        }
    }

    fn validate_step(&self, min: &Quantity, errors: &mut ErrorList) {
        let (at, Some(step)) = (self.path.child("step"), &self.range.step) else { return };
        let mut first = min.clone();
        first.add(step);
        if &first > self.capacity {
            errors.push(at.invalid(step, format!("one step {first} is larger than capacity value: {}", self.capacity)));
        }
        for value in self.default.into_iter().chain(&self.range.max) {
            if !is_on_grid(value, min, step) {
                let detail = format!("value is not a multiple of a given step ({step}) from ({min})");
                errors.push(at.invalid(value, detail));
            }
        }
    }
}

/// Whether a value is some steps above the least. Nothing is a step of none from anything but itself.
fn is_on_grid(value: &Quantity, min: &Quantity, step: &Quantity) -> bool {
    let distance = i128::from(value.value()) - i128::from(min.value());
    distance.checked_rem(i128::from(step.value())).map_or(distance == 0, |rest| rest == 0)
}
