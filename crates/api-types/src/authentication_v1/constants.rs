//! Well-known names and the values of string types.

pub const IMPERSONATE_GROUP_HEADER: &str = "Impersonate-Group";
pub const IMPERSONATE_UID_HEADER: &str = "Impersonate-Uid";
pub const IMPERSONATE_USER_EXTRA_HEADER_PREFIX: &str = "Impersonate-Extra-";
pub const IMPERSONATE_USER_HEADER: &str = "Impersonate-User";
