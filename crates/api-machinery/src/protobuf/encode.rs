//! Writing structs as messages.

use super::encoder::Encoder;
use crate::reflect::{Field, List, Map, Reflect, View};

impl Encoder {
    /// Writes the members of a struct.
    pub fn members(&mut self, value: &dyn Reflect) {
        let table = value.struct_type();
        let set = value.present() | table.wire_always;
        for &(number, index) in table.wire_order.iter().rev() {
            if set >> index & 1 != 0 {
                self.field(number, value.field(usize::from(index)));
            }
        }
    }

    /// Writes a field under a number.
    pub fn field(&mut self, number: u32, field: &dyn Field) {
        match field.view() {
            View::Bool(value) => self.bool(number, value),
            View::Int32(value) => self.int(number, i64::from(value)),
            View::Int64(value) => self.int(number, value),
            View::Float(value) => self.double(number, value),
            View::Str(value) => self.bytes(number, value.as_bytes()),
            // Nil bytes are not written; upstream cannot tell empty ones from them after a round trip.
            View::Bytes([]) => {}
            View::Bytes(value) => self.bytes(number, value),
            View::Struct(value) => self.message(number, |out| out.members(value)),
            View::Leaf(leaf) => self.message(number, |out| leaf.write_wire(out)),
            View::Optional(None) | View::Dynamic(_) => {}
            View::Optional(Some(value)) => self.field(number, value),
            View::List(list) => self.list(number, list),
            View::Map(map) => self.map(number, map),
        }
    }

    fn list(&mut self, number: u32, list: &dyn List) {
        for item in (0..list.len()).rev().filter_map(|index| list.item(index)) {
            self.entry(number, item);
        }
    }

    fn map(&mut self, number: u32, map: &dyn Map) {
        map.each_back(&mut |key, value| {
            self.message(number, |out| {
                out.entry(2, value);
                out.bytes(1, key.as_bytes());
            });
        });
    }

    /// Writes an entry of a list or map, which is there even when it is empty.
    fn entry(&mut self, number: u32, value: &dyn Field) {
        match value.view() {
            View::Bytes(value) => self.bytes(number, value),
            _ => self.field(number, value),
        }
    }
}
