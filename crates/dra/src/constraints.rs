//! Constraints between the devices of a claim: an attribute that all share, or that all differ in.

use api_types::resource_v1::{DeviceAttribute, DeviceConstraint};

use crate::pools::Offer;

/// A value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value<'a> {
    Int(i64),
    Bool(bool),
    Text(&'a str),
    Version(&'a str),
}

/// A constraint, and the values of the devices that were chosen so far.
pub(crate) struct Constraint<'a> {
    requests: &'a [String],
    attribute: &'a str,
    must_match: bool,
    values: Vec<Value<'a>>,
}

impl<'a> Constraint<'a> {
    /// The constraint; none where it says nothing, as a field that this build does not know may have said it.
    pub(crate) fn of(constraint: &'a DeviceConstraint, distinct: bool) -> Option<Self> {
        let (attribute, must_match) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
            (Some(attribute), _) => (attribute, true),
            (None, Some(attribute)) if distinct => (attribute, false),
            _ => return None,
        };
        Some(Self { requests: &constraint.requests, attribute, must_match, values: Vec::new() })
    }

    /// Whether it is about a request, of which `part` is the alternative that was chosen.
    pub(crate) fn covers(&self, request: &str, part: &str) -> bool {
        self.requests.is_empty() || self.requests.iter().any(|name| name == request || name == part)
    }

    /// Takes a device in, if it may be.
    pub(crate) fn add(&mut self, offer: Offer<'a>) -> bool {
        let Some(value) = attribute(offer, self.attribute).and_then(value_of) else { return false };
        let is_known = self.values.contains(&value);
        let fits = if self.must_match { is_known || self.values.is_empty() } else { !is_known };
        if fits {
            self.values.push(value);
        }
        fits
    }

    /// Takes the device out that was taken in last.
    pub(crate) fn undo(&mut self) {
        self.values.pop();
    }
}

/// An attribute by its qualified name. Those of the driver's own domain may lack it.
fn attribute<'a>(offer: Offer<'a>, name: &str) -> Option<&'a DeviceAttribute> {
    let attributes = &offer.device.attributes;
    attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        attributes.get(id).filter(|_| domain == offer.slice.spec.driver)
    })
}

fn value_of(attribute: &DeviceAttribute) -> Option<Value<'_>> {
    let number = attribute.int.map(Value::Int).or(attribute.bool.map(Value::Bool));
    let text = || attribute.string.as_deref().map(Value::Text);
    number.or_else(text).or_else(|| attribute.version.as_deref().map(Value::Version))
}
