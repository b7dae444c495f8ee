//! Claims that pods of a group share, and what pods of a group do about claims at the same time.

use api_types::resource_v1::ResourceClaimConsumerReference;
use api_types::scheduling_v1alpha2::PodGroup;
use component_base::shared_gates::GENERIC_WORKLOAD;
use serde_json::{Value, json};

use super::super::tests::profile_in;
use super::tests::{Cycle, World, allocated, one};
use super::*;
use crate::framework::{EventObject, Hint};
use crate::pod_class::ClassTable;
use crate::test_objects::{PodBuilder, object, pod};

/// A world of groups, of which `g` shares a claim made from a template, and the claim `c`.
fn world() -> World {
    let mut world = World::new();
    world.cx.gates = world.cx.gates.with(GENERIC_WORKLOAD, true);
    let shared = json!([{"name": "t", "resourceClaimTemplateName": "x"}, {"name": "c0", "resourceClaimName": "c"}]);
    world.with::<PodGroup>(json!({
        "metadata": {"name": "g", "namespace": "default", "uid": "uid-g"}, "spec": {"resourceClaims": shared}}))
}

fn made_for_group() -> Value {
    let mut claim = one("made");
    claim["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "g", "uid": "uid-g", "controller": true}]);
    claim
}

/// A pod of `g` that has its claim.
fn member(name: &str) -> PodBuilder {
    pod(name).grouped("g").device_claim("c")
}

fn reserved_for_group() -> Value {
    let mut claim = allocated("c", &[]);
    claim["status"]["reservedFor"] =
        json!([{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}]);
    claim
}

fn consumers(world: &World) -> Vec<String> {
    let text = |own: &ResourceClaimConsumerReference| format!("{} {}", own.resource, own.uid);
    world.claim("c").status.reserved_for.iter().map(text).collect()
}

/// The same world, with the next pod.
fn next(cycle: Cycle, incoming: PodBuilder) -> Cycle {
    Cycle::filtered(cycle.world, incoming)
}

#[test]
fn pods_may_have_the_claims_of_their_group() {
    let of = |group: &str, claim: &str| pod("p").grouped(group).templated(Some(Some(claim)));
    let none = |why: &str| format!("ResourceClaim default/{why}");
    for (incoming, shared, expected) in [
        (of("g", "made"), true, String::new()),
        (of("g", "made"), false, none("made was not created for Pod default/p (Pod is not owner)")),
        (of("h", "made"), true, "podgroup.scheduling.k8s.io \"h\" not found".to_owned()),
        (of("g", "c"), true, none("c was not created for Pod default/p (neither Pod nor PodGroup g is the owner)")),
        (pod("p").templated(Some(Some("c"))), true, none("c was not created for Pod default/p (Pod is not owner)")),
        (pod("p").grouped("h"), true, String::new()),
    ] {
        let mut world = world().with::<ResourceClaim>(made_for_group()).with::<ResourceClaim>(one("c"));
        world.cx.gates = world.cx.gates.with(GROUP_CLAIMS, shared);
        let profile = profile_in(&world.cx, &[NAME]);
        let gated = profile.pre_enqueue[0].plugin.pre_enqueue(&incoming.info(&ClassTable::default()));
        assert_eq!(gated.err().map(|status| status.message()).unwrap_or_default(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_set_aside_for_the_group_once() {
    let mut first = Cycle::filtered(world().with::<ResourceClaim>(one("c")), member("p"));
    first.reserve();
    assert_eq!(first.bind().await, Ok(()));
    assert_eq!(
        (first.world.lines(), consumers(&first.world)),
        (vec!["update c".into(), "status c".into()], vec!["podgroups uid-g".to_owned()])
    );
    let mut second = next(first, member("q"));
    second.reserve();
    assert_eq!(second.profile.pre_bind[0].plugin.has_work(&second.state, &second.info, "a"), Ok(false));
    // A pod that does not share the entry is on its own.
    second.world.put::<ResourceClaim>(one("other"));
    let mut third = next(second, pod("r").grouped("g").device_claim("other").device_claim("c"));
    third.reserve();
    assert_eq!(third.bind().await, Ok(()));
    assert_eq!(consumers(&third.world), ["podgroups uid-g", "pods uid-r"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_has_its_claim_while_others_of_it_may_use_it() {
    for (other, expected) in [(None, 0), (Some(member("q")), 0), (Some(member("q").on("a")), 1)] {
        let world = world().with::<ResourceClaim>(reserved_for_group());
        world.cx.groups.put(&member("p").build());
        other.into_iter().for_each(|other| world.cx.groups.put(&other.build()));
        let mut cycle = Cycle::filtered(world, member("p"));
        cycle.reserve();
        cycle.world.cx.groups.place(&cycle.info.pod, true);
        cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
        tokio::task::yield_now().await;
        assert_eq!(cycle.world.claim("c").status.reserved_for.len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_group_get_the_same_devices_at_once() {
    let mut cycle = Cycle::filtered(world().with::<ResourceClaim>(one("c")), member("p"));
    cycle.reserve();
    let (p, of_p) = (Arc::clone(&cycle.info), cycle.state.clone());
    cycle.info = pod("alone").device_claim("c").info(&ClassTable::default());
    let again = "resource claim default/c is in the process of being allocated";
    assert_eq!(cycle.filter().map_err(|status| status.message()), Err(again.to_owned()));
    cycle.info = member("q").info(&ClassTable::default());
    cycle.filter().unwrap();
    cycle.reserve();
    let (q, of_q) = (Arc::clone(&cycle.info), cycle.state.clone());
    cycle.info = member("r").info(&ClassTable::default());
    cycle.filter().unwrap();
    cycle.reserve();
    // The first gives up: the devices are still on their way for the others.
    cycle.profile.run_unreserve(&of_p, &p, "a");
    let plugin = &cycle.profile.pre_bind[0].plugin;
    let stop = CancellationToken::new();
    assert_eq!(plugin.pre_bind(&of_q, &q, "a", &stop).await, Ok(()));
    assert_eq!(cycle.world.lines(), ["update c", "status c"]);
    // The last is told of a conflict, and finds that all is done.
    cycle.world.outrun();
    assert_eq!(cycle.bind().await, Ok(()));
    assert_eq!(cycle.world.lines(), ["update c"]);
    assert_eq!(consumers(&cycle.world), ["podgroups uid-g"]);
    assert_eq!(cycle.world.claim("c").status.allocation.as_ref().unwrap().devices.results[0].device, "one");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_fits_nowhere_lets_its_claim_go() {
    let away = || {
        let mut claim = reserved_for_group();
        let terms = &mut claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"];
        terms[0]["matchFields"][0]["values"] = json!(["z"]);
        world().with::<ResourceClaim>(claim)
    };
    let released = "ResourceClaim unreserved for PodGroup";
    for (other, expected, left) in
        [(None, released, 0), (Some(member("q")), released, 0), (Some(member("q").on("z")), "still not schedulable", 1)]
    {
        let world = away();
        other.into_iter().for_each(|other| world.cx.groups.put(&other.build()));
        let mut cycle = Cycle::new(world, member("p"));
        let _ = cycle.filter();
        assert_eq!(cycle.post_filter().await, expected);
        let status = &cycle.world.claim("c").status;
        assert_eq!((status.reserved_for.len(), status.allocation.is_some()), (left, true));
    }
}

#[test]
fn a_group_that_comes_wakes_pods_with_claims() {
    let world = world();
    let hint = Groups::of(&world.cx).registration().and_then(|own| own.hint).unwrap();
    let asked = |waiting: PodBuilder, name: &str| {
        let group = object::<PodGroup>(json!({"metadata": {"name": name, "namespace": "default"}}));
        let change = EventObject::Other { old: None, new: Some(Arc::new(group)) };
        hint(&waiting.0, &change) == Hint::Queue
    };
    assert!(asked(member("p"), "g"));
    assert!(!asked(member("p"), "h") && !asked(pod("p").grouped("g"), "g"));
    let gates = world.cx.gates.clone().with(GROUP_CLAIMS, false);
    assert!(Groups::of(&BuildCx { gates, ..world.cx }).registration().is_none(), "nobody watches groups");
}
