//! Everything that follows from the shape of objects: patches, field ownership and server-side apply, structural
//! schemas with pruning, defaulting and validation, and OpenAPI documents. Pure: values in, values out.

pub mod apply;
pub mod json_patch;
pub mod json_path;
pub mod merge_patch;
pub mod openapi;
pub mod strategic;
pub mod structural;
#[cfg(test)]
mod test_types;
pub mod type_node;

pub use json_path::JsonPath;
pub use structural::Structural;
pub use type_node::TypeNode;
