//! Every field of the configuration and every flag is obeyed or refused: with another value than the default, what the
//! process and the scheduler are made of is something else, or there is no scheduler.

use api_machinery::reflect::Reflect;
use api_types::scheduler_config_v1::{
    ClientConnectionConfiguration, KubeSchedulerProfile, LeaderElectionConfiguration, Plugins,
};
use base::Rng;
use component_base::flags::{FlagSet, GLOBAL, LOGS, parse};
use serde_json::json;

use super::*;
use crate::framework::Profile;
use crate::plugins::build_cx;

/// What is read elsewhere: by whoever starts any component.
const OF_ALL_COMPONENTS: &[FlagSet] = &[GLOBAL, LOGS];
/// Obeyed by the set of gates, and by writing the configuration instead of starting.
const OTHERWISE: &[&str] = &["emulated-version", "feature-gates", "min-compatibility-version", "write-config-to"];
/// What has no effect: lock contention is profiled with Go's tools only, and addresses are shared whatever is said, as
/// upstream.
const WITHOUT_EFFECT: &[&str] = &["contention-profiling", "permit-address-sharing"];
const CONTENTION: &str = "enableContentionProfiling";

fn kubeconfig(server: &str) -> String {
    let cluster = json!({"name": "c", "cluster": {"server": format!("https://{server}:6443")}});
    let context = json!({"name": "c", "context": {"cluster": "c", "user": "u"}});
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [context], "clusters": [cluster],
        "users": [{"name": "u", "user": {}}]})
    .to_string()
}

/// The plugins of a profile at each point.
fn points(profile: &Profile) -> String {
    macro_rules! names {
        ($($point:ident),*) => {
            [$(profile.$point.iter().map(|at| format!("{} {}", at.name, at.weight)).collect::<Vec<_>>()),*]
        };
    }
    let points = names!(
        pre_enqueue,
        pre_filter,
        filter,
        post_filter,
        pre_score,
        score,
        reserve,
        permit,
        pre_bind,
        bind,
        post_bind,
        remote_filter,
        remote_score,
        remote_bind,
        remote_preempt
    );
    format!("{} {:?} {points:?}", profile.name, profile.percentage_of_nodes_to_score)
}

/// All that becomes of a command line.
fn complaint(arguments: Vec<String>) -> Result<String, String> {
    let mut options = parse(flags::FLAGS, arguments).map_err(|error| error.to_string())?;
    settings::prepare(&mut options).map_err(|error| error.to_string())?;
    let configuration = settings::configuration(&options, &Gates::default()).map_err(|error| error.to_string())?;
    let settings = Settings::new(configuration, &options, &Rng::seeded(1), &Gates::default());
    let settings = settings.map_err(|error| error.to_string())?;
    let profiles = config::build_profiles(&settings.configuration, plugins::ALL, &build_cx())
        .map_err(|error| error.to_string())?;
    let profiles: Vec<_> = profiles.iter().map(|profile| points(profile)).collect();
    let tuning = Tuning::of(&settings.configuration, settings.max_in_unschedulable);
    let delays = settings.configuration.delay_cache_until_active;
    Ok(format!("{:?} {tuning:?} {profiles:?} {delays}", settings.process))
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for server in ["one", "two"] {
            std::fs::write(dir.path().join(server), kubeconfig(server)).unwrap();
        }
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// What becomes of a configuration file in which one field was set.
    fn complaint_with(&self, path: &[&str], value: Value) -> Result<String, String> {
        let mut file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.path("one")}, "profiles": [{"schedulerName": "default-scheduler"}]});
        let mut place = &mut file;
        for key in path {
            place = if *key == "profile" { &mut place["profiles"][0] } else { &mut place[*key] };
        }
        *place = value;
        std::fs::write(self.path("config"), file.to_string()).unwrap();
        complaint(vec![format!("--config={}", self.path("config"))])
    }
}

/// Another value for each field.
fn probes(files: &Files) -> Vec<(Vec<&'static str>, Value)> {
    let off = |plugin: &str| json!({"disabled": [{"name": plugin}]});
    let on = |plugin: &str| json!({"enabled": [{"name": plugin}]});
    let election = [
        ("leaderElect", json!(false)),
        ("leaseDuration", json!("20s")),
        ("renewDeadline", json!("9s")),
        ("retryPeriod", json!("3s")),
        ("resourceLock", json!("endpoints")),
        ("resourceName", json!("other")),
        ("resourceNamespace", json!("other")),
    ];
    let connection = [
        ("kubeconfig", json!(files.path("two"))),
        ("acceptContentTypes", json!("application/cbor")),
        ("contentType", json!("application/json")),
        ("qps", json!(7)),
        ("burst", json!(7)),
    ];
    let plugins = [
        ("preEnqueue", off("SchedulingGates")),
        ("queueSort", off("PrioritySort")),
        ("preFilter", off("NodePorts")),
        ("filter", off("NodeName")),
        ("postFilter", off("DefaultPreemption")),
        ("preScore", off("ImageLocality")),
        ("score", off("ImageLocality")),
        // No plugin here is at these points.
        ("reserve", on("NodeName")),
        ("permit", on("NodeName")),
        ("preBind", on("NodeName")),
        ("bind", off("DefaultBinder")),
        ("postBind", on("NodeName")),
        ("multiPoint", off("NodeName")),
        ("placementGenerate", on("NodeName")),
        ("placementScore", on("NodeName")),
    ];
    let args = json!([{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 101}}]);
    let single = [
        (vec!["parallelism"], json!(7)),
        (vec!["enableProfiling"], json!(false)),
        (vec![CONTENTION], json!(false)),
        (vec!["percentageOfNodesToScore"], json!(50)),
        (vec!["podInitialBackoffSeconds"], json!(2)),
        (vec!["podMaxBackoffSeconds"], json!(20)),
        (vec!["extenders"], json!([{"urlPrefix": "https://extender", "filterVerb": "filter"}])),
        (vec!["delayCacheUntilActive"], json!(true)),
        (vec!["profile", "schedulerName"], json!("other")),
        (vec!["profile", "percentageOfNodesToScore"], json!(50)),
        (vec!["profile", "pluginConfig"], args),
    ];
    let under = |first: Vec<&'static str>, all: Vec<(&'static str, Value)>| {
        all.into_iter().map(move |(name, value)| ([first.clone(), vec![name]].concat(), value))
    };
    let mut all = single.to_vec();
    all.extend(under(vec!["leaderElection"], election.to_vec()));
    all.extend(under(vec!["clientConnection"], connection.to_vec()));
    all.extend(under(vec!["profile", "plugins"], plugins.to_vec()));
    all
}

/// The paths of all fields, those of a profile under `profile`.
fn all_fields() -> Vec<Vec<&'static str>> {
    let names = |of: &dyn Reflect, under: &[&'static str]| -> Vec<Vec<&'static str>> {
        of.struct_type().fields.iter().map(|field| [under, &[field.name]].concat()).collect()
    };
    let mut all = names(&KubeSchedulerConfiguration::default(), &[]);
    all.extend(names(&LeaderElectionConfiguration::default(), &["leaderElection"]));
    all.extend(names(&ClientConnectionConfiguration::default(), &["clientConnection"]));
    all.extend(names(&KubeSchedulerProfile::default(), &["profile"]));
    all.extend(names(&Plugins::default(), &["profile", "plugins"]));
    let parts: [&[&str]; 4] = [&["leaderElection"], &["clientConnection"], &["profiles"], &["profile", "plugins"]];
    all.retain(|path| !parts.contains(&path.as_slice()));
    all.sort_unstable();
    all
}

#[tokio::test]
async fn every_field_is_obeyed_or_refused() {
    let files = Files::new();
    let usual = files.complaint_with(&["clientConnection", "kubeconfig"], json!(files.path("one")));
    assert!(usual.is_ok(), "{usual:?}");
    let probes = probes(&files);
    let mut probed: Vec<_> = probes.iter().map(|(path, _)| path.clone()).collect();
    probed.sort_unstable();
    assert_eq!(probed, all_fields());
    for (path, value) in probes {
        let ignored = files.complaint_with(&path, value) == usual;
        assert_eq!(ignored, path == [CONTENTION], "{path:?}");
    }
    // What the client does anyway may be asked for.
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(files.complaint_with(&["clientConnection", "acceptContentTypes"], json!(both)), usual);
}

#[test]
fn every_flag_is_obeyed_or_refused() {
    let files = Files::new();
    let base = format!("--kubeconfig={}", files.path("one"));
    let usual = complaint(vec![base.clone()]);
    assert!(usual.is_ok(), "{usual:?}");
    let mut ignored = Vec::new();
    for flag in flags::FLAGS.iter().flat_map(|set| set.flags) {
        let elsewhere = OF_ALL_COMPONENTS.iter().any(|set| set.flags.iter().any(|other| other.name == flag.name));
        if elsewhere || OTHERWISE.contains(&flag.name) {
            continue;
        }
        if complaint(vec![base.clone(), format!("--{}={}", flag.name, flag.other_value())]) == usual {
            ignored.push(flag.name);
        }
    }
    ignored.sort_unstable();
    assert_eq!(ignored, WITHOUT_EFFECT);
}
