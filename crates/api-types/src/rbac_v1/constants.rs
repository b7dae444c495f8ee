//! Well-known names and the values of string types.

pub const API_GROUP_ALL: &str = "*";
pub const AUTO_UPDATE_ANNOTATION_KEY: &str = "rbac.authorization.kubernetes.io/autoupdate";
pub const GROUP_KIND: &str = "Group";
pub const NON_RESOURCE_ALL: &str = "*";
pub const RESOURCE_ALL: &str = "*";
pub const SERVICE_ACCOUNT_KIND: &str = "ServiceAccount";
pub const USER_KIND: &str = "User";
pub const VERB_ALL: &str = "*";
