//! A small kind for the tests of this crate.

mod sample;

pub(crate) use sample::Sample;

pub(crate) const PACKAGE: &str = "test.v1";

/// The type of a whole [`Sample`].
pub(crate) fn node() -> crate::TypeNode<'static> {
    use api_machinery::reflect::{Field, Shape};
    match <Sample as Field>::shape() {
        Shape::Struct(table) => crate::TypeNode::of_struct(table),
        _ => crate::TypeNode::deduced(),
    }
}
