//! Pods, templates and the kinds that make pods of them.

use kinds::rules::{Endpoint, RuleContext};

use super::{check_created, check_updated, created, kind, read, updated};

const CONTAINERS: &str = r#""containers":[{"name":"c","image":"i"}]"#;

fn pod(rest: &str) -> String {
    let comma = if rest.is_empty() { "" } else { "," };
    format!(r#"{{"spec":{{{rest}{comma}{CONTAINERS}}}}}"#)
}

#[test]
fn pods_with_amounts_of_their_own() {
    let with = |whole: &str, of_container: &str| {
        format!(
            r#"{{"spec":{{"resources":{whole},"containers":[{{"name":"c","image":"i","resources":{of_container}}}]}}}}"#
        )
    };
    check_created(
        "pods",
        &[
            (&with(r#"{"limits":{"cpu":"2"}}"#, r#"{"requests":{"cpu":"1"}}"#), &[]),
            (
                &with(r#"{"requests":{"cpu":"1"}}"#, r#"{"requests":{"cpu":"2"}}"#),
                &["spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate \
                   container requests of 2"],
            ),
            (
                &with(r#"{"limits":{"ephemeral-storage":"1"}}"#, "{}"),
                &[
                    "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \
                   \"cpu\", \"hugepages-\", \"memory\"",
                ],
            ),
            (
                &with(r#"{"limits":{"cpu":"1"}}"#, r#"{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}"#),
                &["spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod \
                   limits of 1"],
            ),
        ],
    );
}

#[test]
fn pods_that_change() {
    let gated = pod(r#""schedulingGates":[{"name":"a.b/c"}],"nodeSelector":{"a":"b"}"#);
    check_updated(
        "pods",
        &[
            (&pod(""), &pod(r#""tolerations":[{"operator":"Exists"}]"#), &[]),
            (
                &pod(r#""tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]"#),
                &pod(r#""tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":9}]"#),
                &[],
            ),
            (
                &pod(r#""tolerations":[{"operator":"Exists"}]"#),
                &pod(""),
                &["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            ),
            (
                &pod(r#""activeDeadlineSeconds":5"#),
                &pod(r#""activeDeadlineSeconds":6"#),
                &["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
            ),
            (
                &pod(r#""activeDeadlineSeconds":5"#),
                &pod(""),
                &[
                    "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
                ],
            ),
            (&gated, &pod(r#""nodeSelector":{"a":"b","c":"d"}"#), &[]),
            (
                &gated,
                &pod(r#""schedulingGates":[{"name":"a.b/c"}]"#),
                &[
                    "spec.nodeSelector: Invalid value: {}: only additions to spec.nodeSelector are allowed (no mutations or \
                 deletions)",
                ],
            ),
            (
                &gated,
                &pod(r#""schedulingGates":[{"name":"a.b/d"}],"nodeSelector":{"a":"b"}"#),
                &[
                    "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a.b/d'",
                ],
            ),
            (&pod(""), &pod("").replace(r#""image":"i""#, r#""image":"j""#), &[]),
            (
                &pod(""),
                &pod("").replace(r#""image":"i""#, r#""image":" j","imagePullPolicy":"Always""#),
                &[
                    "spec.containers[0].image: Invalid value: \" j\": must not have leading or trailing whitespace",
                    "spec.containers[0].image: Invalid value: \" j\": must not have leading or trailing whitespace",
                ],
            ),
        ],
    );
}

#[test]
fn pods_are_resized() {
    let sized = |requests: &str, policy: &str| {
        format!(
            r#"{{"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{requests},"limits":{{"cpu":"9"}}}}{policy}}}]}},"status":{{"qosClass":"Burstable"}}}}"#
        )
    };
    let resize = Endpoint::Other("resize");
    for (old, new, expected) in [
        (sized(r#"{"cpu":"1"}"#, ""), sized(r#"{"cpu":"2"}"#, ""), vec![]),
        (
            sized(r#"{"cpu":"1","memory":"1Gi"}"#, ""),
            sized(r#"{"cpu":"1"}"#, ""),
            vec!["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        ),
        (
            sized(r#"{"cpu":"1"}"#, ""),
            sized(r#"{"cpu":"1","ephemeral-storage":"1Gi"}"#, ""),
            vec!["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            sized(r#"{"cpu":"1"}"#, ""),
            sized(r#"{"cpu":"9"}"#, "")
                .replace("Burstable", "Guaranteed")
                .replace(r#""limits":{"cpu":"9"}"#, r#""limits":{"cpu":"9","memory":"1Gi"}"#),
            vec!["spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"],
        ),
    ] {
        assert_eq!(updated("pods", resize, &new, &old), expected, "{new}");
    }
    // What is not a resource is taken from the stored pod.
    let (old, new) = (sized(r#"{"cpu":"1"}"#, ""), sized(r#"{"cpu":"2"}"#, r#","command":["x"]"#));
    assert_eq!(updated("pods", resize, &new, &old), Vec::<String>::new());
}

#[test]
fn ephemeral_containers_are_only_added() {
    let endpoint = Endpoint::Other("ephemeralcontainers");
    let with = |containers: &str| pod(&format!(r#""ephemeralContainers":[{containers}]"#));
    let one = r#"{"name":"e","image":"i"}"#;
    let path = "spec.ephemeralContainers";
    for (old, new, expected) in [
        (pod(""), with(one), vec![]),
        (
            with(one),
            pod(""),
            vec![format!("{path}: Forbidden: existing ephemeral containers \"e\" may not be removed\n")],
        ),
        (
            pod(""),
            with(r#"{"name":"c","image":"i","ports":[{"containerPort":80}]}"#),
            vec![
                format!("{path}[0].name: Duplicate value: \"c\""),
                format!("{path}[0].ports: Forbidden: cannot be set for an Ephemeral Container"),
            ],
        ),
        (
            pod(""),
            with(r#"{"name":"e","image":"i","targetContainerName":"x"}"#),
            vec![format!("{path}[0].targetContainerName: Not found: \"x\"")],
        ),
    ] {
        assert_eq!(updated("pods", endpoint, &new, &old), expected, "{new}");
    }
    assert_eq!(created("pods", &with(one)), [format!("{path}: Forbidden: cannot be set on create")]);
}

#[test]
fn sysctls_are_named_well() {
    let with = |sysctls: &str| pod(&format!(r#""securityContext":{{"sysctls":[{sysctls}]}}"#));
    let bad = "must have at most 253 characters and match regex \
               ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let text = with(r#"{"name":"foo-","value":"1"},{"name":"kernel.shmmax","value":"1"},{"name":"bar..","value":"1"}"#);
    assert_eq!(
        created("pods", &text),
        [
            format!("spec.securityContext.sysctls[0].name: Invalid value: \"foo-\": {bad}"),
            format!("spec.securityContext.sysctls[2].name: Invalid value: \"bar..\": {bad}"),
        ]
    );
}

#[test]
fn pods_warn_of_their_names_once() {
    let rules = kind("pods");
    let object = read(rules, &pod("").replace("{\"spec\"", r#"{"metadata":{"name":"a.b"},"spec""#));
    let expected = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
                    label is recommended: [must not contain dots]";
    assert_eq!(rules.warnings(&*object, None), [expected]);
    assert_eq!(rules.warnings(&*object, Some(&*object)), Vec::<String>::new());
}

#[test]
fn deployments_that_go_back() {
    let text = format!(
        r#"{{"metadata":{{"annotations":{{"deprecated.deployment.rollback.to":"-1"}}}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{{CONTAINERS}}}}}}}}}"#
    );
    assert_eq!(
        created("apps/deployments", &text),
        ["spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"]
    );
}

fn set(rest: &str) -> String {
    let claim = r#"[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"}}}}]"#;
    format!(
        r#"{{"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"volumeClaimTemplates":{claim}{rest},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i","volumeMounts":[{{"name":"v","mountPath":"/v"}}]}}]}}}}}}}}"#
    )
}

#[test]
fn sets_with_state() {
    const FIXED: &str = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                         'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                         'minReadySeconds' are forbidden";
    // Mounts find the volumes that the claims become.
    check_created("apps/statefulsets", &[(&set(""), &[])]);
    check_updated(
        "apps/statefulsets",
        &[
            (&set(""), &set(r#","replicas":3,"minReadySeconds":2"#), &[]),
            (&set(""), &set(r#","serviceName":"s""#), &[FIXED]),
            (&set(""), &set("").replace("1500m", "2Gi"), &[FIXED]),
        ],
    );
    let rules = kind("apps/statefulsets");
    let object = read(rules, &set(r#","revisionHistoryLimit":-1"#));
    let fraction = "fractional byte value \"1500m\" is invalid, must be an integer";
    let limit = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
                 recommended";
    assert_eq!(
        rules.warnings(&*object, None),
        [limit.to_owned(), format!("spec.volumeClaimTemplates[0].resources.requests[storage]: {fraction}")]
    );
    assert_eq!(
        rules.warnings(&*object, Some(&*object)),
        [limit.to_owned(), format!("spec.volumeClaimTemplates[0].Spec.resources.requests[storage]: {fraction}")]
    );
    assert_eq!(rules.update_warnings(Endpoint::Status, &*object, &*object), Vec::<String>::new());
}

#[test]
fn cron_jobs() {
    let job = |spec: &str| {
        format!(
            r#"{{"spec":{{{spec},"jobTemplate":{{"spec":{{"template":{{"spec":{{"restartPolicy":"Never",{CONTAINERS}}}}}}}}}}}}}"#
        )
    };
    check_created(
        "batch/cronjobs",
        &[
            (&job(r#""schedule":"*/5 * * * *""#), &[]),
            (&job(r#""schedule":"@hourly","timeZone":"Asia/Tokyo""#), &[]),
            (&job(r#""schedule":"""#), &["spec.schedule: Required value"]),
            (
                &job(r#""schedule":"61 * * * *""#),
                &["spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61"],
            ),
            (
                &job(r#""schedule":"@hourly","timeZone":"Asia/Nowhere""#),
                &["spec.timeZone: Invalid value: \"Asia/Nowhere\": unknown time zone Asia/Nowhere"],
            ),
            (
                &job(r#""schedule":"@hourly","concurrencyPolicy":"Odd","startingDeadlineSeconds":-1"#),
                &[
                    "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                    "spec.concurrencyPolicy: Unsupported value: \"Odd\": supported values: \"Allow\", \"Forbid\", \
                     \"Replace\"",
                ],
            ),
        ],
    );
    let long = job(r#""schedule":"@hourly""#)
        .replace("{\"spec\":{\"sch", &format!(r#"{{"metadata":{{"name":"{}"}},"spec":{{"sch"#, "a".repeat(53)));
    let texts = created("batch/cronjobs", &long);
    assert!(texts.len() == 1 && texts[0].ends_with("must be no more than 52 characters"), "{texts:?}");
}

#[test]
fn elastic_jobs() {
    let job = |completions: i32, parallelism: i32| {
        format!(
            r#"{{"spec":{{"completionMode":"Indexed","completions":{completions},"parallelism":{parallelism},"manualSelector":true,"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"restartPolicy":"Never",{CONTAINERS}}}}}}}}}"#
        )
    };
    check_updated(
        "batch/jobs",
        &[
            (&job(3, 3), &job(5, 5), &[]),
            (
                &job(3, 3),
                &job(5, 3),
                &["spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism"],
            ),
        ],
    );
}

#[test]
fn privileges_where_the_server_allows_none() {
    let cx = |forbids_privileged| RuleContext { forbids_privileged, ..RuleContext::default() };
    let containers = r#""containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]"#;
    let (rules, text) = (kind("pods"), format!(r#"{{"spec":{{{containers}}}}}"#));
    let pod = read(rules, &text);
    let texts = |forbids| -> Vec<String> {
        rules.validate_create(&cx(forbids), &*pod).iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(false), Vec::<String>::new());
    let expected = "spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy";
    assert_eq!(texts(true), [expected]);

    let rules = kind("batch/cronjobs");
    let job =
        read(rules, &format!(r#"{{"spec":{{"jobTemplate":{{"spec":{{"template":{{"spec":{{{containers}}}}}}}}}}}}}"#));
    let errors = rules.validate_update(&cx(true), Endpoint::Main, &*job, &*job);
    let at = "spec.jobTemplate.spec.template.spec.containers[0].securityContext.privileged";
    assert!(errors.iter().any(|error| error.field == at), "{errors}");
}
