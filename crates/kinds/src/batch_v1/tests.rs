//! What jobs are told, by what is wrong with them.

use api_machinery::time::Time;
use api_types::batch_v1::{Job, JobCondition};

use super::job::JobRules;
use crate::rules::{Endpoint, RuleContext, Rules, Typed};

/// A job as the server sees it when it checks it: with defaults, and prepared.
fn job(spec: &str) -> Job {
    let pod = r#""template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}"#;
    let comma = if spec.is_empty() { "" } else { "," };
    let text = format!(r#"{{"metadata":{{"name":"n","namespace":"s","uid":"u"}},"spec":{{{spec}{comma}{pod}}}}}"#);
    let mut job = Job::default();
    api_machinery::json::decode(text.as_bytes(), &mut job).expect("a job");
    let rules = Typed::<JobRules>::new();
    rules.set_defaults(&mut job);
    rules.prepare_create(&RuleContext::default(), &mut job);
    job
}

fn created(job: &Job) -> Vec<String> {
    Typed::<JobRules>::new().validate_create(&RuleContext::default(), job).iter().map(ToString::to_string).collect()
}

fn updated(endpoint: Endpoint, job: &Job, old: &Job) -> String {
    let rules = Typed::<JobRules>::new();
    let mut errors = rules.validate_as_new(&RuleContext::default(), endpoint, job, old).unwrap_or_default();
    errors.extend(rules.validate_update(&RuleContext::default(), endpoint, job, old));
    if errors.is_empty() { String::new() } else { errors.to_string() }
}

#[test]
fn selectors_are_generated() {
    let job = job("");
    let selector = job.spec.selector.clone().expect("a selector");
    assert_eq!(selector.match_labels["batch.kubernetes.io/controller-uid"], "u");
    let labels: Vec<String> =
        job.spec.template.metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(
        labels,
        ["batch.kubernetes.io/controller-uid=u", "batch.kubernetes.io/job-name=n", "controller-uid=u", "job-name=n"]
    );
    assert_eq!(created(&job), Vec::<String>::new());
}

#[test]
fn manual_selectors_stay() {
    let job = job(r#""manualSelector":true,"selector":{"matchLabels":{"a":"b"}}"#);
    assert!(job.spec.template.metadata.labels.is_empty());
    let text = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`";
    assert_eq!(created(&job), [text]);
}

/// A selector that cannot be read is not compared with the generated one, and an unknown mode is not taken for another.
#[test]
fn unreadable_members_are_told_once() {
    let errors = created(&job(r#""selector":{"matchExpressions":[{"key":"a","operator":"x"}]}"#));
    let text = "spec.selector.matchExpressions[0].operator: Invalid value: \"x\": not a valid selector operator";
    assert_eq!(errors, [text]);
    let errors = created(&job(r#""completionMode":"x","backoffLimitPerIndex":1"#));
    let text = "spec.completionMode: Unsupported value: \"x\": supported values: \"NonIndexed\", \"Indexed\"";
    assert_eq!(errors, [text]);
}

#[test]
fn labels_of_other_jobs_are_refused() {
    let mut job = job("");
    job.spec.template.metadata.labels.insert("job-name".into(), "other".into());
    let errors = created(&job);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("spec.template.metadata.labels[job-name]: Invalid value: "), "{errors:?}");
    assert!(errors[0].ends_with("must be 'n'"), "{errors:?}");
}

#[test]
fn specs() {
    let failure = |rule: &str| format!(r#""podFailurePolicy":{{"rules":[{rule}]}}"#);
    let without_action = created(&job(&failure(r#"{"action":"","onPodConditions":[{"type":"T","status":"True"}]}"#)));
    let known = r#"["Count" "FailIndex" "FailJob" "Ignore"]"#;
    let expected = format!("spec.podFailurePolicy.rules[0].action: Required value: valid values: {known}");
    assert_eq!(without_action, [expected]);
    for (spec, expected) in [
        (r#""parallelism":-1"#.to_owned(), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        (
            r#""completionMode":"Indexed","parallelism":1"#.to_owned(),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            r#""backoffLimitPerIndex":1"#.to_owned(),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            r#""managedBy":"me""#.to_owned(),
            r#"spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")"#,
        ),
        (
            failure(r#"{"action":"FailJob"}"#),
            concat!(
                "spec.podFailurePolicy.rules[0]: Invalid value: ",
                "specifying one of OnExitCodes and OnPodConditions is required"
            ),
        ),
        (
            failure(r#"{"action":"FailJob","onExitCodes":{"operator":"In","values":[2,1]}}"#),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered",
        ),
        (
            r#""completionMode":"Indexed","completions":2,"successPolicy":{"rules":[{"succeededIndexes":"0,2"}]}"#
                .to_owned(),
            concat!(
                r#"spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0,2": "#,
                r#"error parsing succeededIndexes: too large index: "2""#
            ),
        ),
    ] {
        assert_eq!(created(&job(&spec)), [expected], "{spec}");
    }
    let mut always = job("");
    always.spec.template.spec.restart_policy = "Always".into();
    let text = r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#;
    assert_eq!(created(&always), [text]);
}

#[test]
fn templates_change_only_while_suspended() {
    let old = job(r#""suspend":true"#);
    let mut new = old.clone();
    new.spec.template.spec.node_selector.insert("zone".into(), "a".into());
    assert_eq!(updated(Endpoint::Main, &new, &old), "");
    let running = job("");
    let text = updated(Endpoint::Main, &new, &running);
    assert!(text.starts_with(r#"spec.template: Invalid value: {"labels":{"#), "{text}");
    assert!(text.ends_with("field is immutable"), "{text}");
    new.spec.template.spec.containers[0].image = "j".into();
    let text = updated(Endpoint::Main, &new, &old);
    assert!(text.starts_with("spec.template.spec: Invalid value: "), "{text}");
    let mut more = old.clone();
    (more.spec.completions, more.spec.parallelism) = (Some(2), Some(2));
    assert_eq!(updated(Endpoint::Main, &more, &old), "spec.completions: Invalid value: 2: field is immutable");
}

#[test]
fn statuses_only_go_forward() {
    let condition = |type_: &str| JobCondition { type_: type_.into(), status: "True".into(), ..Default::default() };
    let mut old = job("");
    old.status.start_time = Some(Time::default());
    let mut done = old.clone();
    done.status.conditions = vec![condition("SuccessCriteriaMet"), condition("Complete")];
    done.status.completion_time = Some(Time::default());
    assert_eq!(updated(Endpoint::Status, &done, &old), "");
    let expected = "status.conditions: Invalid value: cannot disable the terminal Complete=True condition";
    let mut undone = done.clone();
    undone.status.conditions.pop();
    assert!(updated(Endpoint::Status, &undone, &done).contains(expected));
    done.status.active = 1;
    done.status.failed = -1;
    assert_eq!(
        updated(Endpoint::Status, &done, &old),
        "[status.failed: Invalid value: -1: must be greater than or equal to 0, status.active: Invalid value: 1: active>0 \
         is invalid for finished job, status.failed: Invalid value: -1: cannot decrease the failed counter]"
    );
    // What the end lacks is told before what announces it, and what lasts after both.
    let mut started = old.clone();
    started.status.start_time = Some(Time::from_unix_seconds(1));
    let mut hasty = old.clone();
    hasty.status.start_time = None;
    hasty.status.conditions = vec![condition("Complete")];
    assert_eq!(
        updated(Endpoint::Status, &hasty, &started),
        "[status.completionTime: Required value: completionTime is required for Complete jobs, status.conditions: Invalid \
         value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition, status.startTime: \
         Required value: startTime is required for finished job, status.startTime: Invalid value: null: field is \
         immutable for unsuspended job once set]"
    );
}

/// A job without labels has those of its template, with what is generated there.
#[test]
fn labels_of_the_template_are_those_of_the_job() {
    let rules = crate::find("batch", "v1", "jobs").expect("jobs");
    let generated =
        ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"];
    for (own, template, expected) in [
        ("{}", "{}", &generated[..]),
        (r#"{"a":"b"}"#, r#"{"c":"d"}"#, &["a"]),
        (
            "{}",
            r#"{"c":"d"}"#,
            &["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "c", "controller-uid", "job-name"],
        ),
    ] {
        let text = format!(
            r#"{{"metadata":{{"name":"j","uid":"u","labels":{own}}},"spec":{{"template":{{"metadata":{{"labels":{template}}}}}}}}}"#
        );
        let mut job = Job::default();
        api_machinery::json::decode(text.as_bytes(), &mut job).expect("a job");
        rules.set_defaults(&mut job);
        rules.prepare_create(&crate::rules::RuleContext::default(), &mut job);
        assert_eq!(job.metadata.labels.keys().collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(job.spec.template.metadata.labels["job-name"], "j");
    }
}
