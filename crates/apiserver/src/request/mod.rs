//! What a request says before anybody has looked at who sent it: its path, its parameters, its options, its body.

mod body;
mod decode;
mod delete_options;
mod include_object;
mod info;
mod list_options;
pub(crate) mod percent;
mod query;
mod validation;
mod write_options;

pub(crate) use body::read_limited;
pub(crate) use decode::{Expected, decode_object};
pub(crate) use decode::{SCHEME, Strictness, decode_kind};
pub(crate) use delete_options::{BodyVersions, delete_options};
pub(crate) use include_object::IncludeObject;
pub(crate) use info::RequestInfo;
pub(crate) use list_options::{list_options, sharded_list_options};
pub(crate) use query::Query;

pub(crate) use write_options::{PatchKind, WriteOptions};
