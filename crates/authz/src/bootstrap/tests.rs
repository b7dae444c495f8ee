use std::collections::BTreeMap;

use api_machinery::value::{Value, to_value};
use component_base::{Feature, Gates};

use super::*;

fn facts() -> Value {
    test_facts::facts("rbac-bootstrap.json")
}

/// The golden objects of some lists, by namespace and name.
fn golden(facts: &Value, lists: &[&str]) -> BTreeMap<(String, String), Value> {
    let text = |object: &Value, key: &str| object[key].as_str().unwrap_or_default().to_owned();
    lists
        .iter()
        .flat_map(|list| facts[*list].as_array().unwrap())
        .map(|object| ((text(object, "namespace"), text(object, "name")), object.clone()))
        .collect()
}

#[test]
fn roles_are_upstreams() {
    let facts = facts();
    let wanted = golden(&facts, &["clusterRoles", "controllerClusterRoles", "roles"]);
    let mut found = BTreeMap::new();
    for role in cluster_roles_with(&Gates::default()) {
        found.insert((String::new(), role.metadata.name.clone()), to_value(&role));
    }
    for role in roles() {
        found.insert((role.metadata.namespace.clone(), role.metadata.name.clone()), to_value(&role));
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (key, role) in &found {
        let rules = role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
        assert_eq!(Value::Array(rules), wanted[key]["rules"], "{key:?}");
        assert_eq!(role.get("aggregationRule"), wanted[key].get("aggregationRule"), "{key:?}");
        for (label, value) in wanted[key].get("labels").and_then(Value::as_object).into_iter().flatten() {
            assert_eq!(&role["metadata"]["labels"][label], value, "{key:?}");
        }
    }
}

#[test]
fn bindings_are_upstreams() {
    let facts = facts();
    let wanted = golden(&facts, &["clusterRoleBindings", "controllerClusterRoleBindings", "roleBindings"]);
    let mut found = BTreeMap::new();
    for binding in cluster_role_bindings() {
        found.insert((String::new(), binding.metadata.name.clone()), (binding.role_ref, binding.subjects));
    }
    for binding in role_bindings() {
        let key = (binding.metadata.namespace.clone(), binding.metadata.name.clone());
        found.insert(key, (binding.role_ref, binding.subjects));
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (key, (role, subjects)) in &found {
        assert_eq!(wanted[key]["roleRef"]["name"], role.name.as_str(), "{key:?}");
        assert_eq!(wanted[key]["roleRef"]["kind"], role.kind.as_str(), "{key:?}");
        let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
        let golden: Vec<&str> = wanted[key]["subjects"]
            .as_array()
            .map(|all| all.iter().filter_map(|subject| subject["name"].as_str()).collect())
            .unwrap_or_default();
        assert_eq!(names, golden, "{key:?}");
    }
}

#[test]
fn reconciling_adds_and_keeps() {
    let wanted = cluster_roles().into_iter().find(|role| role.metadata.name == "system:kube-scheduler").unwrap();
    assert_eq!(reconcile_cluster_role(&wanted, &wanted), None);
    let mut poorer = wanted.clone();
    let dropped = poorer.rules.remove(0);
    let repaired = reconcile_cluster_role(&poorer, &wanted).unwrap();
    assert!(crate::rbac::covers(&repaired.rules, &[dropped]).is_empty());
    poorer.metadata.annotations.insert("rbac.authorization.kubernetes.io/autoupdate".into(), "false".into());
    assert_eq!(reconcile_cluster_role(&poorer, &wanted), None);
}

#[test]
fn a_binding_to_another_role_is_replaced() {
    let wanted = cluster_role_bindings().remove(0);
    let mut stored = wanted.clone();
    let plan = |stored: &ClusterRoleBinding| {
        reconcile_binding(
            (&stored.metadata, &stored.role_ref, &stored.subjects),
            (&wanted.metadata, &wanted.role_ref, &wanted.subjects),
        )
    };
    assert_eq!(plan(&stored), BindingPlan::Keep);
    stored.subjects.clear();
    assert!(matches!(plan(&stored), BindingPlan::Update(..)));
    stored.role_ref.name = "other".into();
    assert_eq!(plan(&stored), BindingPlan::Replace);
}

#[test]
fn roles_behind_gates_are_upstreams_and_only_where_those_are_on() {
    let off = Gates::default();
    assert_eq!((gated_cluster_roles(&off).len(), gated_cluster_role_bindings(&off).len()), (0, 0));
    let on = [
        "ClusterTrustBundle",
        "DRADeviceTaintRules",
        "DRAResourcePoolStatus",
        "DRAWorkloadResourceClaims",
        "GenericWorkload",
        "PodCertificateRequest",
        "StorageVersionAPI",
        "StorageVersionMigrator",
        "WorkloadWithJob",
    ];
    let on = on.map(Feature::named);
    let on = on.into_iter().fold(Gates::default(), |gates, feature| gates.with(feature, true));
    let all = facts();
    let upstream = all["withAllGatesEnabled"].as_array().unwrap();
    let named = |list: &str, name: &str| {
        let found = upstream.iter().find(|own| own["list"] == list && own["name"] == name);
        found.cloned().unwrap_or_else(|| panic!("{name} is not upstream's"))
    };
    let extended = upstream.iter().filter(|own| own["status"] == "extra rules with gates");
    for wanted in extended {
        let name = wanted["name"].as_str().unwrap();
        let role = |gates| cluster_roles_with(gates).into_iter().find(|role| role.metadata.name == name).unwrap();
        let (without, with) = (role(&off), role(&on));
        let sorted = |rules: &[serde_json::Value]| {
            let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
            texts.sort();
            texts
        };
        let more = to_value(&with)["rules"].as_array().unwrap()[without.rules.len()..].to_vec();
        assert_eq!(sorted(&more), sorted(wanted["rules"].as_array().unwrap()), "{name}");
    }
    let (roles, bindings) = (gated_cluster_roles(&on), gated_cluster_role_bindings(&on));
    assert_eq!((roles.len(), bindings.len()), (7, 7));
    let list_of = |name: &str, controllers: &'static str, others: &'static str| {
        if name.starts_with("system:controller:") { controllers } else { others }
    };
    for role in roles {
        let name = &role.metadata.name;
        let wanted = named(list_of(name, "controllerClusterRoles", "clusterRoles"), name);
        assert_eq!(to_value(&role)["rules"], wanted["rules"], "{name}");
    }
    for binding in bindings {
        let name = &binding.metadata.name;
        let wanted = named(list_of(name, "controllerClusterRoleBindings", "clusterRoleBindings"), name);
        let mut subjects = to_value(&binding)["subjects"].clone();
        // The facts leave out the group that follows from the kind.
        subjects[0].as_object_mut().unwrap().remove("apiGroup");
        assert_eq!(subjects, wanted["subjects"], "{name}");
        assert_eq!(wanted["roleRef"]["name"], binding.role_ref.name.as_str());
    }
}
