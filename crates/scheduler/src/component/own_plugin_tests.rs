//! A plugin of somebody else's: one descriptor in the list of plugins. It reads a kind of its own, lets pods wait in `Permit`
//! for an object of that kind, and names the events that may help pods that it rejected.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::ConfigMap;
use client::fake::FakeServer;
use serde_json::json;

use super::tests::{PODS, pod_in, put, start_with};
use super::*;
use crate::framework::{
    Action, CycleState, Filter, Hint, Permit, Permitted, Plugin, PluginError, Registration, Resource, Status,
    StatusResult,
};
use crate::listers::Lister;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;
use crate::test_objects::{node, pod};

const NAME: &str = "Turnstile";
const CONFIG_MAPS: &str = "v1/configmaps";

/// Pods of an app fit nowhere while there is no config map of the app's name, and wait before they are bound until it is open.
struct Turnstile {
    gates: Lister<ConfigMap>,
}

const TURNSTILE: Descriptor = Descriptor::new(NAME, 0, build);

fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(Turnstile { gates: cx.listers.of() });
    let waiting = Arc::clone(&cx.waiting);
    let opened = Registration::hinted(Resource::of::<ConfigMap>(), Action::ALL, move |pod, object| {
        let Some(gate) = object.other::<ConfigMap>() else { return Hint::Queue };
        Hint::queue_if(pod.metadata.labels.get("app") == Some(&gate.metadata.name))
    });
    // What lets waiting pods go on is the plugin's own affair.
    let tasks = cx.tasks.clone();
    let gates = plugin.gates.clone();
    tasks.spawn_cancellable("turnstile", async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for pod in waiting.all() {
                if is_open(&gates, &pod.info) {
                    pod.allow(NAME);
                }
            }
        }
    });
    Ok(Plugin::new(NAME).filter(plugin.clone()).permit(plugin).wakes_on(vec![opened]))
}

fn app(pod: &PodInfo) -> &str {
    pod.pod.metadata.labels.get("app").map(String::as_str).unwrap_or_default()
}

fn is_open(gates: &Lister<ConfigMap>, pod: &PodInfo) -> bool {
    let gate = gates.find(&pod.pod.metadata.namespace, app(pod));
    gate.is_some_and(|gate| gate.data.get("open").map(String::as_str) == Some("yes"))
}

impl Filter for Turnstile {
    fn filter(&self, _: &CycleState, pod: &PodInfo, _: NodeView<'_>) -> StatusResult {
        match self.gates.find(&pod.pod.metadata.namespace, app(pod)) {
            Some(_) => Ok(()),
            None => Err(Status::unresolvable("there is no turnstile")),
        }
    }
}

impl Permit for Turnstile {
    fn permit(&self, _: &CycleState, pod: &PodInfo, _: &str) -> Result<Permitted, Status> {
        let open = is_open(&self.gates, pod);
        Ok(if open { Permitted::Now } else { Permitted::Wait(Duration::from_secs(60)) })
    }
}

fn configuration() -> KubeSchedulerConfiguration {
    let enabled = json!([{"name": NAME}]);
    let file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}]});
    config::decode(&file).unwrap()
}

fn turnstile(server: &FakeServer, name: &str, open: &str) {
    let mut gate = ConfigMap::default();
    (gate.metadata.name, gate.metadata.namespace) = (name.into(), "default".into());
    gate.data.insert("open".into(), open.into());
    put(server, CONFIG_MAPS, &gate);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_with_a_kind_of_its_own_is_one_line() {
    let server = FakeServer::new();
    put(&server, "v1/nodes", &*node("a").build());
    let plugins = [plugins::ALL, &[TURNSTILE]].concat();
    let client = start_with(&server, &plugins, &configuration()).await;
    put(&server, PODS, &*pod("p").label("app", "web").build());
    put(&server, PODS, &*pod("q").label("app", "db").build());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = |name: &str| pod_in(&server, name)["status"]["conditions"][0]["message"].clone();
    let rejected = "0/1 nodes are available: 1 there is no turnstile. no new claims to deallocate, preemption: 0/1 nodes are available: \
                    1 Preemption is not helpful for scheduling.";
    assert_eq!(message("p"), rejected);
    // The event of the new object wakes the pod it is about; it fits now, and waits.
    turnstile(&server, "web", "no");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let pod = pod_in(&server, "p");
    assert_eq!((&pod["spec"]["nodeName"], &pod["status"]["nominatedNodeName"]), (&Value::Null, &"a".into()));
    assert_eq!(pod_in(&server, "q")["status"]["nominatedNodeName"], Value::Null);
    turnstile(&server, "web", "yes");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
    // Who waits too long is told so.
    turnstile(&server, "db", "no");
    tokio::time::sleep(Duration::from_secs(90)).await;
    let expected = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Turnstile.";
    assert_eq!(message("q"), expected);
    assert_eq!(client.tasks().shutdown(Duration::from_secs(5)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn only_what_the_profiles_read_is_watched() {
    let watched = async |plugins: &[Descriptor], configuration: &KubeSchedulerConfiguration| {
        let server = FakeServer::new();
        let client = start_with(&server, plugins, configuration).await;
        let requests = server.requests();
        client.tasks().shutdown(Duration::from_secs(5)).await;
        let of = |kind: &str| requests.iter().any(|request| request.contains(kind));
        ["pods", "nodes", "namespaces", "services", "statefulsets", "poddisruptionbudgets", "configmaps"].map(of)
    };
    let usual = config::default_configuration();
    assert_eq!(watched(plugins::ALL, &usual).await, [true, true, true, true, true, true, false]);
    let mut few = usual.clone();
    let lists = few.profiles[0].plugins.as_mut().unwrap();
    let named = ["PodTopologySpread", "InterPodAffinity", "DefaultPreemption"];
    lists.multi_point.enabled.retain(|plugin| !named.contains(&plugin.name.as_str()));
    assert_eq!(watched(plugins::ALL, &few).await, [true, true, false, false, false, false, false]);
    let plugins = [plugins::ALL, &[TURNSTILE]].concat();
    assert_eq!(watched(&plugins, &configuration()).await, [true; 7]);
    assert_eq!(watched(&plugins, &usual).await, [true, true, true, true, true, true, false], "it is not enabled");
}
