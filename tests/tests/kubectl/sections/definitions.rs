//! Custom resources: defined, printed, patched, applied, pruned, watched, deleted with their namespace, and how their names
//! stand beside those that were there first.

use super::prelude::*;

/// Kinds whose objects may hold anything.
const KINDS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.company.com}
spec:
  group: company.com
  scope: Namespaced
  names: {plural: foos, kind: Foo}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bars.company.com}
spec:
  group: company.com
  scope: Namespaced
  names: {plural: bars, kind: Bar}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: resources.mygroup.example.com}
spec:
  group: mygroup.example.com
  scope: Namespaced
  names: {plural: resources, singular: resource, kind: Kind, listKind: KindList}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: validfoos.company.com}
spec:
  group: company.com
  scope: Namespaced
  names: {plural: validfoos, kind: ValidFoo}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: array, items: {type: number}}}}}}]
";
const MY_OBJECT: &str = "---\n{apiVersion: mygroup.example.com/v1alpha1, kind: Kind, metadata: {name: myobj}}";
const FOO: &str = "---\n{apiVersion: company.com/v1, kind: Foo, metadata: {name: test, labels: {prune: these}}, someField: field1, nestedField: {someSubfield: sub1, otherSubfield: sub2}}";
const FOO_CHANGED: &str = "---\n{apiVersion: company.com/v1, kind: Foo, metadata: {name: test, labels: {prune: these}}, someField: field1, nestedField: {someSubfield: changed, otherSubfield: sub2}}";
const FOO_LESS: &str = "---\n{apiVersion: company.com/v1, kind: Foo, metadata: {name: test, labels: {prune: these}}, someField: field1, nestedField: {someSubfield: changed}}";
const FOO_MORE: &str = "---\n{apiVersion: company.com/v1, kind: Foo, metadata: {name: test, labels: {prune: these}}, someField: field1, nestedField: {someSubfield: changed, newSubfield: sub3}}";
const BAR: &str =
    "---\n{apiVersion: company.com/v1, kind: Bar, metadata: {name: test, labels: {prune: these}}, someField: field1}";
const LIST: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: company.com/v1, kind: Foo, metadata: {name: listed}, someField: field1, otherField: field2}
- {apiVersion: company.com/v1, kind: Bar, metadata: {name: listed}, someField: field1, otherField: field2}
";
const LIST_CHANGED: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: company.com/v1, kind: Foo, metadata: {name: listed}, someField: changed, newField: field3}
- {apiVersion: company.com/v1, kind: Bar, metadata: {name: listed}, someField: changed, newField: field3}
";

const NESTED: &str = "get foos/test -o jsonpath={.someField}{.nestedField}";
const FOOS: &str = "get foos -o jsonpath={.items[*].metadata.name}";
const BARS: &str = "get bars -o jsonpath={.items[*].metadata.name}";
const LISTED: &str =
    "get foos/listed bars/listed -o jsonpath='{range .items[*]}{.kind}:{.someField}:{.otherField}:{.newField};{end}'";

pub(crate) const CUSTOM_RESOURCES: Section = Section {
    name: "customresources",
    files: &[
        ("kinds.yaml", KINDS),
        ("mine.yaml", MY_OBJECT),
        ("foo.yaml", FOO),
        ("changed.yaml", FOO_CHANGED),
        ("less.yaml", FOO_LESS),
        ("more.yaml", FOO_MORE),
        ("bar.yaml", BAR),
        ("list.yaml", LIST),
        ("list-changed.yaml", LIST_CHANGED),
    ],
    rows: &[
        Row::new(
            "create -f $DIR/kinds.yaml",
            Says(&["customresourcedefinition.apiextensions.k8s.io/foos.company.com created"]),
        ),
        Row::new(
            "get crds foos.company.com bars.company.com -o jsonpath={.items[*].metadata.name}",
            Prints("foos.company.com bars.company.com"),
        ),
        Row::new("wait --for=condition=Established --timeout=30s -f $DIR/kinds.yaml", Succeeds),
        Row::new(
            "get --raw /apis/company.com/v1",
            Shows(&["\"name\":\"foos\"", "\"singularName\":\"foo\"", "\"name\":\"bars\""]),
        ),
        Row::new("get foos -o name", Comes("")),
        Row::new("get bars,resources -o name", Comes("")),
        Row::new(
            "apply --dry-run=server -f $DIR/mine.yaml",
            Prints("kind.mygroup.example.com/myobj created (server dry run)"),
        ),
        Row::new(
            "apply --server-side --dry-run=server -f $DIR/mine.yaml",
            Prints("kind.mygroup.example.com/myobj serverside-applied (server dry run)"),
        ),
        Row::new("get resource/myobj", Fails(&["resources.mygroup.example.com \"myobj\" not found"])),
        Row::new("create -f $DIR/mine.yaml", Succeeds),
        Row::new("get resource/myobj -o name", Prints("kind.mygroup.example.com/myobj")),
        Row::new("get resources/myobj -o name", Prints("kind.mygroup.example.com/myobj")),
        Row::new("get kind.mygroup.example.com/myobj -o name", Prints("kind.mygroup.example.com/myobj")),
        Row::new("delete resources myobj --cascade=background", Succeeds),
        Row::new("get resources -o name", Comes("")),
        Row::new("create -f $DIR/foo.yaml", Succeeds),
        Row::new(FOOS, Prints("test")),
        Row::new("get foo -o name", Prints("foo.company.com/test")),
        Row::new("get foos.company.com -o name", Prints("foo.company.com/test")),
        Row::new("get foos.v1.company.com -o name", Prints("foo.company.com/test")),
        Row::new("get foos", Says(&["NAME", "AGE", "test"])),
        Row::new("get foos/test -o wide", Says(&["NAME", "AGE", "test"])),
        Row::new("get foos/test -o name", Prints("foo.company.com/test")),
        Row::new("get foos -o json", Says(&["\"someField\": \"field1\"", "\"kind\": \"List\""])),
        Row::new("get foos/test -o yaml", Says(&["someField: field1", "someSubfield: sub1"])),
        Row::new("get foos -o jsonpath={.items[*].someField} --allow-missing-template-keys=false", Prints("field1")),
        Row::new("get foos/test -o jsonpath={.someField} --allow-missing-template-keys=false", Prints("field1")),
        Row::new(
            "get foos -o 'go-template={{range .items}}{{.someField}}{{end}}' --allow-missing-template-keys=false",
            Prints("field1"),
        ),
        Row::new("get foos/test -o go-template={{.someField}} --allow-missing-template-keys=false", Prints("field1")),
        Row::new("patch foos/test -p {\"patched\":\"value1\"} --type=merge", Prints("foo.company.com/test patched")),
        Row::new("patch foos/test -p {\"patched\":\"value2\"} --type=merge --record", Succeeds),
        Row::new("get foos/test -o jsonpath={.patched}", Prints("value2")),
        Row::new("patch foos/test -p {\"patched\":null} --type=merge --record", Succeeds),
        Row::new("get foos/test -o go-template={{.patched}}", Prints("<no value>")),
        Row::new(
            "patch foos/test -p {\"patched\":\"value3\"}",
            Fails(&[
                "application/strategic-merge-patch+json is not supported by company.com/v1, Kind=Foo",
                "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ]),
        ),
        Row::new("patch --local -f $DIR/foo.yaml -p {\"patched\":\"value3\"}", Fails(&["try --type merge"])),
        Row::new(
            "patch --local -f $DIR/foo.yaml -p {\"patched\":\"value3\"} --type=merge -o json",
            Says(&["\"patched\": \"value3\""]),
        ),
        Row::new(
            "patch --record -f $DIR/foo.yaml -p {\"patched\":\"value3\"} --type=merge -o json",
            Says(&["\"patched\": \"value3\""]),
        ),
        Row::new("get foos/test -o jsonpath={.patched}", Prints("value3")),
        Row::new("label foos --all listlabel=true", Succeeds),
        Row::new("label foo/test itemlabel=true", Succeeds),
        Row::new("annotate foos --all listannotation=true", Succeeds),
        Row::new("annotate foo/test itemannotation=true", Succeeds),
        Row::new("describe foos", Says(&["listlabel=true", "itemlabel=true", "Some Field:", "field1"])),
        Row::new("delete foos test --cascade=background", Succeeds),
        Row::new("get foos -o name", Comes("")),
        Row::new("create -f $DIR/bar.yaml", Succeeds),
        Row::new("get bars --watch -o name --request-timeout=1s", Grumbles(&["bar.company.com/test"])),
        Row::new("delete bars test --cascade=orphan", Succeeds),
        Row::new("get bars -o name", Comes("")),
        Row::new("apply -f $DIR/foo.yaml", Succeeds),
        Row::new("apply -f $DIR/foo.yaml", Prints("foo.company.com/test unchanged")),
        Row::new(NESTED, Prints("field1{\"otherSubfield\":\"sub2\",\"someSubfield\":\"sub1\"}")),
        Row::new("apply -f $DIR/changed.yaml", Prints("foo.company.com/test configured")),
        Row::new(NESTED, Prints("field1{\"otherSubfield\":\"sub2\",\"someSubfield\":\"changed\"}")),
        Row::new("apply -f $DIR/less.yaml", Succeeds),
        Row::new(NESTED, Prints("field1{\"someSubfield\":\"changed\"}")),
        Row::new("apply -f $DIR/more.yaml", Succeeds),
        Row::new(NESTED, Prints("field1{\"newSubfield\":\"sub3\",\"someSubfield\":\"changed\"}")),
        Row::new("delete -f $DIR/foo.yaml", Succeeds),
        Row::new("apply -f $DIR/list.yaml", Succeeds),
        Row::new(LISTED, Prints("Foo:field1:field2:;Bar:field1:field2:;")),
        Row::new(
            "apply -f $DIR/list.yaml",
            Says(&["foo.company.com/listed unchanged", "bar.company.com/listed unchanged"]),
        ),
        Row::new("apply -f $DIR/list-changed.yaml", Succeeds),
        Row::new(LISTED, Prints("Foo:changed::field3;Bar:changed::field3;")),
        Row::new("delete -f $DIR/list.yaml", Succeeds),
        Row::new(
            "apply --prune -l prune=these -f $DIR/foo.yaml --prune-allowlist=company.com/v1/Foo --prune-allowlist=company.com/v1/Bar",
            Succeeds,
        ),
        Row::new(
            "apply --prune -l prune=these -f $DIR/bar.yaml --prune-allowlist=company.com/v1/Foo --prune-allowlist=company.com/v1/Bar",
            Says(&["foo.company.com/test pruned"]),
        ),
        Row::new(FOOS, Comes("")),
        Row::new(BARS, Prints("test")),
        Row::new("delete -f $DIR/bar.yaml", Succeeds),
        // They go with their namespace.
        Row::new("create namespace $NS-gone", Succeeds),
        Row::new("create -f $DIR/bar.yaml --namespace=$NS-gone", Succeeds),
        Row::new("get bars --namespace=$NS-gone -o 'go-template={{len .items}}'", Prints("1")),
        Row::new("delete namespace $NS-gone", Succeeds),
        Row::new("get bars --namespace=$NS-gone -o 'go-template={{len .items}}'", Comes("0")),
        Row::new("get namespace $NS-gone", Fails(&["not found"])),
        Row::with(
            "create -f -",
            "---\n{apiVersion: company.com/v1, kind: ValidFoo, metadata: {name: bad}, spec: [a]}",
            Fails(&["spec[0]: Invalid value: \"string\": spec[0] in body must be of type number: \"string\""]),
        ),
        Row::new("delete -f $DIR/kinds.yaml", Succeeds),
    ],
};

const SHORT: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: examples.test.com}
spec:
  group: test.com
  scope: Namespaced
  names: {plural: examples, singular: example, shortNames: [pod], kind: Example}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {test: {type: string}}}}}}}]
";
const SINGULAR: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.com}
spec:
  group: test.com
  scope: Namespaced
  names: {plural: samples, singular: pod, kind: Sample}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {test: {type: string}}}}}}}]
";
const WIDE: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scopes.scope.test.com}
spec:
  group: scope.test.com
  scope: Cluster
  names: {plural: scopes, kind: Scope}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
const NARROW: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scopes.scope.test.com}
spec:
  group: scope.test.com
  scope: Namespaced
  names: {plural: scopes, kind: Scope}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
const SCOPED: &str = "---\n{apiVersion: scope.test.com/v1, kind: Scope, metadata: {name: scoped}}";

pub(crate) const NAMES: Section = Section {
    name: "names",
    files: &[
        ("short.yaml", SHORT),
        ("singular.yaml", SINGULAR),
        ("wide.yaml", WIDE),
        ("narrow.yaml", NARROW),
        ("scoped.yaml", SCOPED),
    ],
    rows: &[
        Row::new(
            "get unknownresourcetype",
            Fails(&["the server doesn't have a resource type \"unknownresourcetype\""]),
        ),
        Row::new(
            "get --raw=/api/v1",
            Says(&[
                "{\"name\":\"configmaps\",\"singularName\":\"configmap\",\"namespaced\":true,\"kind\":\"ConfigMap\",\"verbs\":[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\"],\"shortNames\":[\"cm\"],\"storageVersionHash\":",
            ]),
        ),
        Row::new("get --raw=/api/v1", Says(&["\"shortNames\":[\"po\"],\"categories\":[\"all\"]"])),
        // A short name and a singular that were there first stay whose they are.
        Row::new("create -f $DIR/short.yaml", Succeeds),
        Row::new("wait --for=condition=Established crd/examples.test.com --timeout=30s", Succeeds),
        Row::with(
            "create -f -",
            "---\n{apiVersion: test.com/v1, kind: Example, metadata: {name: custom}, spec: {test: test}}",
            Succeeds,
        ),
        Row::new("get examples", Says(&["custom"])),
        Row::new("get pod", Omits(&["custom"])),
        Row::new("api-resources", Says(&["examples"])),
        Row::new("get examples", Says(&["custom"])),
        Row::new("get pod", Omits(&["custom"])),
        Row::new("delete examples/custom", Succeeds),
        Row::new("delete crd examples.test.com", Succeeds),
        Row::new("create -f $DIR/singular.yaml", Succeeds),
        Row::new("wait --for=condition=Established crd/samples.test.com --timeout=30s", Succeeds),
        Row::with(
            "create -f -",
            "---\n{apiVersion: test.com/v1, kind: Sample, metadata: {name: custom}, spec: {test: test}}",
            Succeeds,
        ),
        Row::new("api-resources", Says(&["samples"])),
        Row::new("get samples", Says(&["custom"])),
        Row::new("get pod", Omits(&["custom"])),
        Row::new("delete samples/custom", Succeeds),
        Row::new("delete crd samples.test.com", Succeeds),
        // One and the same kind, of the cluster first and of namespaces then.
        Row::new("apply -f $DIR/wide.yaml", Says(&["created"])),
        Row::new("wait --for=condition=Established crd/scopes.scope.test.com --timeout=30s", Succeeds),
        Row::new("apply -f $DIR/scoped.yaml", Says(&["created"])),
        Row::new("delete -f $DIR/wide.yaml", Says(&["deleted"])),
        Row::new("api-resources", Omits(&["scope.test.com"])),
        Row::new("apply -f $DIR/narrow.yaml", Says(&["created"])),
        Row::new("wait --for=condition=Established crd/scopes.scope.test.com --timeout=30s", Succeeds),
        Row::new("apply -f $DIR/scoped.yaml", Says(&["created"])),
        Row::new("get scopes -n $NS -o name", Prints("scope.scope.test.com/scoped")),
        Row::new("delete -f $DIR/scoped.yaml", Succeeds),
        Row::new("delete -f $DIR/narrow.yaml", Succeeds),
        Row::new(
            "api-resources --verbs=list --namespaced -o name",
            Says(&["pods", "deployments.apps", "leases.coordination.k8s.io"]),
        ),
        Row::new("api-resources --verbs=list -o wide", Says(&["CATEGORIES", "deletecollection", "nodes"])),
        Row::new("explain pods", Says(&["KIND:       Pod", "VERSION:    v1", "spec\t<PodSpec>"])),
        Row::new("explain po.status.message", Says(&["FIELD: message <string>"])),
        Row::new("explain cronjob", Says(&["KIND:       CronJob", "GROUP:      batch"])),
        Row::new("explain deployments --api-version=apps/v1", Says(&["KIND:       Deployment"])),
        Row::new(
            "get --raw /openapi/v2",
            Says(&["\"swagger\":\"2.0\"", "listCoreV1ServiceForAllNamespaces", "watchCoreV1NamespacedPodList"]),
        ),
        Row::new("get --raw /openapi/v3", Says(&["api/v1", "apis/apps/v1", "?hash="])),
        Row::new("get --raw /version", Says(&["\"gitVersion\": \"v1.36"])),
        Row::new("version", Says(&["Client Version: v1.", "Server Version: v1.36"])),
        Row::new("version -o json", Says(&["\"serverVersion\": {", "\"clientVersion\": {", "\"minor\": \"36\""])),
        Row::new("version --client -o json", Omits(&["serverVersion"])),
    ],
};
