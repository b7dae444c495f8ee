//! What is no kind with rules (those are walked in `kinds`) and travels: each decodes and re-encodes upstream's golden objects.
#![cfg(test)]

use std::path::Path;

use api_machinery::json;
use api_machinery::meta;
use api_machinery::object::Kind;
use api_machinery::protobuf;
use api_machinery::reflect::Reflect;
use api_machinery::value::Value;

use crate::*;

fn golden(dir: &Path, name: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let json = std::fs::read(dir.join(format!("{name}.json"))).ok()?;
    let wire = std::fs::read(dir.join(format!("{name}.pb"))).ok()?;
    Some((json, wire))
}

/// Checks one kind against its golden pair; gives its name where there is none.
fn check<T: Kind + Reflect>(dir: &Path) -> Option<String> {
    let of = T::TYPE;
    let group = if of.group.is_empty() { "core" } else { of.group };
    let name = format!("{group}.{}.{}", of.version, of.kind);
    let Some((text, wire)) = golden(dir, &name) else { return Some(name) };
    let mut from_json = T::default();
    let decoded = json::decode(&text, &mut from_json).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(decoded.problems, Vec::<String>::new(), "{name}: strict decoding");
    assert_eq!(decoded.type_meta.kind, of.kind, "{name}");

    let again: Value = serde_json::from_str(&json::encode_typed(of.kind, &of.api_version(), &from_json)).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(again, expected, "{name}: JSON to JSON");

    let envelope = protobuf::open(&wire).unwrap();
    assert_eq!((envelope.kind.as_str(), envelope.api_version), (of.kind, of.api_version()), "{name}");
    let mut from_wire = T::default();
    protobuf::decode(envelope.raw, &mut from_wire).unwrap_or_else(|error| panic!("{name}: {error}"));
    let seal = |value: &T| protobuf::seal(&of.api_version(), of.kind, |out| out.members(value));
    assert!(seal(&from_wire) == wire, "{name}: protobuf to protobuf");
    assert!(
        seal(&from_json) == wire,
        "{name}: JSON to protobuf\n{}\n{}",
        json::encode(&from_json),
        json::encode(&from_wire)
    );
    assert_eq!(json::encode(&from_wire), json::encode(&from_json), "{name}: protobuf to JSON");
    None
}

macro_rules! kinds {
    ($($kind:ty),* $(,)?) => {
        #[test]
        fn golden_objects_survive_every_road() {
            let Some(dir) = test_facts::outside("api-roundtrip") else { return };
            let unproven: Vec<String> = [$(check::<$kind>(&dir)),*].into_iter().flatten().collect();
            assert_eq!(unproven, [""; 0], "kinds without a golden object");
        }
    };
}

kinds![
    admission_v1::AdmissionReview,
    admission_v1beta1::AdmissionReview,
    core_v1::Binding,
    core_v1::ComponentStatus,
    core_v1::RangeAllocation,
    core_v1::SerializedReference,
    core_v1::PodStatusResult,
    core_v1::PodLogOptions,
    core_v1::PodExecOptions,
    core_v1::PodAttachOptions,
    core_v1::PodPortForwardOptions,
    core_v1::PodProxyOptions,
    core_v1::NodeProxyOptions,
    core_v1::ServiceProxyOptions,
    policy_v1::Eviction,
    authentication_v1::TokenRequest,
    networking_v1::ServiceCIDR,
    autoscaling_v1::Scale,
    apidiscovery_v2::APIGroupDiscovery,
    meta::Status,
    meta::CreateOptions,
    meta::UpdateOptions,
    meta::PatchOptions,
    meta::DeleteOptions,
    meta::GetOptions,
    meta::ListOptions,
    meta::APIGroup,
    meta::APIVersions,
];
