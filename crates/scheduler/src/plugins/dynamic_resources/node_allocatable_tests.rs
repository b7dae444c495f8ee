//! What claims give of that which nodes have anyway: whether there is room for it, and what is told of it.

use std::sync::Arc;

use api_types::core_v1::{Pod, PodStatus};
use api_types::resource_v1::ResourceSlice;
use component_base::shared_gates::NODE_ALLOCATABLE;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::tests::verdicts_in;
use super::tests::{Cycle, World, allocated, one};
use super::*;
use crate::framework::{Action, EventObject, Hint, Resource};
use crate::test_objects::{PodBuilder, node, object, pod};
use crate::writer::WriteError;

/// The devices of the node `a` are made of this.
fn world_of(devices: Value) -> World {
    let pool = json!({"name": "a", "generation": 2, "resourceSliceCount": 1});
    World::new().with::<ResourceSlice>(
        json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "a", "devices": devices, "pool": pool}}),
    )
}

/// Two devices of two CPUs and two pages each.
fn world() -> World {
    let mappings = json!({"cpu": {"allocationMultiplier": "2"}, "hugepages-2Mi": {"allocationMultiplier": "4Mi"}});
    let device = |name: &str| json!({"name": name, "nodeAllocatableResourceMappings": mappings});
    world_of(json!([device("one"), device("two")]))
}

/// Something of which any share can be had; each core of it counts for two CPUs.
fn shared() -> World {
    world_of(json!([{"name": "one", "allowMultipleAllocations": true, "capacity": {"d/cores": {"value": "8"}},
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "d/cores", "allocationMultiplier": "2"},
            "memory": {"capacityKey": "d/other"}}}]))
}

fn share(name: &str, cores: &str) -> Value {
    let mut claim = one(name);
    claim["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = json!({"requests": {"d/cores": cores}});
    claim
}

impl PodBuilder {
    /// A claim that the first container uses.
    fn using(self, claim: &str) -> Self {
        let entry = json!({"name": format!("c{}", self.0.spec.resource_claims.len())});
        let mut own = self.device_claim(claim);
        own.0.spec.containers[0].resources.claims.push(object(entry));
        own
    }

    fn whole(mut self, resource: &str, amount: &str) -> Self {
        let amount = amount.parse().unwrap();
        self.0.spec.resources.get_or_insert_default().requests.insert(resource.into(), amount);
        self
    }

    /// On the node `a`, where it has a claim.
    fn having(mut self, claim: &str, cpu: &str) -> Self {
        let status = json!({"resourceClaimName": claim, "containers": ["main"], "resources": {"cpu": cpu}});
        self.0.status.node_allocatable_resource_claim_statuses.push(object(status));
        self.on("a")
    }
}

fn verdict(world: &World, incoming: PodBuilder, running: Vec<PodBuilder>) -> String {
    let node = node("a").capacity("hugepages-2Mi", "8Mi");
    verdicts_in(&world.cx, &[NAME], incoming, vec![node], running).remove(0)
}

#[test]
fn there_is_room_for_what_claims_give() {
    let with = |world: World| world.with::<ResourceClaim>(one("c")).with::<ResourceClaim>(one("e"));
    let plain = || with(world());
    let had = |name: &str, reserved: &[&str]| world().with::<ResourceClaim>(allocated(name, reserved));
    let (cpu, pages) = ("Insufficient cpu", "Insufficient hugepages-2Mi");
    let busy = |cpu: &str| vec![pod("x").request("cpu", cpu).on("a")];
    let unused = "claim c: node-allocatable resource claim not referenced by any container within the pod";
    let level =
        "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests";
    let cases: Vec<(&str, World, PodBuilder, Vec<PodBuilder>, String)> = vec![
        ("room", plain(), pod("p").request("cpu", "2").using("c"), vec![], String::new()),
        ("its own and the claim's", plain(), pod("p").request("cpu", "2100m").using("c"), vec![], cpu.into()),
        ("beside others", plain(), pod("p").using("c"), busy("2"), String::new()),
        ("others are in the way", plain(), pod("p").using("c"), busy("2100m"), cpu.into()),
        ("others have it by claims", plain(), pod("p").using("c"), vec![pod("x").having("y", "3")], cpu.into()),
        ("two claims", plain(), pod("p").using("c").using("e"), vec![], String::new()),
        (
            "more than one resource",
            plain(),
            pod("p").request("cpu", "1").request("hugepages-2Mi", "2Mi").using("c").using("e"),
            vec![],
            format!("{cpu}, {pages}"),
        ),
        ("nobody uses it", plain(), pod("p").device_claim("c"), vec![], unused.into()),
        ("within the whole", plain(), pod("p").request("cpu", "1").whole("cpu", "3").using("c"), vec![], String::new()),
        ("beyond the whole", plain(), pod("p").request("cpu", "2").whole("cpu", "3").using("c"), vec![], level.into()),
        ("the whole is too large", plain(), pod("p").whole("cpu", "5").using("c"), vec![], cpu.into()),
        ("of something else", plain(), pod("p").whole("memory", "1Gi").using("c"), vec![], String::new()),
        ("had before", had("c", &[]), pod("p").request("cpu", "2100m").using("c"), vec![], cpu.into()),
        ("a share", shared().with::<ResourceClaim>(share("c", "2")), pod("p").using("c"), vec![], String::new()),
        ("too large a share", shared().with::<ResourceClaim>(share("c", "3")), pod("p").using("c"), vec![], cpu.into()),
        (
            "extended resources, which no container uses as a claim",
            world().with::<DeviceClass>(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "d/gpu"}})),
            pod("p").request("d/gpu", "1"),
            vec![],
            unused.replace("claim c:", "claim <extended-resources>:"),
        ),
        (
            "nobody can tell how much",
            world_of(json!([{"name": "one", "capacity": {"d/cores": {"value": "8"}},
                "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "d/cores"}}}]))
            .with::<ResourceClaim>(one("c")),
            pod("p").using("c"),
            vec![],
            "running \"DynamicResources\" filter plugin: claim default/c, device one: ConsumedCapacity is nil, but Capacity \
             key 'd/cores' is set in NodeAllocatableResourceMappings for resource cpu"
                .into(),
        ),
    ];
    for (name, world, incoming, running, expected) in cases {
        assert_eq!(verdict(&world, incoming, running), expected, "{name}");
    }
    let mut ungated = with(world());
    ungated.cx.gates = ungated.cx.gates.with(NODE_ALLOCATABLE, false);
    assert_eq!(verdict(&ungated, pod("p").request("cpu", "4").using("c"), busy("4")), "", "nobody counts it");
}

#[test]
fn a_claim_is_one_pods() {
    let used = |why: &str| format!("node allocatable resource claim c {why}");
    let mut elsewhere = pod("x").having("c", "1");
    elsewhere.0.metadata.namespace = "other".into();
    for (name, running, expected) in [
        ("another pod's", vec![pod("x").having("c", "1")], used("is already used by another pod")),
        ("others'", vec![pod("x").having("c", "1"), pod("y").having("c", "1")], used("shared by multiple pods")),
        ("its own", vec![pod("p").having("c", "1")], String::new()),
        ("another claim", vec![pod("x").having("e", "1"), elsewhere], String::new()),
    ] {
        let world = world().with::<ResourceClaim>(allocated("c", &["uid-x"]));
        assert_eq!(verdict(&world, pod("p").using("c"), running), expected, "{name}");
    }
}

/// What is written of pods' statuses.
#[derive(Default)]
struct Statuses {
    lines: Mutex<Vec<String>>,
    is_broken: Mutex<bool>,
}

fn shown(claimed: &[NodeAllocatableResourceClaimStatus]) -> String {
    let one = |own: &NodeAllocatableResourceClaimStatus| {
        let amounts: Vec<_> = own.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        format!("{}({}): {}", own.resource_claim_name, own.containers.join(" "), amounts.join(" "))
    };
    claimed.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[async_trait]
impl ClusterWriter for Statuses {
    async fn bind(&self, _: &Pod, _: &str) -> Result<(), WriteError> {
        Ok(())
    }
    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        let of = |status: &PodStatus| shown(&status.node_allocatable_resource_claim_statuses);
        self.lines.lock().push(format!("[{}] -> [{}]", of(&pod.status), of(status)));
        // Whoever writes takes a while.
        tokio::time::sleep(Duration::from_millis(10)).await;
        if *self.is_broken.lock() { Err(WriteError::Failed("no luck".into())) } else { Ok(()) }
    }
    async fn delete(&self, _: &Pod) -> Result<(), WriteError> {
        Ok(())
    }
}

fn watched(mut world: World) -> (World, Arc<Statuses>) {
    let statuses = Arc::new(Statuses::default());
    world.cx.writer = statuses.clone();
    (world, statuses)
}

#[tokio::test(start_paused = true)]
async fn statuses_tell_what_claims_give() {
    let two_users = |mut own: PodBuilder| {
        let init = json!({"name": "init", "resources": {"claims": [{"name": "c0", "request": "r"}, {"name": "c0"}]}});
        own.0.spec.init_containers.push(object(init));
        own
    };
    let plain = World::new().with::<ResourceClaim>(one("c"));
    for (name, world, incoming, expected) in [
        ("plain devices", plain, pod("p").using("c"), ""),
        (
            "in the order of their names",
            world().with::<ResourceClaim>(one("c")).with::<ResourceClaim>(one("b")),
            two_users(pod("p").using("c").using("b")),
            "b(main): cpu=2 hugepages-2Mi=4Mi; c(init main): cpu=2 hugepages-2Mi=4Mi",
        ),
        ("a share", shared().with::<ResourceClaim>(share("c", "1500m")), pod("p").using("c"), "c(main): cpu=3"),
    ] {
        let (world, statuses) = watched(world);
        let mut cycle = Cycle::filtered_on(world, incoming, node("a").capacity("hugepages-2Mi", "1Gi"));
        assert_eq!(shown(&claimed_on(&cycle.state, "a")), expected, "{name}");
        cycle.reserve();
        assert_eq!(cycle.bind().await, Ok(()));
        let lines = std::mem::take(&mut *statuses.lines.lock());
        let written = format!("[] -> [{expected}]");
        assert_eq!(lines, if expected.is_empty() { vec![] } else { vec![written.as_str()] }, "{name}");
        cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let taken_back = format!("[{expected}] -> []");
        let lines = statuses.lines.lock().clone();
        assert_eq!(lines, if expected.is_empty() { vec![] } else { vec![taken_back.as_str()] }, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn earlier_attempts_leave_nothing() {
    let given = "c(main): cpu=4";
    let (world, statuses) = watched(shared().with::<ResourceClaim>(share("c", "2")));
    // Told by an earlier attempt, and maybe taken back since.
    let mut cycle = Cycle::filtered(world, pod("p").using("c").having("c", "4"));
    cycle.reserve();
    cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*statuses.lines.lock(), Vec::<String>::new(), "nothing was written yet");
    *statuses.is_broken.lock() = true;
    cycle.filter().unwrap();
    cycle.reserve();
    let failed = "updating pod default/p NodeAllocatableResourceClaimStatuses: no luck";
    assert_eq!(cycle.bind().await, Err(failed.to_owned()));
    *statuses.is_broken.lock() = false;
    // What is taken back beside is written before what the next attempt tells.
    cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
    cycle.filter().unwrap();
    cycle.reserve();
    assert_eq!(cycle.bind().await, Ok(()));
    let (told, taken_back) = (format!("[] -> [{given}]"), format!("[{given}] -> []"));
    assert_eq!(*statuses.lines.lock(), [told.clone(), taken_back, told]);
    // Devices that are nothing of the node's.
    let (world, statuses) = watched(World::new().with::<ResourceClaim>(one("c")));
    let mut cycle = Cycle::filtered(world, pod("p").using("c").having("c", "4"));
    cycle.reserve();
    assert_eq!(cycle.bind().await, Ok(()));
    assert_eq!(*statuses.lines.lock(), [format!("[{given}] -> []")]);
}

#[test]
fn pods_that_go_wake() {
    let [registration] = hints::of_room();
    assert_eq!(
        (registration.resource, registration.action),
        (Resource::Pod, Action::DELETE.and(Action::POD_SCALE_DOWN))
    );
    let hint = registration.hint.unwrap();
    for (gone, expected) in [(pod("x").on("a"), true), (pod("x"), false), (pod("p"), true)] {
        let gone = EventObject::Pod { old: Some(gone.build()), new: None };
        assert_eq!(hint(&pod("p").build(), &gone) == Hint::Queue, expected);
    }
}
