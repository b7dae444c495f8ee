//! Field ownership and server-side apply.
//!
//! Every write is recorded in `metadata.managedFields`: which manager owns which fields. An apply merges what a manager
//! wants into the live object, refuses to take fields that others own, and removes what the manager no longer wants.
//! The parts, from the bottom: [`path`] (places in an object), [`field_set`] (sets of them, and their `FieldsV1` form),
//! [`typed`] (walks over a value and its type: validate, compare, merge, remove), [`managers`] (the record itself) and
//! [`field_manager`] (what requests call).
//! Concept: <https://kubernetes.io/docs/reference/using-api/server-side-apply/>

pub mod field_manager;
pub mod field_set;
pub mod managers;
pub mod path;
pub mod scale;
pub mod typed;

mod last_applied;
mod left_alone;

pub use field_manager::{ApplyError, ApplyOptions, Conflict, CustomVersions, FieldManager, Versions};
pub use field_set::FieldSet;
pub use managers::{Managers, ManagersError};
pub use path::{Element, FieldPath};
pub use scale::ReplicasPath;
