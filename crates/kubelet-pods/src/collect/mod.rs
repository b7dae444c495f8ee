//! Making room: dead containers and sandboxes, logs nobody owns, logs that grew too long, images nobody uses.

pub(crate) mod containers;
pub(crate) mod images;
pub(crate) mod logs;
