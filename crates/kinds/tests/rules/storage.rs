//! The kinds of storage, claims through their endpoints.

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

#[test]
fn drivers() {
    const DRIVER: &str = "storage.k8s.io/csidrivers";
    check_created(
        DRIVER,
        &[
            (r#"{"spec":{"preventPodSchedulingIfMissing":true}}"#, &[]),
            (
                r#"{"spec":{"fsGroupPolicy":"Some","volumeLifecycleModes":["Ephemeral","Ephemeral","Late"],
                    "nodeAllocatableUpdatePeriodSeconds":9,"serviceAccountTokenInSecrets":false}}"#,
                &[
                    "spec.fsGroupPolicy: Unsupported value: \"Some\": supported values: \"File\", \"None\", \
                     \"ReadWriteOnceWithFSType\"",
                    "spec.volumeLifecycleModes: Unsupported value: \"Late\": supported values: \"Persistent\", \
                     \"Ephemeral\"",
                    "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 \
                     seconds",
                    "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but \
                     no tokenRequests are specified",
                ],
            ),
            (
                r#"{"spec":{"tokenRequests":[{"audience":"a","expirationSeconds":599},
                    {"audience":"a","expirationSeconds":1},{"audience":"","expirationSeconds":4294967297}]}}"#,
                &[
                    "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less \
                     than 10 minutes",
                    "spec.tokenRequests[1].audience: Duplicate value: \"a\"",
                    "spec.tokenRequests[2].expirationSeconds: Invalid value: 4294967297: may not specify a duration \
                     larger than 2^32 seconds",
                ],
            ),
        ],
    );
    check_updated(
        DRIVER,
        &[
            (r#"{"spec":{}}"#, r#"{"spec":{"podInfoOnMount":true,"storageCapacity":true}}"#, &[]),
            (
                r#"{"spec":{}}"#,
                r#"{"spec":{"attachRequired":false,"volumeLifecycleModes":["Ephemeral"]}}"#,
                &[
                    "spec.attachedRequired: Invalid value: false: field is immutable",
                    "spec.volumeLifecycleModes: Invalid value: [\"Ephemeral\"]: field is immutable",
                ],
            ),
        ],
    );
}

#[test]
fn drivers_on_nodes() {
    const NODE: &str = "storage.k8s.io/csinodes";
    check_created(
        NODE,
        &[
            (
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":["zone"],"allocatable":{"count":0}}]}}"#,
                &[],
            ),
            (
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"n","allocatable":{"count":-1}},
                    {"name":"d","topologyKeys":["zone","zone"]}]}}"#,
                &[
                    "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
                    "spec.drivers[1].nodeID: Required value",
                    "spec.drivers[1].name: Duplicate value: \"d\"",
                    "spec.drivers[1]: Duplicate value: \"zone\"",
                ],
            ),
        ],
    );
    check_updated(
        NODE,
        &[
            (
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"n"},{"name":"e","nodeID":"n"}]}}"#,
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"n","allocatable":{"count":3}},{"name":"f","nodeID":"n"}]}}"#,
                &[],
            ),
            (
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"n"}]}}"#,
                r#"{"spec":{"drivers":[{"name":"d","nodeID":"m"}]}}"#,
                &["spec.drivers: Invalid value: \
                   {\"Name\":\"d\",\"NodeID\":\"m\",\"TopologyKeys\":null,\"Allocatable\":null}: field is immutable"],
            ),
        ],
    );
}

#[test]
fn capacities() {
    const CAPACITY: &str = "storage.k8s.io/csistoragecapacities";
    check_created(
        CAPACITY,
        &[
            (r#"{"storageClassName":"fast","capacity":"0"}"#, &[]),
            (
                r#"{"storageClassName":"fast","capacity":"-1"}"#,
                &["capacity: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
        ],
    );
    check_updated(
        CAPACITY,
        &[
            (r#"{"storageClassName":"a"}"#, r#"{"storageClassName":"a","capacity":"1Gi"}"#, &[]),
            (
                r#"{"storageClassName":"a","nodeTopology":{}}"#,
                r#"{"storageClassName":"b"}"#,
                &[
                    "nodeTopology: Invalid value: null: field is immutable",
                    "storageClassName: Invalid value: \"b\": field is immutable",
                ],
            ),
        ],
    );
}

#[test]
fn attachments() {
    const ATTACHMENT: &str = "storage.k8s.io/volumeattachments";
    const BOUND: &str = r#"{"spec":{"attacher":"d","nodeName":"n","source":{"persistentVolumeName":"pv"}}}"#;
    check_created(
        ATTACHMENT,
        &[
            (BOUND, &[]),
            (
                &BOUND.replace(r#""pv""#, r#""""#),
                &["spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName"],
            ),
            (
                &BOUND.replace(r#""persistentVolumeName":"pv""#, ""),
                &["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
            ),
            (
                &BOUND.replace(
                    r#""persistentVolumeName":"pv""#,
                    r#""inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
                        "storageClassName":"c","volumeMode":"Block","persistentVolumeReclaimPolicy":"Delete",
                        "nfs":{"server":"s","path":"/"}}"#,
                ),
                &[
                    "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline \
                     volumes",
                    "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline \
                     volumes",
                    "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the \
                     context of inline volumes",
                    "spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of \
                     inline volumes",
                    "spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than \
                     Filesystem in the context of inline volumes",
                ],
            ),
        ],
    );
    let failed = BOUND.replace("}}}", r#"}},"status":{"attached":false,"attachError":{"errorCode":-1}}}"#);
    let told = updated(ATTACHMENT, Endpoint::Status, &failed, BOUND);
    assert_eq!(told, ["status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"]);
    assert_eq!(updated(ATTACHMENT, Endpoint::Main, &failed, BOUND), Vec::<String>::new(), "the status is kept");
}

#[test]
fn attributes_classes() {
    const CLASS: &str = "storage.k8s.io/volumeattributesclasses";
    check_created(
        CLASS,
        &[
            (r#"{"driverName":"d","parameters":{"iops":"9"}}"#, &[]),
            (
                "{}",
                &["driverName: Required value", "parameters: Required value: must contain at least one key/value pair"],
            ),
        ],
    );
    check_updated(
        CLASS,
        &[(
            r#"{"driverName":"d","parameters":{"iops":"9"}}"#,
            r#"{"driverName":"e","parameters":{"iops":"8"}}"#,
            &[
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
            ],
        )],
    );
}
