//! Roles and bindings, what one may do, and who one is.

use super::prelude::*;

pub(crate) const CLUSTER_ROLES: Section = Section {
    name: "clusterroles",
    files: &[],
    rows: &[
        Row::new(
            "get clusterroles/cluster-admin clusterrolebindings/cluster-admin -o jsonpath={.items[*].metadata.name}",
            Prints("cluster-admin cluster-admin"),
        ),
        Row::new("create clusterrole pod-admin --verb=* --resource=pods", Succeeds),
        Row::new(
            "get clusterrole/pod-admin -o jsonpath={.rules}",
            Prints("[{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"*\"]}]"),
        ),
        Row::new(
            "delete clusterrole pod-admin -n test",
            Grumbles(&[
                "deleting cluster-scoped resources",
                "clusterrole.rbac.authorization.k8s.io \"pod-admin\" deleted",
            ]),
        ),
        Row::new("create clusterrole resource-reader --verb=get,list --resource=pods,deployments.apps", Succeeds),
        Row::new(
            "get clusterrole/resource-reader -o jsonpath={.rules[*].verbs}{.rules[*].resources}{.rules[*].apiGroups}",
            Prints("[\"get\",\"list\"] [\"get\",\"list\"][\"pods\"] [\"deployments\"][\"\"] [\"apps\"]"),
        ),
        Row::new("create clusterrole name-reader --verb=get,list --resource=pods --resource-name=foo", Succeeds),
        Row::new("get clusterrole/name-reader -o jsonpath={.rules[*].resourceNames}", Prints("[\"foo\"]")),
        Row::new(
            "create clusterrole url-reader --verb=get --non-resource-url=/logs/* --non-resource-url=/healthz/*",
            Succeeds,
        ),
        Row::new(
            "get clusterrole/url-reader -o jsonpath={.rules[*].verbs}{.rules[*].nonResourceURLs}",
            Prints("[\"get\"][\"/logs/*\",\"/healthz/*\"]"),
        ),
        Row::new("create clusterrole aggregation-reader --aggregation-rule=foo1=foo2", Succeeds),
        Row::new("get clusterrole/aggregation-reader -o jsonpath={.aggregationRule}", Says(&["\"foo1\":\"foo2\""])),
        Row::new("create clusterrolebinding super-admin --clusterrole=admin --user=super-admin", Succeeds),
        Row::new("set subject clusterrolebinding super-admin --user=foo", Succeeds),
        Row::new("create clusterrolebinding multi-users --clusterrole=admin --user=user-1 --user=user-2", Succeeds),
        Row::new(
            "get clusterrolebinding super-admin multi-users -o jsonpath={.items[*].subjects[*].name}",
            Prints("super-admin foo user-1 user-2"),
        ),
        Row::new("create clusterrolebinding super-group --clusterrole=admin --group=the-group", Succeeds),
        Row::new("set subject clusterrolebinding super-group --group=foo", Succeeds),
        Row::new(
            "create clusterrolebinding multi-groups --clusterrole=admin --group=group-1 --group=group-2",
            Succeeds,
        ),
        Row::new(
            "get clusterrolebinding super-group multi-groups -o jsonpath={.items[*].subjects[*].name}",
            Prints("the-group foo group-1 group-2"),
        ),
        Row::new("create clusterrolebinding super-sa --clusterrole=admin --serviceaccount=otherns:sa-name", Succeeds),
        Row::new("set subject clusterrolebinding super-sa --serviceaccount=otherfoo:foo", Succeeds),
        Row::new(
            "get clusterrolebinding/super-sa -o jsonpath='{range .subjects[*]}{.namespace}:{.name} {end}'",
            Prints("otherns:sa-name otherfoo:foo"),
        ),
        Row::new("set subject clusterrolebinding super-admin super-group super-sa --user=test-all-user", Succeeds),
        Row::new(
            "get clusterrolebinding/super-admin -o jsonpath={.subjects[*].name}",
            Prints("super-admin foo test-all-user"),
        ),
        Row::new(
            "get clusterrolebinding/super-sa -o jsonpath={.subjects[*].name}",
            Prints("sa-name foo test-all-user"),
        ),
        Row::new(
            "patch clusterrolebinding super-admin --type=merge -p {\"roleRef\":{\"name\":\"edit\"}}",
            Fails(&["cannot change roleRef"]),
        ),
        Row::new("delete clusterrole resource-reader name-reader url-reader aggregation-reader", Succeeds),
        Row::new("delete clusterrolebinding super-admin multi-users super-group multi-groups super-sa", Succeeds),
    ],
};

pub(crate) const ROLES: Section = Section {
    name: "roles",
    files: &[],
    rows: &[
        Row::new("create rolebinding admin --clusterrole=admin --user=default-admin", Succeeds),
        Row::new("set subject rolebinding admin --user=foo", Succeeds),
        Row::new(
            "get rolebinding/admin -o jsonpath='{.roleRef.kind} {.subjects[*].name}'",
            Prints("ClusterRole default-admin foo"),
        ),
        Row::new("create rolebinding localrole --role=localrole --group=the-group", Succeeds),
        Row::new("set subject rolebinding localrole --group=foo", Succeeds),
        Row::new(
            "get rolebinding/localrole -o jsonpath='{.roleRef.kind} {.subjects[*].name}'",
            Prints("Role the-group foo"),
        ),
        Row::new("create rolebinding sarole --role=localrole --serviceaccount=otherns:sa-name", Succeeds),
        Row::new("set subject rolebinding sarole --serviceaccount=otherfoo:foo", Succeeds),
        Row::new(
            "get rolebinding/sarole -o jsonpath='{range .subjects[*]}{.namespace}:{.name} {end}'",
            Prints("otherns:sa-name otherfoo:foo"),
        ),
        Row::new("set subject rolebinding --all --user=test-all-user", Succeeds),
        Row::new(
            "get rolebinding -o jsonpath='{range .items[*]}{.subjects[-1].name} {end}'",
            Prints("test-all-user test-all-user test-all-user"),
        ),
        Row::new(
            "create role pod-admin --verb=* --resource=pods",
            Prints("role.rbac.authorization.k8s.io/pod-admin created"),
        ),
        Row::new(
            "get role/pod-admin -o jsonpath={.rules}",
            Prints("[{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"*\"]}]"),
        ),
        Row::new(
            "create role bad --verb=* --resource=invalid-resource",
            Fails(&["the server doesn't have a resource type \"invalid-resource\""]),
        ),
        Row::new("create role group-reader --verb=get,list --resource=deployments.apps", Succeeds),
        Row::new(
            "get role/group-reader -o jsonpath={.rules}",
            Prints("[{\"apiGroups\":[\"apps\"],\"resources\":[\"deployments\"],\"verbs\":[\"get\",\"list\"]}]"),
        ),
        Row::new(
            "create role bad --verb=get,list --resource=deployments.invalid-group",
            Fails(&["the server doesn't have a resource type \"deployments\" in group \"invalid-group\""]),
        ),
        Row::new("create role subresource-reader --verb=get,list --resource=pods/status", Succeeds),
        Row::new("get role/subresource-reader -o jsonpath={.rules[*].resources}", Prints("[\"pods/status\"]")),
        Row::new("create role group-subresource-reader --verb=get,list --resource=replicasets.apps/scale", Succeeds),
        Row::new(
            "get role/group-subresource-reader -o jsonpath={.rules[*].resources}{.rules[*].apiGroups}",
            Prints("[\"replicasets/scale\"][\"apps\"]"),
        ),
        Row::new(
            "create role bad --verb=get,list --resource=rs.invalid-group/scale",
            Fails(&["the server doesn't have a resource type \"rs\" in group \"invalid-group\""]),
        ),
        Row::new("create role resourcename-reader --verb=get,list --resource=pods --resource-name=foo", Succeeds),
        Row::new("get role/resourcename-reader -o jsonpath={.rules[*].resourceNames}", Prints("[\"foo\"]")),
        Row::new("create role resource-reader --verb=get,list --resource=pods/status,deployments.apps", Succeeds),
        Row::new(
            "get role/resource-reader -o jsonpath={.rules[*].resources}{.rules[*].apiGroups}",
            Prints("[\"pods/status\"] [\"deployments\"][\"\"] [\"apps\"]"),
        ),
        Row::new("delete role,rolebinding --all", Succeeds),
    ],
};

const RBAC: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: ignored, labels: {judged: rbac}}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: judged-cr, labels: {judged: rbac}}, rules: [{apiGroups: [''], resources: [pods], verbs: [create, get]}]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: judged-crb, labels: {judged: rbac}}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:masters'}]
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: judged-cr}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: judged-rb, namespace: $NS, labels: {judged: rbac}}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:masters'}]
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: judged-cr}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: judged-r, namespace: $NS, labels: {judged: rbac}}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}
";
const MADE: &str =
    "get rolebindings,roles,clusterrolebindings,clusterroles -l judged=rbac -o jsonpath={.items[*].metadata.name}";

pub(crate) const WHAT_ONE_MAY: Section = Section {
    name: "rights",
    files: &[
        ("rbac.yaml", RBAC),
        (
            "old.yaml",
            "---\n{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: old}, rules: []}",
        ),
        (
            "review.json",
            r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"root","groups":["system:masters"],
            "resourceAttributes":{"namespace":"n","verb":"get","resource":"pods"}}}"#,
        ),
        ("token.json", r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"nobody's"}}"#),
    ],
    rows: &[
        Row::new("create -f $DIR/review.json --validate=false", Says(&["subjectaccessreview.authorization.k8s.io/"])),
        Row::new("create -f $DIR/review.json -o jsonpath={.status.allowed}", Prints("true")),
        Row::new("create -f $DIR/token.json --validate=false", Says(&["tokenreview.authentication.k8s.io/"])),
        Row::new("auth can-i * *", Prints("yes")),
        Row::new("auth can-i get pods --subresource=log", Prints("yes")),
        Row::new("auth can-i get invalid_resource", Says(&["the server doesn't have a resource type"])),
        Row::new("auth can-i get /logs/", Prints("yes")),
        Row::new(
            "auth can-i get /logs/ --subresource=log",
            Fails(&["subresource can not be used with NonResourceURL"]),
        ),
        Row::new("auth can-i list jobs.batch/bar -n foo --quiet", Prints("")),
        Row::new("auth can-i get pods --subresource=log --quiet", Prints("")),
        Row::new("auth can-i get *", Omits(&["Warning"])),
        Row::new("auth can-i get foo", Says(&["Warning: the server doesn't have a resource type 'foo'"])),
        Row::new("auth can-i get foo", Omits(&["is not namespace scoped"])),
        Row::new("auth can-i get pods", Omits(&["Warning"])),
        Row::new("auth can-i get nodes", Says(&["Warning: resource 'nodes' is not namespace scoped"])),
        Row::new("auth can-i get nodes --all-namespaces", Omits(&["Warning"])),
        Row::new("auth can-i --list --as=nobody", Says(&["selfsubjectreviews.authentication.k8s.io", "[/healthz]"])),
        Row::new("auth can-i get pods --as=nobody", Ends(1, &["no"])),
        Row::new("auth whoami -o json", Says(&["\"kind\": \"SelfSubjectReview\"", "\"username\": \"root\""])),
        Row::new("auth whoami", Says(&["Username", "root", "Groups", "[system:masters system:authenticated]"])),
        Row::new("auth whoami --as=jane --as-group=blue", Says(&["jane", "[blue system:authenticated]"])),
        Row::new("auth reconcile --dry-run=client -f $DIR/rbac.yaml", Succeeds),
        Row::new(MADE, Prints("")),
        Row::new("auth reconcile -f $DIR/rbac.yaml", Says(&["judged-cr reconciled", "judged-rb reconciled"])),
        Row::new(MADE, Prints("judged-rb judged-r judged-crb judged-cr")),
        Row::new("auth reconcile -f $DIR/old.yaml", Fails(&["only rbac.authorization.k8s.io/v1 is supported"])),
        Row::new(
            "auth reconcile --dry-run=client -f $DIR/rbac.yaml --template={{.metadata.name}}:",
            Prints("judged-cr:judged-crb:judged-rb:judged-r:"),
        ),
        Row::new("delete rolebindings,role,clusterroles,clusterrolebindings -l judged=rbac", Succeeds),
    ],
};
