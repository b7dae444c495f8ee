//! The road that every request takes, in upstream's order. It reads from top to bottom in [`road`]; each step is a file
//! here. How far a request has come is in its type, which handlers are given.

mod audit_id;
mod audit_identity;
mod audited;
mod authenticate;
mod authorize;
mod cors;
mod deadline;
mod go_away;
mod impersonate;
pub(crate) mod observe;
mod refusal;
pub(crate) mod road;
mod running;
mod seats;
mod stages;
mod storage_versions;
pub(crate) mod traced;

pub(crate) use audited::Audited;
pub(crate) use stages::{Authorized, Request};
