//! Reading messages into structs.

use std::borrow::Cow;

use super::decoder::{Decoder, WireError, WireValue};
use crate::reflect::{Field, Map, NO_FIELD, Reflect, ViewMut};

impl<'a> Decoder<'a> {
    /// Reads the whole message into a struct; unknown fields are dropped.
    ///
    /// # Errors
    /// When the bytes are not such a message.
    pub fn read_message(&mut self, target: &mut dyn Reflect) -> Result<(), WireError> {
        let by_number = target.struct_type().by_number;
        while let Some((number, value)) = self.next()? {
            let index = usize::try_from(number).ok().and_then(|number| by_number.get(number));
            if let Some(index) = index.filter(|index| **index != NO_FIELD) {
                self.read_field(target.field_mut(usize::from(*index)), number, &value)?;
            }
        }
        Ok(())
    }

    /// The value comes by reference: to move it costs more than to read it.
    fn read_field(&mut self, target: &mut dyn Field, number: u64, value: &WireValue<'a>) -> Result<(), WireError> {
        let wrong = |_| WireError::WrongType(value.kind(), number);
        match target.view_mut() {
            ViewMut::Str(slot) => *slot = value.text().map_err(wrong)?,
            ViewMut::Struct(slot) => self.nested(value.bytes().map_err(wrong)?)?.read_message(slot)?,
            ViewMut::Optional(slot) => self.read_field(slot.ensure(), number, value)?,
            ViewMut::List(slot) => self.read_field(slot.push_default(), number, value)?,
            ViewMut::Map(slot) => self.nested(value.bytes().map_err(wrong)?)?.read_entry(slot)?,
            ViewMut::Leaf(slot) => slot.read_wire(&mut self.nested(value.bytes().map_err(wrong)?)?)?,
            ViewMut::Bool(slot) => *slot = value.int().map_err(wrong)? != 0,
            ViewMut::Int32(slot) => *slot = value.int32().map_err(wrong)?,
            ViewMut::Int64(slot) => *slot = value.int().map_err(wrong)?,
            ViewMut::Float(slot) => match value {
                WireValue::Fixed64(bits) => *slot = f64::from_bits(*bits),
                other => return Err(WireError::WrongType(other.kind(), number)),
            },
            ViewMut::Bytes(slot) => *slot = value.bytes().map_err(wrong)?.to_vec(),
            ViewMut::Dynamic(_) => {}
        }
        Ok(())
    }

    fn read_entry(&mut self, target: &mut dyn Map) -> Result<(), WireError> {
        let (mut key, mut found) = (Cow::Borrowed(""), None);
        while let Some((number, value)) = self.next()? {
            match number {
                1 => key = value.shared_text()?,
                2 => found = Some(value),
                _ => {}
            }
        }
        let (slot, _) = target.upsert(&key);
        match found {
            Some(value) => self.read_field(slot, 2, &value),
            None => Ok(()),
        }
    }
}
