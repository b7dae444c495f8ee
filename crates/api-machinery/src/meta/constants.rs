//! Well-known names and the values of string types.

pub const FINALIZER_DELETE_DEPENDENTS: &str = "foregroundDeletion";
pub const FINALIZER_ORPHAN_DEPENDENTS: &str = "orphan";
pub const INITIAL_EVENTS_ANNOTATION_KEY: &str = "k8s.io/initial-events-end";
pub const NAMESPACE_ALL: &str = "";
pub const NAMESPACE_DEFAULT: &str = "default";
pub const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Values of `ResourceVersionMatch`.
pub mod resource_version_match {
    pub const NOT_OLDER_THAN: &str = "NotOlderThan";
    pub const EXACT: &str = "Exact";
}

/// Values of `DeletionPropagation`.
pub mod deletion_propagation {
    pub const ORPHAN: &str = "Orphan";
    pub const BACKGROUND: &str = "Background";
    pub const FOREGROUND: &str = "Foreground";
}

/// Values of `StatusReason`.
pub mod status_reason {
    pub const NONE: &str = "";
    pub const UNAUTHORIZED: &str = "Unauthorized";
    pub const FORBIDDEN: &str = "Forbidden";
    pub const NOT_FOUND: &str = "NotFound";
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    pub const CONFLICT: &str = "Conflict";
    pub const GONE: &str = "Gone";
    pub const INVALID: &str = "Invalid";
    pub const SERVER_TIMEOUT: &str = "ServerTimeout";
    pub const STORAGE_READ_ERROR: &str = "StorageReadError";
    pub const TIMEOUT: &str = "Timeout";
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
    pub const BAD_REQUEST: &str = "BadRequest";
    pub const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
    pub const NOT_ACCEPTABLE: &str = "NotAcceptable";
    pub const REQUEST_ENTITY_TOO_LARGE: &str = "RequestEntityTooLarge";
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "UnsupportedMediaType";
    pub const INTERNAL_ERROR: &str = "InternalError";
    pub const EXPIRED: &str = "Expired";
    pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
}

/// Values of `CauseType`.
pub mod cause_type {
    pub const FIELD_VALUE_NOT_FOUND: &str = "FieldValueNotFound";
    pub const FIELD_VALUE_REQUIRED: &str = "FieldValueRequired";
    pub const FIELD_VALUE_DUPLICATE: &str = "FieldValueDuplicate";
    pub const FIELD_VALUE_INVALID: &str = "FieldValueInvalid";
    pub const FIELD_VALUE_NOT_SUPPORTED: &str = "FieldValueNotSupported";
    pub const FIELD_VALUE_FORBIDDEN: &str = "FieldValueForbidden";
    pub const FIELD_VALUE_TOO_LONG: &str = "FieldValueTooLong";
    pub const FIELD_VALUE_TOO_MANY: &str = "FieldValueTooMany";
    pub const INTERNAL_ERROR: &str = "InternalError";
    pub const FIELD_VALUE_TYPE_INVALID: &str = "FieldValueTypeInvalid";
    pub const UNEXPECTED_SERVER_RESPONSE: &str = "UnexpectedServerResponse";
    pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";
    pub const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
}

/// Values of `LabelSelectorOperator`.
pub mod label_selector_operator {
    pub const IN: &str = "In";
    pub const NOT_IN: &str = "NotIn";
    pub const EXISTS: &str = "Exists";
    pub const DOES_NOT_EXIST: &str = "DoesNotExist";
}

/// Values of `FieldSelectorOperator`.
pub mod field_selector_operator {
    pub const IN: &str = "In";
    pub const NOT_IN: &str = "NotIn";
    pub const EXISTS: &str = "Exists";
    pub const DOES_NOT_EXIST: &str = "DoesNotExist";
}

/// Values of `ManagedFieldsOperationType`.
pub mod managed_fields_operation_type {
    pub const APPLY: &str = "Apply";
    pub const UPDATE: &str = "Update";
}

/// Values of `RowConditionType`.
pub mod row_condition_type {
    pub const COMPLETED: &str = "Completed";
}

/// Values of `ConditionStatus`.
pub mod condition_status {
    pub const TRUE: &str = "True";
    pub const FALSE: &str = "False";
    pub const UNKNOWN: &str = "Unknown";
}

/// Values of `IncludeObjectPolicy`.
pub mod include_object_policy {
    pub const NONE: &str = "None";
    pub const METADATA: &str = "Metadata";
    pub const OBJECT: &str = "Object";
}
