//! Drivers that register with a node of a small API server.

use std::path::Path;

use base::CancellationToken;
use client::fake::FakeServer;
use node_api::csi::fake::{FakeDriver, Fault};
use node_api::csi::v1::{NodeGetInfoResponse, Topology};
use node_api::tonic::Code;
use serde_json::{Value, json};

use super::*;

struct Bench {
    dir: tempfile::TempDir,
    server: FakeServer,
    handler: CsiHandler,
    token: CancellationToken,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

fn bench() -> Bench {
    let server = FakeServer::new();
    let node = json!({"metadata": {"name": "n1", "uid": "u1", "labels": {"zone": "a"}}});
    server.put("v1/nodes", node);
    let nodes = Some(Arc::new(CsiNodes::new(&server.client(), "n1")));
    let handler = CsiHandler { drivers: Drivers::new(None), nodes };
    Bench { dir: tempfile::tempdir().unwrap(), server, handler, token: CancellationToken::new() }
}

impl Bench {
    fn start(&self, driver: &FakeDriver, socket: &str) -> String {
        let path = self.dir.path().join(socket);
        let served = driver.clone().serve(&path, self.token.clone()).unwrap();
        base::TaskGroup::new("driver").spawn("driver", async move { served.await.unwrap() });
        path.display().to_string()
    }

    fn csi_node(&self) -> Value {
        self.server.objects("storage.k8s.io/v1/csinodes").into_iter().next().unwrap_or_default()
    }

    fn node(&self) -> Value {
        self.server.objects("v1/nodes").remove(0)
    }
}

fn plugin(name: &str, endpoint: &str, versions: &[&str]) -> PluginInfo {
    PluginInfo {
        r#type: "CSIPlugin".into(),
        name: name.into(),
        endpoint: endpoint.into(),
        supported_versions: versions.iter().map(ToString::to_string).collect(),
    }
}

fn reaches(zone: &str) -> Option<Topology> {
    Some(Topology { segments: [("zone".to_owned(), zone.to_owned()), ("rack".to_owned(), "7".to_owned())].into() })
}

#[tokio::test]
async fn a_driver_is_told_of_to_the_api_and_forgotten_again() {
    let bench = bench();
    let driver = FakeDriver::default();
    let max_volumes_per_node = i64::from(i32::MAX) + 5;
    driver.set_info(NodeGetInfoResponse {
        node_id: "node-of-a".into(),
        max_volumes_per_node,
        accessible_topology: reaches("a"),
    });
    let endpoint = bench.start(&driver, "a.sock");
    let info = plugin("a.example.com", &endpoint, &["1.0.0"]);
    bench.handler.register(&info).await.unwrap();
    let other = bench.start(&FakeDriver::new("node-of-b", &[]), "b.sock");
    bench.handler.register(&plugin("b.example.com", &other, &["1.0.0"])).await.unwrap();

    let csi_node = bench.csi_node();
    assert_eq!(csi_node["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(
        csi_node["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"]
            .as_str()
            .unwrap()
            .matches(',')
            .count(),
        6
    );
    let expected = json!([
        {"name": "a.example.com", "nodeID": "node-of-a", "topologyKeys": ["rack", "zone"], "allocatable": {"count": i32::MAX}},
        {"name": "b.example.com", "nodeID": "node-of-b", "topologyKeys": null},
    ]);
    assert_eq!(csi_node["spec"]["drivers"], expected);
    let node = bench.node();
    let ids: Value =
        serde_json::from_str(node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"].as_str().unwrap())
            .unwrap();
    assert_eq!(ids, json!({"a.example.com": "node-of-a", "b.example.com": "node-of-b"}));
    assert_eq!(node["metadata"]["labels"], json!({"zone": "a", "rack": "7"}));

    bench.handler.unregister(&info).await;
    assert!(bench.handler.drivers.client("a.example.com").is_err());
    assert_eq!(bench.csi_node()["spec"]["drivers"][0]["name"], "b.example.com");
    let node = bench.node();
    let ids = node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"].as_str().unwrap().to_owned();
    assert_eq!(ids, r#"{"b.example.com":"node-of-b"}"#);
    assert_eq!(node["metadata"]["labels"]["rack"], "7", "labels stay");
}

#[tokio::test]
async fn a_driver_that_is_refused_leaves_nothing() {
    let bench = bench();
    let cases = [
        (NodeGetInfoResponse::default(), "error adding CSI driver node info: driverNodeID must not be empty"),
        (
            NodeGetInfoResponse { node_id: "x".into(), accessible_topology: reaches("b"), ..Default::default() },
            "error updating Node object with CSI driver node info: detected topology value collision: driver reported \
             \"zone\":\"b\" but existing label is \"zone\":\"a\"",
        ),
    ];
    for (index, (info, expected)) in cases.into_iter().enumerate() {
        let driver = FakeDriver::default();
        driver.set_info(info);
        let endpoint = bench.start(&driver, &format!("{index}.sock"));
        let refused = bench.handler.register(&plugin("d", &endpoint, &["1.0.0"])).await.unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert!(bench.handler.drivers.client("d").is_err());
    }
    let driver = FakeDriver::new("x", &[]);
    driver.fail_next("info", Fault::Refuse(Code::Internal, "out of order"));
    let endpoint = bench.start(&driver, "broken.sock");
    let refused = bench.handler.register(&plugin("d", &endpoint, &["1.0.0"])).await.unwrap_err();
    assert_eq!(refused.to_string(), "rpc error: code = Internal desc = out of order");
    assert!(!bench.node()["metadata"]["annotations"].to_string().contains("csi.volume"));
    assert_eq!(bench.csi_node()["spec"]["drivers"].as_array().map_or(0, Vec::len), 0);
}

#[tokio::test]
async fn versions_decide_who_takes_a_name() {
    let bench = bench();
    bench.handler.drivers.put_for_test("taken", Path::new("/old.sock"));
    let prefix = "kubernetes.io/csi: ValidatePlugin for CSI driver";
    let cases = [
        (plugin("new", "", &["1.0.0"]), None),
        (
            plugin("new", "", &[]),
            Some(format!("{prefix} \"new\" failed. Plugin returned an empty list for supported versions")),
        ),
        (
            plugin("new", "", &["0.1.0", "0.2.0"]),
            Some(format!(
                "{prefix} \"new\" failed. None of the versions specified [\"0.1.0\" \"0.2.0\"] are supported. \
                 err=highest supported version reported by driver is 0.2.0, must be v1.x"
            )),
        ),
        (plugin("taken", "", &["1.1.0"]), None),
        (
            plugin("taken", "", &["1.0.0"]),
            Some(format!(
                "{prefix} \"taken\" failed. Another driver with the same name is already registered with a higher \
                 supported version: \"1.0.0\""
            )),
        ),
    ];
    for (plugin, expected) in cases {
        assert_eq!(bench.handler.validate(&plugin).err().map(|error| error.to_string()), expected, "{plugin:?}");
    }
    bench.handler.unregister(&plugin("taken", "/other.sock", &["1.0.0"])).await;
    assert!(bench.handler.drivers.client("taken").is_ok(), "another socket's end is not this driver's");
}

#[tokio::test]
async fn the_csi_node_of_a_former_node_is_replaced() {
    let bench = bench();
    let former = json!({"metadata": {"name": "n1", "uid": "old", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u0"}]}, "spec": {"drivers": [
        {"name": "gone", "nodeID": "x", "topologyKeys": null}]}});
    bench.server.put("storage.k8s.io/v1/csinodes", former);
    let told = parking_lot::Mutex::new(Vec::new());
    super::super::initialize(bench.handler.nodes.as_ref().unwrap(), |error| told.lock().push(error)).await;
    assert_eq!(bench.csi_node()["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(bench.csi_node()["spec"]["drivers"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(*told.lock(), [None]);
}
