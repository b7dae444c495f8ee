//! Constraints between the devices of a claim: an attribute that all share, or that all differ in.

use api_types::resource_v1::{DeviceAttribute, DeviceConstraint};

use crate::features::Features;
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
    list_attributes: bool,
    /// Of devices that must match, what all of those up to each have in common; else what each has.
    values: Vec<Vec<Value<'a>>>,
}

impl<'a> Constraint<'a> {
    /// The constraint; none where it says nothing, as a field that this build does not know may have said it.
    pub(crate) fn of(constraint: &'a DeviceConstraint, features: Features) -> Option<Self> {
        let (attribute, must_match) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
            (Some(attribute), _) => (attribute, true),
            (None, Some(attribute)) if features.consumable_capacity => (attribute, false),
            _ => return None,
        };
        let (requests, list_attributes) = (&constraint.requests, features.list_attributes);
        Some(Self { requests, attribute, must_match, list_attributes, values: Vec::new() })
    }

    /// Whether it is about a request, of which `part` is the alternative that was chosen.
    pub(crate) fn covers(&self, request: &str, part: &str) -> bool {
        self.requests.is_empty() || self.requests.iter().any(|name| name == request || name == part)
    }

    /// Takes a device in, if it may be. One that has several values has one in common with the others, or none with any.
    pub(crate) fn add(&mut self, offer: Offer<'a>) -> bool {
        let Some(attribute) = attribute(offer, self.attribute) else { return false };
        let mut own = if self.list_attributes { list_of(attribute) } else { Vec::new() };
        own.extend(value_of(attribute));
        if self.must_match {
            if let Some(common) = self.values.last() {
                own.retain(|value| common.contains(value));
            }
        } else if self.values.iter().flatten().any(|value| own.contains(value)) {
            return false;
        }
        let fits = !own.is_empty();
        if fits {
            self.values.push(own);
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

/// The values of a list; only one of the lists is set.
fn list_of(attribute: &DeviceAttribute) -> Vec<Value<'_>> {
    let numbers = attribute.ints.iter().copied().map(Value::Int);
    let scalars = numbers.chain(attribute.bools.iter().copied().map(Value::Bool));
    let texts = attribute.strings.iter().map(|text| Value::Text(text));
    scalars.chain(texts).chain(attribute.versions.iter().map(|version| Value::Version(version))).collect()
}
