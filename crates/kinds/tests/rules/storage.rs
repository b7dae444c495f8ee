//! Storage classes, claims through their endpoints.

use kinds::rules::Endpoint;

use super::{check_created, check_updated, updated};

#[test]
fn storage_classes() {
    const CLASS: &str = "storage.k8s.io/storageclasses";
    check_created(
        CLASS,
        &[
            (r#"{"provisioner":"a.b/c"}"#, &[]),
            ("{}", &["provisioner: Required value"]),
            (
                r#"{"provisioner":"a.b/c","reclaimPolicy":"Recycle","volumeBindingMode":"Late"}"#,
                &[
                    "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
                    "volumeBindingMode: Unsupported value: \"Late\": supported values: \"Immediate\", \
                     \"WaitForFirstConsumer\"",
                ],
            ),
            (
                r#"{"provisioner":"a.b/c","parameters":{"":"x"}}"#,
                &["parameters: Invalid value: \"\": field can not be empty."],
            ),
        ],
    );
    check_updated(
        CLASS,
        &[
            (r#"{"provisioner":"a"}"#, r#"{"provisioner":"a","allowVolumeExpansion":true,"mountOptions":["x"]}"#, &[]),
            (
                r#"{"provisioner":"a","parameters":{"a":"b"}}"#,
                r#"{"provisioner":"b","parameters":{"a":"c"},"reclaimPolicy":"Retain"}"#,
                &[
                    "parameters: Invalid value: {\"a\":\"c\"}: field is immutable",
                    "provisioner: Invalid value: \"b\": field is immutable",
                    "reclaimPolicy: Invalid value: \"Retain\": field is immutable",
                ],
            ),
        ],
    );
}

#[test]
fn claims() {
    const CLAIM: &str = r#"{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    check_created(
        "persistentvolumeclaims",
        &[
            (CLAIM, &[]),
            (
                &CLAIM.replace("ReadWriteOnce", r#"ReadWriteOncePod","ReadOnlyMany"#),
                &["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
            ),
            (&CLAIM.replace("1Gi", "0"), &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"]),
            (
                &CLAIM.replace(
                    "{\"accessModes\"",
                    r#"{"dataSource":{"kind":"PersistentVolumeClaim","name":""},"accessModes""#,
                ),
                &["spec.dataSource.name: Required value", "spec.dataSourceRef.name: Required value"],
            ),
            // A source of a kind that the cluster does not know is dropped.
            (&CLAIM.replace("{\"accessModes\"", r#"{"dataSource":{"kind":"Odd","name":"a"},"accessModes""#), &[]),
        ],
    );
    let status = r#"{"status":{"allocatedResourceStatuses":{"storage":"Odd","cpu":"NodeResizePending"},"capacity":{"storage":"-1"}}}"#;
    assert_eq!(
        updated("persistentvolumeclaims", Endpoint::Status, status, CLAIM),
        [
            "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
            "status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: \"storage\"",
            "status.allocatedResourceStatuses: Unsupported value: \"storage\": supported values: \
             \"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \"NodeResizeInProgress\", \
             \"NodeResizeInfeasible\", \"NodeResizePending\"",
        ]
    );
}
