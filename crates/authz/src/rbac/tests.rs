use super::*;
use crate::Decision;

#[derive(Default)]
struct Fixed {
    cluster_roles: Vec<ClusterRole>,
    roles: Vec<Role>,
    cluster_bindings: Vec<ClusterRoleBinding>,
    bindings: Vec<RoleBinding>,
}

impl RoleSource for Fixed {
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Role>> {
        let found = |role: &&Role| role.metadata.name == name && role.metadata.namespace == namespace;
        self.roles.iter().find(found).cloned().map(Arc::new)
    }
    fn cluster_role(&self, name: &str) -> Option<Arc<ClusterRole>> {
        self.cluster_roles.iter().find(|role| role.metadata.name == name).cloned().map(Arc::new)
    }
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<RoleBinding>> {
        self.bindings.iter().filter(|binding| binding.metadata.namespace == namespace).cloned().map(Arc::new).collect()
    }
    fn cluster_role_bindings(&self) -> Vec<Arc<ClusterRoleBinding>> {
        self.cluster_bindings.iter().cloned().map(Arc::new).collect()
    }
}

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> PolicyRule {
    PolicyRule { verbs: list(verbs), api_groups: list(groups), resources: list(resources), ..PolicyRule::default() }
}

fn get(resource: &str, subresource: &str, namespace: &str) -> Attributes {
    Attributes {
        user: UserInfo { username: "eve".into(), groups: list(&["readers"]), ..UserInfo::default() }.into(),
        verb: "get".into(),
        resource_request: true,
        namespace: namespace.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        name: "x".into(),
        ..Attributes::default()
    }
}

#[test]
fn rules_match_as_documented() {
    let named = PolicyRule { resource_names: list(&["y"]), ..rule(&["get"], &[""], &["pods"]) };
    let any_verb = PolicyRule { verbs: list(&["*"]), ..named.clone() };
    let nameless = |verb: &str| Attributes { verb: verb.into(), name: String::new(), ..get("pods", "", "a") };
    let create = Attributes { verb: "create".into(), ..get("pods", "", "a") };
    for (rule, attributes, expected) in [
        (rule(&["get"], &[""], &["pods"]), get("pods", "", "a"), true),
        (rule(&["get"], &[""], &["pods"]), get("pods", "log", "a"), false),
        (rule(&["get"], &[""], &["pods/log"]), get("pods", "log", "a"), true),
        (rule(&["get"], &[""], &["*/log"]), get("pods", "log", "a"), true),
        (rule(&["get"], &[""], &["pods/*"]), get("pods", "log", "a"), false),
        (rule(&["*"], &["*"], &["*"]), get("pods", "log", "a"), true),
        (rule(&["get"], &["apps"], &["pods"]), get("pods", "", "a"), false),
        (rule(&["get"], &[""], &["pods"]), create, false),
        (named.clone(), get("pods", "", "a"), false),
        (named.clone(), Attributes { name: "y".into(), ..get("pods", "", "a") }, true),
        (any_verb.clone(), nameless("list"), false),
        (any_verb.clone(), nameless("watch"), false),
        (any_verb.clone(), nameless("deletecollection"), false),
        (any_verb.clone(), nameless("create"), false),
        (any_verb, Attributes { name: "y".into(), ..nameless("watch") }, true),
    ] {
        assert_eq!(rule_allows(&rule, &attributes), expected, "{rule:?} {attributes:?}");
    }
}

#[test]
fn paths_match_by_prefix() {
    let rule = PolicyRule { verbs: list(&["get"]), non_resource_urls: list(&["/healthz/*"]), ..PolicyRule::default() };
    let path = |path: &str| Attributes { verb: "get".into(), path: path.into(), ..Attributes::default() };
    assert!(rule_allows(&rule, &path("/healthz/etcd")));
    assert!(!rule_allows(&rule, &path("/healthz")));
}

fn bound() -> Fixed {
    let mut source = Fixed::default();
    let mut role = ClusterRole { rules: vec![rule(&["get"], &[""], &["pods"])], ..ClusterRole::default() };
    role.metadata.name = "reader".into();
    source.cluster_roles.push(role);
    let mut binding = RoleBinding::default();
    binding.metadata.name = "read".into();
    binding.metadata.namespace = "a".into();
    binding.role_ref = RoleRef { kind: "ClusterRole".into(), name: "reader".into(), ..RoleRef::default() };
    binding.subjects.push(Subject { kind: "Group".into(), name: "readers".into(), ..Subject::default() });
    let mut broken = binding.clone();
    broken.metadata.namespace = "b".into();
    broken.role_ref.name = "missing".into();
    source.bindings = vec![binding, broken];
    source
}

#[test]
fn a_binding_grants_in_its_namespace_only() {
    let rbac = Rbac::new(bound());
    let allowed = rbac.decide(&get("pods", "", "a"));
    assert_eq!(allowed.decision, Decision::Allow);
    assert_eq!(
        allowed.reason,
        "RBAC: allowed by RoleBinding \"read/a\" of ClusterRole \"reader\" to Group \"readers\""
    );
    assert_eq!(rbac.decide(&get("pods", "", "c")), Outcome::no_opinion(""));
    let mut doubled = bound();
    doubled.bindings.push(doubled.bindings[1].clone());
    let broken = Rbac::new(doubled).decide(&get("pods", "", "b"));
    assert_eq!(broken.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"missing\" not found");
}

#[test]
fn nobody_grants_what_they_do_not_hold() {
    let rbac = Rbac::new(bound());
    let write = Attributes { verb: "create".into(), ..get("roles", "", "a") };
    let held = [rule(&["get"], &[""], &["pods"])];
    assert_eq!(holds(&rbac, &write, Granting::Rules(&held)), Ok(()));
    let gathered = holds(&rbac, &write, Granting::Aggregated(&held)).unwrap_err().to_string();
    assert_eq!(gathered, "must have cluster-admin privileges to use the aggregationRule");
    let more = [rule(&["get", "list"], &[""], &["pods"])];
    let gathered = holds(&rbac, &write, Granting::Aggregated(&more)).unwrap_err().to_string();
    assert!(gathered.contains("not currently held"), "what it grants itself is looked at first: {gathered}");
    let refused = holds(&rbac, &write, Granting::Rules(&more)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "user \"eve\" (groups=[\"readers\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}"
    );
    let reference = RoleRef { kind: "ClusterRole".into(), name: "missing".into(), ..RoleRef::default() };
    let missing = holds(&rbac, &write, Granting::Role(&reference)).unwrap_err();
    assert_eq!(missing, EscalationError::RoleNotFound("missing".into()));
    let of = |kind: &str| RoleRef { kind: kind.into(), name: "x".into(), ..RoleRef::default() };
    let unknown = holds(&rbac, &write, Granting::Role(&of("Foo"))).unwrap_err();
    assert_eq!(unknown.to_string(), "unsupported role reference kind: \"Foo\"");
    let of_cluster = Attributes { namespace: String::new(), ..write };
    assert_eq!(holds(&rbac, &of_cluster, Granting::Role(&of("Role"))), Err(EscalationError::NoNamespace));
}

#[test]
fn refusals_list_what_is_missing_as_upstream_does() {
    let mut write = Attributes { verb: "create".into(), ..get("roles", "", "b") };
    Arc::make_mut(&mut write.user).groups.push("system:authenticated".into());
    let mut named = rule(&["get"], &["apps"], &["deployments"]);
    named.resource_names = list(&["x"]);
    let urls =
        PolicyRule { verbs: list(&["get", "post"]), non_resource_urls: list(&["/a", "/b"]), ..PolicyRule::default() };
    let wanted = [rule(&["get", "list"], &[""], &["secrets", "pods"]), rule(&["get"], &[""], &["pods"]), named, urls];
    // A broken binding in the namespace counts once, however many name the missing role.
    let mut source = bound();
    source.bindings.push(source.bindings[1].clone());
    let refused = holds(&Rbac::new(source), &write, Granting::Rules(&wanted)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "user \"eve\" (groups=[\"readers\" \"system:authenticated\"]) is attempting to grant RBAC permissions not \
         currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"x\"], Verbs:[\"get\"]}\n\
         {NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}\n\
         {NonResourceURLs:[\"/a\"], Verbs:[\"post\"]}\n\
         {NonResourceURLs:[\"/b\"], Verbs:[\"get\"]}\n\
         {NonResourceURLs:[\"/b\"], Verbs:[\"post\"]}; \
         resolution errors: [roles.rbac.authorization.k8s.io \"missing\" not found]"
    );
}

#[test]
fn service_accounts_match_by_namespace() {
    let subject = Subject { kind: "ServiceAccount".into(), name: "bot".into(), ..Subject::default() };
    let user = UserInfo { username: "system:serviceaccount:a:bot".into(), ..UserInfo::default() };
    assert!(matches(&subject, &user, "a"));
    assert!(!matches(&subject, &user, ""));
    assert!(!matches(&subject, &user, "b"));
    let homeless = UserInfo { username: "system:serviceaccount::bot".into(), ..UserInfo::default() };
    assert!(!matches(&subject, &homeless, ""), "an account of no namespace is nobody");
}

#[test]
fn who_holds_some_names_does_not_hold_all() {
    let all = rule(&["get"], &[""], &["pods"]);
    let named = |names: &[&str]| PolicyRule { resource_names: list(names), ..all.clone() };
    for (name, owned, wanted, missing) in [
        ("all of all", all.clone(), all.clone(), 0),
        ("one of all", all.clone(), named(&["x"]), 0),
        ("all of one", named(&["x"]), all.clone(), 1),
        ("one of another", named(&["x"]), named(&["y"]), 1),
        ("two of one", named(&["x"]), named(&["x", "y"]), 1),
        ("one of two", named(&["x", "y"]), named(&["y"]), 0),
    ] {
        assert_eq!(covers(&[owned], &[wanted]).len(), missing, "{name}");
    }
}
