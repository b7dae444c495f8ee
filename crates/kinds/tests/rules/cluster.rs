//! Roles and bindings, leases, priority and runtime classes, budgets.

use kinds::rules::Endpoint;

use super::{check_created, check_updated, kind, updated};

#[test]
fn roles() {
    check_created(
        "rbac.authorization.k8s.io/clusterroles",
        &[
            (r#"{"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]}"#, &[]),
            (
                r#"{"aggregationRule":{}}"#,
                &[
                    "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
                   aggregationRule is non-nil",
                ],
            ),
            (
                r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"Near"}]}]}}"#,
                &[
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: \"Near\": not a \
                     valid selector operator",
                    "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
                ],
            ),
        ],
    );
    check_created(
        "rbac.authorization.k8s.io/roles",
        &[(
            r#"{"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]}"#,
            &["rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs"],
        )],
    );
}

#[test]
fn bindings() {
    const USER: &str = r#"{"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"}]}"#;
    for binding in ["rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings"] {
        check_created(
            binding,
            &[
                (USER, &[]),
                (
                    &USER.replace("User", "Robot"),
                    &[
                        "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \
                       \"Group\"",
                    ],
                ),
                (
                    &USER.replace(r#""kind":"User""#, r#""kind":"User","apiGroup":"x""#),
                    &[
                        "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
                    ],
                ),
                (r#"{"roleRef":{"kind":"ClusterRole","name":""}}"#, &["roleRef.name: Required value"]),
            ],
        );
        check_updated(
            binding,
            &[
                (USER, r#"{"roleRef":{"kind":"ClusterRole","name":"r"}}"#, &[]),
                (
                    USER,
                    &USER.replace(r#""r""#, r#""q""#),
                    &["roleRef: Invalid value: \
                       {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"q\"}: cannot \
                       change roleRef"],
                ),
            ],
        );
    }
}

#[test]
fn leases() {
    check_created(
        "coordination.k8s.io/leases",
        &[
            (r#"{"spec":{"leaseDurationSeconds":15,"leaseTransitions":0}}"#, &[]),
            (
                r#"{"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}"#,
                &[
                    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            // These are behind a feature that is off, and dropped.
            (r#"{"spec":{"strategy":"Odd","preferredHolder":"h"}}"#, &[]),
        ],
    );
    check_updated(
        "coordination.k8s.io/leases",
        &[
            (
                r#"{"spec":{"strategy":"Odd"}}"#,
                r#"{"spec":{"strategy":"Odd"}}"#,
                &["spec.strategy.strategy: Unsupported value: \"Odd\": supported values: \"OldestEmulationVersion\""],
            ),
            (
                r#"{"spec":{"preferredHolder":"h"}}"#,
                r#"{"spec":{"preferredHolder":"h"}}"#,
                &["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
            ),
        ],
    );
}

#[test]
fn priority_classes() {
    const CLASS: &str = "scheduling.k8s.io/priorityclasses";
    const RESERVED: &str = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: ";
    check_created(
        CLASS,
        &[
            (r#"{"value":1000000000}"#, &[]),
            (r#"{"value":-5}"#, &[]),
            (
                r#"{"value":1000000001}"#,
                &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            ),
            (
                r#"{"preemptionPolicy":"Often"}"#,
                &["preemptionPolicy: Unsupported value: \"Often\": supported values: \"PreemptLowerPriority\", \
                   \"Never\""],
            ),
            (r#"{"metadata":{"name":"system-node-critical"},"value":2000001000}"#, &[]),
            (
                r#"{"metadata":{"name":"system-node-critical"},"value":2000001000,"globalDefault":true}"#,
                &[&format!("{RESERVED}globalDefault of system-node-critical PriorityClass must be false")],
            ),
        ],
    );
    check_updated(
        CLASS,
        &[
            (r#"{"value":1}"#, r#"{"value":1,"globalDefault":true}"#, &[]),
            (r#"{"value":1}"#, r#"{"value":2}"#, &["value: Forbidden: may not be changed in an update."]),
            (
                r#"{"value":1}"#,
                r#"{"value":1,"preemptionPolicy":"Never"}"#,
                &["preemptionPolicy: Invalid value: \"Never\": field is immutable"],
            ),
        ],
    );
    assert_eq!(
        kind(CLASS).keeps("system-cluster-critical"),
        Some("this is a system priority class and cannot be deleted")
    );
}

#[test]
fn runtime_classes() {
    const CLASS: &str = "node.k8s.io/runtimeclasses";
    check_created(
        CLASS,
        &[
            (r#"{"handler":"h","overhead":{"podFixed":{"memory":"1Mi"}}}"#, &[]),
            ("{}", &["handler: Required value"]),
            (
                r#"{"handler":"h","overhead":{"podFixed":{"memory":"-1","a.com/gpu":"500m"}}}"#,
                &[
                    "overhead.limits[a.com/gpu]: Invalid value: \"500m\": must be an integer",
                    "overhead.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
                ],
            ),
        ],
    );
    check_updated(
        CLASS,
        &[(r#"{"handler":"h"}"#, r#"{"handler":"g"}"#, &["handler: Invalid value: \"g\": field is immutable"])],
    );
}

#[test]
fn disruption_budgets() {
    const BUDGET: &str = "policy/poddisruptionbudgets";
    check_created(
        BUDGET,
        &[
            (r#"{"spec":{"minAvailable":"50%"}}"#, &[]),
            ("{}", &[]),
            (
                r#"{"spec":{"maxUnavailable":"half"}}"#,
                &[
                    "spec.maxUnavailable: Invalid value: \"half\": a valid percent string must be a numeric string followed \
                   by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                ],
            ),
        ],
    );
    let status = r#"{"status":{"expectedPods":-1,"conditions":[{"type":"A","status":"True"}]}}"#;
    assert_eq!(
        updated(BUDGET, Endpoint::Status, status, "{}"),
        [
            "status.conditions[0].lastTransitionTime: Required value",
            "status.conditions[0].reason: Required value",
            "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
        ]
    );
}
