//! The benchmarks run to their end with tiny sizes and print the figures that are asked of them. What the figures say
//! is not looked at: a busy machine must not fail a test.

use std::path::{Path, PathBuf};

/// The directory of the binaries that `make test-surroundings` builds, or why the test is skipped.
fn bin_dir(binaries: &[&str]) -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_BIN_EXE_bench-api")).parent().unwrap_or(Path::new("."));
    match binaries.iter().find(|binary| !directory.join(binary).is_file()) {
        None => Ok(directory.to_owned()),
        Some(missing) => Err(format!("there is no {missing} in {}", directory.display())),
    }
}

#[expect(clippy::disallowed_methods, reason = "the test runs the benchmark as a program")]
fn figures(program: &str, arguments: &[&str]) -> Vec<String> {
    let output = std::process::Command::new(program).args(arguments).output().expect("the benchmark starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).expect("figures are text");
    text.lines().filter_map(|line| Some(line.strip_prefix("RESULT ")?.split(' ').next()?.to_owned())).collect()
}

#[test]
fn bench_api_measures_every_verb() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--bin-dir", directory]);
    let wanted = [
        "create-embedded-sequential",
        "create-embedded-parallel",
        "cpu-create-embedded-parallel",
        "cpu-patch-status-embedded",
        "cpu-update-embedded",
        "cpu-delete-embedded",
        "memory-per-cached-pod-embedded",
        "get",
        "cpu-get",
        "list-json",
        "cpu-list-json",
        "list-protobuf",
        "cpu-list-protobuf",
        "watch-fan-out",
        "cpu-watch-event",
    ];
    let missing: Vec<_> = wanted.iter().filter(|name| !found.iter().any(|line| line == *name)).collect();
    assert!(missing.is_empty(), "no figure for {missing:?} among {found:?}");
    if bench::etcd::find(None).is_none() {
        return test_facts::skipped("the part with etcd: there is none in PATH and $ETCD is not set");
    }
    assert!(found.iter().any(|name| name == "create-etcd-parallel"), "nothing about etcd among {found:?}");
}

#[test]
fn bench_soak_sees_every_round() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--soak=2", "--bin-dir", directory]);
    let wanted = ["soak-memory-1", "soak-store-1", "soak-memory-2", "soak-store-2", "soak-memory", "soak-store"];
    assert_eq!(found, wanted);
}

#[test]
fn bench_overload_asks_beside_a_noisy_tenant() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--overload=20", "--bin-dir", directory]);
    let wanted = [
        "overload-lease",
        "overload-lease-p99",
        "overload-get",
        "overload-get-p99",
        "overload-noise-answered",
        "overload-noise-refused",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn bench_policies_measures_each_server() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--policies=40", "--bin-dir", directory]);
    let wanted = [
        "policies-none-cpu",
        "policies-ten-more-cpu",
        "policies-ten-part",
        "policies-webhook-more-cpu",
        "policies-webhook-part",
        "policies-audit-cpu",
        "policies-none-latency",
        "policies-ten-later",
        "policies-webhook-later",
        "policies-audit-later",
        "policies-change",
        "policies-change-most",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn bench_definitions_measures_each_store() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--definitions=12", "--bin-dir", directory]);
    let of_embedded = [
        "definitions-seconds",
        "definition-cpu",
        "definition-memory",
        "definition-memory-at-rest",
        "definitions-openapi-v3-index-cpu",
        "definitions-openapi-v2-cpu",
        "definitions-discovery-cpu",
        "definition-memory-with-documents",
        "definition-memory-at-most",
    ];
    assert_eq!(found.get(..of_embedded.len()), Some(&of_embedded.map(str::to_owned)[..]));
    let of_etcd = found.iter().skip(of_embedded.len()).map(|name| name.trim_end_matches("-etcd"));
    assert!(of_etcd.clone().count() == 0 || of_etcd.eq(of_embedded), "{found:?}");
}

#[test]
fn bench_lease_renews_beside_lists() {
    let directory = match bin_dir(&["kube-apiserver"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-api"), &["--quick", "--lease=200", "--bin-dir", directory]);
    let wanted = ["lease-beside-lists", "lease-beside-lists-p99", "lease-beside-lists-most", "list-gzip"];
    assert_eq!(found, wanted);
}

#[test]
fn bench_sched_places_every_pod() {
    let program = env!("CARGO_BIN_EXE_bench-sched");
    let in_process = figures(program, &["--quick", "--road", "inproc"]);
    let rows = bench::sched::all_shapes().map(|shape| match shape.name {
        "" => "sched-inproc".to_owned(),
        name => format!("sched-inproc-{name}"),
    });
    let wanted: Vec<String> = rows.flat_map(|row| [row.clone(), format!("{row}-cpu"), format!("{row}-load")]).collect();
    assert_eq!(in_process, wanted);
    let directory = match bin_dir(&["kube-apiserver", "kube-scheduler"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let over_https = figures(program, &["--quick", "--road", "https", "--shape", "basic", "--bin-dir", directory]);
    let wanted =
        ["sched-https", "sched-https-cpu", "sched-https-events", "sched-https-apiserver-cpu", "sched-https-load"];
    assert_eq!(over_https, wanted);
}

#[test]
fn bench_elastic_looks_at_every_autoscaler() {
    let directory = match bin_dir(&["kube-apiserver", "kube-controller-manager", "metrics-server"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-elastic"), &["--quick", "--bin-dir", directory]);
    let wanted = [
        "elastic-metrics-server-cpu",
        "elastic-metrics-server-memory",
        "elastic-autoscalers-cpu",
        "elastic-autoscalers-looks",
        "elastic-autoscalers-memory",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn bench_volumes_sees_every_pod_run() {
    let directory = match bin_dir(&["kube-apiserver", "kube-controller-manager", "kube-scheduler"]) {
        Ok(directory) => directory,
        Err(why) => return test_facts::skipped(&why),
    };
    let directory = directory.to_str().expect("a path that is text");
    let found = figures(env!("CARGO_BIN_EXE_bench-volumes"), &["--quick", "--bin-dir", directory]);
    let wanted = [
        "volumes-paced-to-running",
        "volumes-paced-pod-to-running",
        "volumes-paced-apiserver-cpu",
        "volumes-paced-scheduler-cpu",
        "volumes-paced-controllers-cpu",
        "volumes-to-running",
        "volumes-pod-to-running",
        "volumes-apiserver-cpu",
        "volumes-scheduler-cpu",
        "volumes-controllers-cpu",
        "volumes-load",
    ];
    assert_eq!(found, wanted);
}
