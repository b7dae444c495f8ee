//! Jobs and CronJobs, pod templates, events of a schedule that never comes.

use super::prelude::*;

const TEMPLATE: &str = r#"{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"mould"},
    "template":{"metadata":{"labels":{"name":"mould"}},"spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}}"#;

pub(crate) const JOBS: Section = Section {
    name: "jobs",
    files: &[],
    rows: &[
        Row::new("create job plain --image=registry.example/web:1", Prints("job.batch/plain created")),
        Row::new(
            "get job plain -o jsonpath={.spec.template.spec.containers[0].image}",
            Prints("registry.example/web:1"),
        ),
        Row::new("delete job plain", Succeeds),
        Row::new("create job told --image=registry.example/perl -- perl -wle 'print 6*7'", Succeeds),
        Row::new(
            "get job told -o jsonpath={.spec.template.spec.containers[0].command}",
            Prints("[\"perl\",\"-wle\",\"print 6*7\"]"),
        ),
        Row::new("delete job told", Succeeds),
        Row::new(
            "create cronjob tick --dry-run=client --schedule='59 23 31 2 *' --image=registry.example/perl -- true",
            Succeeds,
        ),
        Row::new(
            "create cronjob tick --dry-run=server --schedule='59 23 31 2 *' --image=registry.example/perl -- true",
            Succeeds,
        ),
        Row::new("get cronjob -o name", Prints("")),
        Row::new(
            "create cronjob tick --schedule='59 23 31 2 *' --image=registry.example/perl -- perl -wle 'print 1'",
            Prints("cronjob.batch/tick created"),
        ),
        Row::new("get cronjob/tick", Says(&["tick", "59 23 31 2 *", "False"])),
        Row::new("describe cronjob/tick", Says(&["Schedule:", "59 23 31 2 *", "Concurrency Policy:"])),
        Row::new("describe --chunk-size=1 --v=6 cronjobs", Says(&["/cronjobs?limit=1"])),
        Row::new("create job tock --from=cronjob/tick --dry-run=client -o name", Prints("job.batch/tock")),
        Row::new(
            "create job tock --from=cronjob/tick --dry-run=server",
            Prints("job.batch/tock created (server dry run)"),
        ),
        Row::new("get jobs -o name", Prints("")),
        Row::new("create job tock --from=cronjob/tick", Succeeds),
        Row::new("get job/tock", Says(&["tock", "0/1"])),
        Row::new(
            "get job tock -o go-template='{{(index .spec.template.spec.containers 0).command}}'",
            Prints("[perl -wle print 1]"),
        ),
        Row::new(
            "get job tock -o jsonpath={.metadata.annotations}",
            Says(&["\"cronjob.kubernetes.io/instantiate\":\"manual\""]),
        ),
        Row::new("describe job/tock", Says(&["Parallelism:", "Completions:", "Controlled By:", "CronJob/tick"])),
        Row::new("describe --chunk-size=1 --v=6 jobs", Says(&["/jobs?limit=1"])),
        Row::new("delete job tock", Succeeds),
        Row::new("delete cronjob tick", Succeeds),
    ],
};

/// The thirty-first of February is no day to wait for, and somebody says so.
pub(crate) const EVENTS: Section = Section {
    name: "events",
    files: &[],
    rows: &[
        Row::new("events -A", Omits(&["Cronjob/pi", "CronJob/never"])),
        Row::new("create cronjob never --schedule='59 23 31 2 *' --image=registry.example/perl -- true", Succeeds),
        Row::new("events -A", Shows(&["Warning", "InvalidSchedule", "CronJob/never"])),
        Row::new("events", Says(&["Warning", "InvalidSchedule", "CronJob/never"])),
        Row::new("events --for=Cronjob/never", Says(&["Warning", "InvalidSchedule", "CronJob/never"])),
        Row::new(
            "events --for=Cronjob/never --watch --request-timeout=1",
            Grumbles(&["Warning", "InvalidSchedule", "CronJob/never"]),
        ),
        Row::new("events --for=Cronjob/never --types=Warning", Says(&["Warning", "InvalidSchedule", "CronJob/never"])),
        Row::new("events --for=Cronjob/never --types=Normal", Omits(&["Warning", "InvalidSchedule"])),
        Row::new("events --for=Cronjob/never --no-headers", Omits(&["LAST SEEN", "REASON"])),
        Row::new("events --for=Cronjob/never --no-headers", Says(&["Warning", "InvalidSchedule", "CronJob/never"])),
        Row::new(
            "events --for=Cronjob/never -o json",
            Says(&["\"type\": \"Warning\"", "\"reason\": \"InvalidSchedule\"", "\"name\": \"never\""]),
        ),
        Row::new(
            "events --for=Cronjob/never -o yaml",
            Says(&["type: Warning", "reason: InvalidSchedule", "name: never"]),
        ),
        Row::new("delete cronjob never", Succeeds),
    ],
};

pub(crate) const POD_TEMPLATES: Section = Section {
    name: "podtemplates",
    files: &[("mould.json", TEMPLATE)],
    rows: &[
        Row::new("create -f $DIR/mould.json", Prints("podtemplate/mould created")),
        Row::new(
            "get podtemplates",
            Says(&["NAME", "CONTAINERS", "IMAGES", "POD LABELS", "registry.example/web:1", "name=mould"]),
        ),
        Row::new("get podtemplates -o yaml", Says(&["name: mould"])),
        Row::new("describe --chunk-size=1 --v=6 podtemplates", Says(&["/podtemplates?limit=1", "mould"])),
        Row::new("delete podtemplate mould", Succeeds),
        Row::new("get podtemplate -o name", Prints("")),
    ],
};
