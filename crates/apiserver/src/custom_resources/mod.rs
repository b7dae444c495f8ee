//! Kinds that come and go at run time: definitions are followed, and what they define is served.

mod served;

pub(crate) use served::{ServedKind, ServedKinds};
