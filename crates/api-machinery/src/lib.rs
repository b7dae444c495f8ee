//! What the whole project says about API objects without knowing any kind: reflection and codecs, metadata, names of
//! kinds, quantities, times, selectors, field paths and API errors. Pure: no I/O, no clock, no tasks.

// `#[api]` writes paths that start at this crate's name, also for the types in here.
extern crate self as api_machinery;

pub mod cbor;
pub mod defaults;
pub mod field_path;
pub mod fields;
pub mod gvk;
pub mod human_duration;
pub mod intstr;
pub mod json;
pub mod labels;
pub mod leaf;
pub mod meta;
pub mod names;
pub mod object;
pub mod protobuf;
pub mod quantity;
pub mod quote;
pub mod reflect;
pub mod renamed;
pub mod status;
pub mod time;
pub mod value;
pub mod yaml;

pub use api_derive::api;
