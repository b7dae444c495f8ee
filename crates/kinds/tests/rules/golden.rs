//! Upstream's golden objects through every encoding, both ways: each kind under each version's name, those included that
//! nobody serves any more, and what travels without being a kind with rules. The directory is walked, so that a golden
//! object of which nothing is known here fails.

use std::collections::BTreeMap;
use std::path::Path;

use api_machinery::cbor;
use api_machinery::json;
use api_machinery::meta;
use api_machinery::object::Kind;
use api_machinery::protobuf;
use api_machinery::reflect::Reflect;
use api_machinery::value::Value;
use api_types::{
    admission_v1, admission_v1beta1, apidiscovery_v2, apps_v1beta1, authentication_v1, authorization_v1,
    authorization_v1beta1, autoscaling_v1, core_v1, imagepolicy_v1alpha1, policy_v1,
};
use kinds::versions::FormerForm;

/// What makes empty objects.
type Empty = Box<dyn Fn() -> Box<dyn Reflect>>;

/// Every name under which something travels, as golden files have it, with its form.
fn forms() -> BTreeMap<String, Empty> {
    let mut forms = BTreeMap::<String, Empty>::new();
    for rules in kinds::all() {
        let info = rules.info();
        forms.insert(file_name(&info.api_version(), info.kind), Box::new(|| rules.new_object()));
        for former in rules.former() {
            let empty: Empty = match former.form {
                FormerForm::Same(_) => Box::new(|| rules.new_object()),
                FormerForm::Own { empty, .. } => Box::new(move || empty()),
            };
            forms.insert(file_name(former.api_version, info.kind), empty);
        }
    }
    forms.extend(without_rules());
    forms
}

fn file_name(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    format!("{group}.{version}.{kind}")
}

/// A type under the names of some versions, its own as the empty one.
fn named<T: Kind>(versions: &[&str]) -> Vec<(String, Empty)> {
    let own = T::TYPE.api_version();
    let name = |version: &&str| file_name(if version.is_empty() { &own } else { version }, T::TYPE.kind);
    versions
        .iter()
        .map(|version| (name(version), Box::new(|| Box::<T>::default() as Box<dyn Reflect>) as Empty))
        .collect()
}

/// What is created and kept nowhere, what is asked of others, and what asks.
fn without_rules() -> Vec<(String, Empty)> {
    const OWN: &[&str] = &[""];
    const OLD_SCALES: &[&str] = &["", "apps/v1beta2", "extensions/v1beta1"];
    [
        named::<admission_v1::AdmissionReview>(OWN),
        named::<admission_v1beta1::AdmissionReview>(OWN),
        named::<core_v1::Binding>(OWN),
        named::<core_v1::ComponentStatus>(OWN),
        named::<core_v1::RangeAllocation>(OWN),
        named::<core_v1::SerializedReference>(OWN),
        named::<core_v1::PodStatusResult>(OWN),
        named::<core_v1::PodLogOptions>(OWN),
        named::<core_v1::PodExecOptions>(OWN),
        named::<core_v1::PodAttachOptions>(OWN),
        named::<core_v1::PodPortForwardOptions>(OWN),
        named::<core_v1::PodProxyOptions>(OWN),
        named::<core_v1::NodeProxyOptions>(OWN),
        named::<core_v1::ServiceProxyOptions>(OWN),
        named::<policy_v1::Eviction>(&["", "policy/v1beta1"]),
        named::<autoscaling_v1::Scale>(OWN),
        named::<apps_v1beta1::Scale>(OLD_SCALES),
        named::<apps_v1beta1::DeploymentRollback>(&["", "extensions/v1beta1"]),
        named::<authentication_v1::TokenRequest>(OWN),
        named::<authentication_v1::TokenReview>(&["authentication.k8s.io/v1beta1"]),
        named::<authentication_v1::SelfSubjectReview>(&["authentication.k8s.io/v1beta1"]),
        named::<authorization_v1::SelfSubjectAccessReview>(&["authorization.k8s.io/v1beta1"]),
        named::<authorization_v1::SelfSubjectRulesReview>(&["authorization.k8s.io/v1beta1"]),
        named::<authorization_v1beta1::SubjectAccessReview>(OWN),
        named::<authorization_v1beta1::LocalSubjectAccessReview>(OWN),
        named::<imagepolicy_v1alpha1::ImageReview>(OWN),
        named::<apidiscovery_v2::APIGroupDiscovery>(&["", "apidiscovery.k8s.io/v2beta1"]),
        named::<meta::Status>(OWN),
        named::<meta::CreateOptions>(OWN),
        named::<meta::UpdateOptions>(OWN),
        named::<meta::PatchOptions>(OWN),
        named::<meta::DeleteOptions>(OWN),
        named::<meta::GetOptions>(OWN),
        named::<meta::ListOptions>(OWN),
        named::<meta::APIGroup>(OWN),
        named::<meta::APIVersions>(OWN),
        named::<meta::WatchEvent>(OWN),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A golden object in both encodings, and what it says it is.
struct Golden {
    name: String,
    json: Vec<u8>,
    wire: Vec<u8>,
    api_version: String,
    kind: String,
}

impl Golden {
    fn read(dir: &Path, name: &str) -> Self {
        let read = |ending: &str| std::fs::read(dir.join(format!("{name}.{ending}"))).expect(name);
        let (json, wire) = (read("json"), read("pb"));
        let envelope = protobuf::open(&wire).expect(name);
        let (api_version, kind) = (envelope.api_version.clone(), envelope.kind.clone());
        // A watch event says what its object is, and nothing of itself.
        if kind.is_empty() {
            assert_eq!(name, "core.v1.WatchEvent");
        } else {
            assert_eq!(file_name(&api_version, &kind), name);
        }
        Self { name: name.to_owned(), json, wire, api_version, kind }
    }

    fn read_json(&self, target: &mut dyn Reflect) {
        let decoded = json::decode(&self.json, target).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert_eq!(decoded.problems, Vec::<String>::new(), "{}: strict decoding", self.name);
        let stated = (decoded.type_meta.kind, decoded.type_meta.api_version);
        assert_eq!((&stated.0, &stated.1), (&self.kind, &self.api_version), "{}", self.name);
    }

    fn read_wire(&self, target: &mut dyn Reflect) {
        let envelope = protobuf::open(&self.wire).expect("an envelope");
        protobuf::decode(envelope.raw, target).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    fn to_json(&self, object: &dyn Reflect) -> String {
        if self.kind.is_empty() {
            return json::encode(object);
        }
        json::encode_typed(&self.kind, &self.api_version, object)
    }

    /// Both roads in and both roads out.
    fn check(&self, empty: &dyn Fn() -> Box<dyn Reflect>) {
        let (mut from_json, mut from_wire) = (empty(), empty());
        self.read_json(&mut *from_json);
        self.read_wire(&mut *from_wire);
        let expected: Value = serde_json::from_slice(&self.json).expect("JSON");
        for (road, object) in [("protobuf", &*from_wire), ("JSON", &*from_json)] {
            let text = self.to_json(object);
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected, "{}: {road} to JSON", self.name);
            let sealed = protobuf::seal(&self.api_version, &self.kind, |out| out.members(object));
            assert!(sealed == self.wire, "{}: {road} to protobuf: {text}", self.name);
            let written = cbor::encode_typed(&self.kind, &self.api_version, object);
            self.check_cbor("its own", &written, empty());
        }
        // Who knows no types writes bytes as text.
        self.check_cbor("without types", &cbor::encode_value(&expected), empty());
    }

    fn check_cbor(&self, road: &str, written: &[u8], mut target: Box<dyn Reflect>) {
        assert!(cbor::is_self_described(written), "{}", self.name);
        let text = cbor::to_json(written).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let decoded = json::decode(text.as_bytes(), &mut *target);
        let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert_eq!(decoded.problems, Vec::<String>::new(), "{}: CBOR, strictly", self.name);
        let sealed = protobuf::seal(&self.api_version, &self.kind, |out| out.members(&*target));
        assert!(sealed == self.wire, "{}: CBOR, {road}, to protobuf: {text}", self.name);
    }
}

#[test]
fn golden_objects_survive_every_road() {
    let Some(dir) = test_facts::outside("api-roundtrip") else { return };
    let mut forms = forms();
    let mut unknown = Vec::new();
    for entry in std::fs::read_dir(&dir).expect("a directory") {
        let file = entry.expect("an entry").file_name().into_string().expect("a name");
        let Some(name) = file.strip_suffix(".json") else { continue };
        match forms.remove(name) {
            Some(empty) => Golden::read(&dir, name).check(&*empty),
            None => unknown.push(name.to_owned()),
        }
    }
    assert_eq!(unknown, [""; 0], "golden objects of which nothing is known");
    // Upstream has golden objects of the kinds of its own libraries only, and of the versions that are left in them.
    let unproven: Vec<String> = forms.into_keys().collect();
    let without = [
        "apiextensions.k8s.io.v1.CustomResourceDefinition",
        "apiextensions.k8s.io.v1beta1.CustomResourceDefinition",
        "apiregistration.k8s.io.v1.APIService",
        "apiregistration.k8s.io.v1beta1.APIService",
        "autoscaling.v2beta2.HorizontalPodAutoscaler",
        "networking.k8s.io.v1alpha1.IPAddress",
        "networking.k8s.io.v1alpha1.ServiceCIDR",
        "scheduling.k8s.io.v1alpha1.PriorityClass",
    ];
    assert_eq!(unproven, without, "kinds without a golden object");
}
