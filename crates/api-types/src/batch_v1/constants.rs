//! Well-known names and the values of string types.

pub const JOB_COMPLETION_INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";
pub const JOB_CONTROLLER_NAME: &str = "kubernetes.io/job-controller";
pub const JOB_INDEX_FAILURE_COUNT_ANNOTATION: &str = "batch.kubernetes.io/job-index-failure-count";
pub const JOB_INDEX_IGNORED_FAILURE_COUNT_ANNOTATION: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
pub const JOB_REASON_BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
pub const JOB_REASON_COMPLETIONS_REACHED: &str = "CompletionsReached";
pub const JOB_REASON_DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
pub const JOB_REASON_FAILED_INDEXES: &str = "FailedIndexes";
pub const JOB_REASON_MAX_FAILED_INDEXES_EXCEEDED: &str = "MaxFailedIndexesExceeded";
pub const JOB_REASON_POD_FAILURE_POLICY: &str = "PodFailurePolicy";
pub const JOB_REASON_SUCCESS_POLICY: &str = "SuccessPolicy";
pub const JOB_TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Values of `CompletionMode`.
pub mod completion_mode {
    values! { NON_INDEXED = "NonIndexed", INDEXED = "Indexed" }
}

/// Values of `PodFailurePolicyAction`.
pub mod pod_failure_policy_action {
    values! { FAIL_JOB = "FailJob", FAIL_INDEX = "FailIndex", IGNORE = "Ignore", COUNT = "Count" }
}

/// Values of `PodFailurePolicyOnExitCodesOperator`.
pub mod pod_failure_policy_on_exit_codes_operator {
    values! { IN = "In", NOT_IN = "NotIn" }
}

/// Values of `PodReplacementPolicy`.
pub mod pod_replacement_policy {
    values! { TERMINATING_OR_FAILED = "TerminatingOrFailed", FAILED = "Failed" }
}

/// Values of `JobConditionType`.
pub mod job_condition_type {
    pub const SUSPENDED: &str = "Suspended";
    pub const COMPLETE: &str = "Complete";
    pub const FAILED: &str = "Failed";
    pub const FAILURE_TARGET: &str = "FailureTarget";
    pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
}

/// Values of `ConcurrencyPolicy`.
pub mod concurrency_policy {
    values! { ALLOW = "Allow", FORBID = "Forbid", REPLACE = "Replace" }
}
