//! Expressions that select devices: what they may use, and what comes of them.

use std::sync::Arc;

use api_types::resource_v1::{Device, DeviceAttribute};
use cel::ast::Name;
use cel::kubernetes::{DEVICES, Minor, PER_CALL_LIMIT, QuantityValue, SemverValue, environment as of_kubernetes};
use cel::library::BINDINGS;
use cel::{
    Budget, Built, Entries, Environment, Hints, Map, Object, ProgramCache, Range, Text, Type, TypeProvider, Value,
    Variables,
};

/// The variable that stands for the device.
pub const VARIABLE: &str = "device";
const DEVICE: &str = "kubernetes.DRADevice";
const QUANTITY: &str = "kubernetes.Quantity";
/// The release whose expressions are understood.
const CURRENT: Minor = Minor(36);

/// Sizes that are known of devices.
const MAX_DRIVER: u64 = 63;
const MAX_ENTRIES: u64 = 32;
const MAX_VALUE: u64 = 64;

/// Compiled expressions that are kept.
const KEPT: usize = 128;

/// The structure of a device.
pub struct DeviceType {
    /// Whether it says that claims may share it.
    pub shared: bool,
}

impl TypeProvider for DeviceType {
    fn has_type(&self, name: &str) -> bool {
        name == DEVICE
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        let by_domain = |value: Type| Type::map(Type::String, Type::map(Type::String, value));
        match field {
            _ if type_name != DEVICE => None,
            "driver" => Some(Type::String),
            "attributes" => Some(by_domain(Type::Dyn)),
            "capacity" => Some(by_domain(Type::opaque(QUANTITY))),
            "allowMultipleAllocations" if self.shared => Some(Type::Bool),
            _ => None,
        }
    }
}

impl Hints for DeviceType {
    fn size(&self, path: &[Name]) -> Option<Range> {
        let path: Vec<&str> = path.iter().map(|step| &**step).collect();
        let max = match path.as_slice() {
            [VARIABLE, "driver"] => MAX_DRIVER,
            [VARIABLE, "attributes" | "capacity"] | [VARIABLE, "attributes" | "capacity", _] => MAX_ENTRIES,
            [VARIABLE, "attributes", _, _] => MAX_VALUE,
            _ => return None,
        };
        Some(Range::new(0, max))
    }
}

/// Whether expressions may ask what an attribute includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Includes {
    /// They may: they are stored already, or the gate `DRAListTypeAttributes` is on.
    Known,
    /// They may not.
    Unknown,
}

/// What expressions about devices may use in a release.
#[must_use]
pub fn environment(release: Minor, shared: bool, includes: Includes) -> Environment {
    let environment = of_kubernetes(release).with_library(&BINDINGS);
    let environment = match includes {
        Includes::Known => environment.with_library(&DEVICES),
        Includes::Unknown => environment,
    };
    environment.with_types(Arc::new(DeviceType { shared })).with_variable(VARIABLE, Type::object(DEVICE))
}

/// Why an expression does not tell whether it wants a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is none.
    #[error("CEL compile error: {0}")]
    Compile(String),
    /// It failed for this device.
    #[error("CEL runtime error: {0}")]
    Runtime(String),
}

/// Compiled expressions.
pub struct Selectors(ProgramCache);

impl Selectors {
    /// No expression yet; whether devices say that claims may share them.
    #[must_use]
    pub fn new(shared: bool) -> Self {
        Self(ProgramCache::new(environment(CURRENT, shared, Includes::Known), KEPT))
    }

    /// Whether an expression wants a driver's device.
    ///
    /// # Errors
    /// When the expression cannot be compiled, or fails.
    pub fn matches(&self, expression: &str, driver: &str, device: &Device) -> Result<bool, SelectorError> {
        let program = self.0.compile(expression).map_err(|issues| SelectorError::Compile(issues.to_string()))?;
        let device = value(driver, device).map_err(SelectorError::Runtime)?;
        let variables = Variables::default().with(VARIABLE, device);
        match program.evaluate(&variables, Budget::of(PER_CALL_LIMIT)).result {
            Ok(Value::Bool(wanted)) => Ok(wanted),
            Ok(other) => {
                let what = format!("CEL expression did not evaluate to bool, got {}", other.type_of());
                Err(SelectorError::Runtime(what))
            }
            Err(error) => Err(SelectorError::Runtime(error.to_string())),
        }
    }
}

/// A device as expressions see it.
fn value<'a>(driver: &'a str, device: &'a Device) -> Result<Value<'a>, String> {
    let mut attributes = Domains::default();
    for (name, attribute) in &device.attributes {
        attributes.add(driver, name, attribute_value(name, attribute)?);
    }
    let mut capacity = Domains::default();
    for (name, amount) in &device.capacity {
        capacity.add(driver, name, Value::opaque(QuantityValue(amount.value.clone())));
    }
    let fields = vec![
        ("driver".into(), text(driver)),
        ("allowMultipleAllocations".into(), Value::Bool(device.allow_multiple_allocations == Some(true))),
        ("attributes".into(), attributes.value()?),
        ("capacity".into(), capacity.value()?),
    ];
    Ok(Value::Object(Object::Built(Arc::new(Built { type_name: DEVICE.into(), fields }))))
}

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

/// Lists come first, as upstream. Whether there may be any is decided where slices are written.
fn attribute_value<'a>(name: &str, attribute: &'a DeviceAttribute) -> Result<Value<'a>, String> {
    let (numbers, flags) = (&attribute.ints, &attribute.bools);
    if !numbers.is_empty() {
        return Ok(Value::list(numbers.iter().copied().map(Value::Int).collect()));
    }
    if !flags.is_empty() {
        return Ok(Value::list(flags.iter().copied().map(Value::Bool).collect()));
    }
    if !attribute.strings.is_empty() {
        return Ok(Value::list(attribute.strings.iter().map(|content| text(content)).collect()));
    }
    if !attribute.versions.is_empty() {
        return attribute.versions.iter().map(|own| version(own)).collect::<Result<_, _>>().map(Value::list);
    }
    if let Some(number) = attribute.int {
        return Ok(Value::Int(number));
    }
    if let Some(flag) = attribute.bool {
        return Ok(Value::Bool(flag));
    }
    if let Some(content) = &attribute.string {
        return Ok(text(content));
    }
    let own = attribute.version.as_ref().ok_or_else(|| format!("unsupported attribute value: {name}"))?;
    version(own)
}

fn version<'a>(text: &str) -> Result<Value<'a>, String> {
    let parsed = SemverValue::parse(text).map_err(|error| format!("parse semantic version: {error}"))?;
    Ok(Value::opaque(parsed))
}

/// Values by domain and name. A name without a domain is in the driver's.
#[derive(Default)]
struct Domains<'a>(Vec<(&'a str, Vec<(&'a str, Value<'a>)>)>);

impl<'a> Domains<'a> {
    fn add(&mut self, driver: &'a str, name: &'a str, value: Value<'a>) {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        match self.0.iter_mut().find(|(own, _)| *own == domain) {
            Some((_, values)) => values.push((name, value)),
            None => self.0.push((domain, vec![(name, value)])),
        }
    }

    /// What is in no domain is not there; a domain that nobody knows is empty.
    fn value(self) -> Result<Value<'a>, String> {
        let nothing = Value::Map(Map::Shared(Arc::new(Entries::default())));
        let mut domains = Entries::default().otherwise(nothing);
        for (domain, values) in self.0 {
            let values = values.into_iter().map(|(name, value)| (text(name), value));
            let values = Value::map(values).map_err(|error| error.to_string())?;
            domains.insert(text(domain), values).map_err(|error| error.to_string())?;
        }
        Ok(Value::Map(Map::Shared(Arc::new(domains))))
    }
}
