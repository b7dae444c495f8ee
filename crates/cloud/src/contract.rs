//! What every cloud must do, as a suite: the controllers rely on it. A provider runs [`check`] with a bench of its own.

use api_types::core_v1::{Node, NodeAddress};

use crate::provider::{InstanceMetadata, Provider};

/// An instance as the suite wants it.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The name, which is the node's.
    pub name: String,
    /// The cloud's own number for it, without the cloud's name.
    pub id: String,
    /// Whether it is stopped.
    pub stopped: bool,
    /// Its address inside the cluster.
    pub address: String,
}

/// A cloud that the suite can change.
pub trait Bench {
    /// The provider under test.
    fn provider(&self) -> &dyn Provider;
    /// From now on the cloud has just these instances.
    fn set(&self, instances: &[Instance]);
}

fn node(name: &str, provider_id: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = name.to_owned();
    node.spec.provider_id = provider_id.to_owned();
    node
}

async fn metadata(bench: &dyn Bench, node: &Node) -> InstanceMetadata {
    let found = bench.provider().instance_metadata(node).await;
    found.expect("the cloud answers").expect("the instance is known")
}

/// Runs the whole suite.
///
/// # Panics
/// When the provider breaks a rule.
pub async fn check(bench: &dyn Bench) {
    let one = Instance { name: "one".into(), id: "1".into(), stopped: false, address: "10.0.0.1".into() };
    let two = Instance { name: "two".into(), id: "2".into(), stopped: true, address: "10.0.0.2".into() };
    bench.set(&[one.clone(), two.clone()]);
    let found = metadata(bench, &node("one", "")).await;
    ids_name_their_cloud(bench, &found);
    the_id_goes_before_the_name(bench, &found).await;
    stopped_instances_exist(bench).await;
    bench.set(&[two]);
    assert!(!exists(bench, &node("one", &found.provider_id)).await, "a deleted instance does not exist");
    assert!(!exists(bench, &node("one", "")).await, "nor by its name");
    let unknown = bench.provider().instance_metadata(&node("one", "")).await;
    assert_eq!(unknown, Ok(None), "what is not known is no error");
    bench.set(&[Instance { name: "renamed".into(), ..one }]);
    let again = metadata(bench, &node("renamed", "")).await;
    assert_eq!(again.provider_id, found.provider_id, "an ID never changes");
}

async fn exists(bench: &dyn Bench, node: &Node) -> bool {
    bench.provider().instance_exists(node).await.expect("the cloud answers")
}

fn ids_name_their_cloud(bench: &dyn Bench, found: &InstanceMetadata) {
    let prefix = format!("{}://", bench.provider().name());
    assert!(found.provider_id.starts_with(&prefix), "{} starts with {prefix}", found.provider_id);
    let internal = NodeAddress { type_: "InternalIP".into(), address: "10.0.0.1".into() };
    assert!(found.addresses.contains(&internal), "{:?}", found.addresses);
}

async fn the_id_goes_before_the_name(bench: &dyn Bench, found: &InstanceMetadata) {
    let misnamed = node("two", &found.provider_id);
    assert_eq!(metadata(bench, &misnamed).await, *found, "the ID decides");
    let nobody = node("one", &format!("{}-none", found.provider_id));
    assert!(!exists(bench, &nobody).await, "an ID that is nobody's is not helped by a name");
}

async fn stopped_instances_exist(bench: &dyn Bench) {
    for (name, stopped) in [("one", false), ("two", true)] {
        assert!(exists(bench, &node(name, "")).await, "{name} exists, running or not");
        let answer = bench.provider().instance_is_shut_down(&node(name, "")).await;
        assert_eq!(answer, Ok(stopped), "{name}");
    }
    let answer = bench.provider().instance_is_shut_down(&node("nobody", "")).await;
    assert_eq!(answer, Ok(false), "what does not exist is not stopped");
}
