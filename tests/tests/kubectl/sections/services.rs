//! Services and `expose`.

use super::prelude::*;

const STORE: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"store","labels":{"app":"store"}},
    "spec":{"ports":[{"port":6379,"targetPort":6379}],"selector":{"app":"store","role":"writer","tier":"back"}}}"#;
const SECOND: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"store-reader"},
    "spec":{"ports":[{"port":6379}],"selector":{"app":"store","role":"reader"}}}"#;
const LARGE_NAME: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"name":"large"},
    "name":"a-name-that-is-longer-than-the-sixty-three-characters-a-service-may-have"},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}"#;
const TWO_PORTS: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"two-ports"},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1",
        "ports":[{"containerPort":2380},{"containerPort":2379}]}]}}"#;
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: exposed}
spec:
  replicas: 2
  selector: {matchLabels: {app: exposed}}
  template:
    metadata: {labels: {app: exposed}}
    spec: {containers: [{name: main, image: registry.example/web:1, ports: [{containerPort: 80}]}]}
";
const NO_SELECTOR: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: exposed}
spec:
  template:
    metadata: {labels: {app: exposed}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";

const SELECTOR: &str = "get services store -o go-template={{range.spec.selector}}{{.}}:{{end}}";
const NAMES: &str = "get services -o go-template={{range.items}}{{.metadata.name}}:{{end}}";

pub(crate) const SERVICES: Section = Section {
    name: "services",
    files: &[("store.json", STORE), ("second.json", SECOND)],
    rows: &[
        Row::new(
            "get services -n default -o go-template={{range.items}}{{.metadata.name}}:{{end}}",
            Prints("kubernetes:"),
        ),
        Row::new("create -f $DIR/store.json", Prints("service/store created")),
        Row::new(
            "describe services store",
            Says(&["Name:", "Labels:", "Selector:", "IP:", "Port:", "Endpoints:", "Session Affinity:", "Events:"]),
        ),
        Row::new("describe services --show-events=false", Omits(&["Events:"])),
        Row::new("describe --chunk-size=1 --v=6 services", Says(&["/services?limit=1", "store"])),
        Row::new(SELECTOR, Prints("store:writer:back:")),
        Row::new("set selector -f $DIR/store.json role=apprentice --local -o yaml", Says(&["role: apprentice"])),
        Row::new(
            "set selector -f $DIR/store.json role=apprentice --dry-run=client -o yaml",
            Says(&["role: apprentice"]),
        ),
        Row::new("set selector -f $DIR/store.json role=apprentice", Prints("service/store selector updated")),
        Row::new(SELECTOR, Prints("apprentice:")),
        Row::new("set selector -f $DIR/store.json app=store,role=writer,tier=back", Succeeds),
        Row::new(SELECTOR, Prints("store:writer:back:")),
        Row::new("set selector services store role=apprentice --dry-run=client -o yaml", Says(&["role: apprentice"])),
        Row::new("set selector services store role=apprentice --dry-run=server -o yaml", Says(&["role: apprentice"])),
        Row::new(
            "get services store --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-set"]),
        ),
        Row::new("set selector services store role=apprentice --local -o yaml", Fails(&[])),
        Row::new(SELECTOR, Prints("store:writer:back:")),
        Row::new("get services store -o jsonpath={.metadata.resourceVersion}", Keeps("VERSION")),
        Row::new("set selector services store newest=true --resource-version=$VERSION", Succeeds),
        Row::new("set selector services store newest=true --resource-version=1", Fails(&["(Conflict)"])),
        Row::new("get service store -o json", Keeps("SERVICE")),
        Row::new("delete service store", Says(&["service \"store\" deleted"])),
        // With the address it had.
        Row::with("create -f -", "$SERVICE", Prints("service/store created")),
        Row::with(
            "create -f -",
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"bare"},"spec":{"ports":[{"protocol":"TCP","port":80,"targetPort":80}]}}"#,
            Succeeds,
        ),
        Row::new(NAMES, Prints("bare:store:")),
        Row::new("get service bare -o json", Keeps("SERVICE")),
        Row::with("replace -f -", "$SERVICE", Prints("service/bare replaced")),
        Row::new("delete service store bare", Succeeds),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/store.json -f $DIR/second.json", Succeeds),
        Row::new(
            "get services -o custom-columns=NAME:.metadata.name,VERSION:.metadata.resourceVersion",
            Says(&["NAME", "store-reader"]),
        ),
        Row::new("delete services store store-reader", Succeeds),
        Row::new("create service externalname away --dry-run=client --external-name bar.com", Succeeds),
        Row::new(
            "create service externalname away --dry-run=server --external-name bar.com",
            Prints("service/away created (server dry run)"),
        ),
        Row::new(NAMES, Prints("")),
        Row::new("create service externalname away --external-name bar.com", Succeeds),
        Row::new(NAMES, Prints("away:")),
        Row::new("delete service away", Succeeds),
    ],
};

pub(crate) const EXPOSING: Section = Section {
    name: "exposing",
    files: &[
        ("large.json", LARGE_NAME),
        ("two-ports.json", TWO_PORTS),
        ("deployment.yaml", DEPLOYMENT),
        ("no-selector.yaml", NO_SELECTOR),
    ],
    rows: &[
        Row::new(
            "run meta --image=registry.example/web:1 --port=80 --expose --dry-run=client",
            Says(&["service/meta created (dry run)", "pod/meta created (dry run)"]),
        ),
        Row::new(
            "run meta --image=registry.example/web:1 --port=80 --expose --dry-run=server",
            Says(&["service/meta created (server dry run)", "pod/meta created (server dry run)"]),
        ),
        Row::new("get services,pods -o name", Prints("")),
        Row::new(
            "run meta --image=registry.example/web:1 --port=80 --expose",
            Says(&["service/meta created", "pod/meta created"]),
        ),
        Row::new("get service meta -o jsonpath={.spec.ports[0].port}", Prints("80")),
        Row::new(
            "get pod meta --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-run"]),
        ),
        Row::new(
            "expose pod meta --port=1000 --target-port=80 --type=NodePort --name=other --overrides={\"metadata\":{\"annotations\":{\"zone\":\"work\"}}}",
            Prints("service/other exposed"),
        ),
        Row::new("get service other -o go-template={{.metadata.annotations}}", Prints("map[zone:work]")),
        Row::new(
            "get service other --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-expose"]),
        ),
        Row::new("expose service meta --port=443 --name=meta-2", Succeeds),
        Row::new(
            "get service meta-2 -o go-template='{{(index .spec.ports 0).name}} {{(index .spec.ports 0).port}}'",
            Prints("<no value> 443"),
        ),
        Row::new("expose service meta --name=meta-3", Succeeds),
        Row::new("get service meta-3 -o jsonpath={.spec.ports[0].port}", Prints("80")),
        Row::new("expose -f $DIR/deployment.yaml --port 80", Prints("service/exposed exposed")),
        Row::new("delete service/exposed", Succeeds),
        Row::new("expose -f $DIR/no-selector.yaml --port 80", Fails(&["no selectors"])),
        Row::new("create -f $DIR/deployment.yaml", Succeeds),
        Row::new("expose deployment/exposed", Succeeds),
        Row::new("get service exposed -o jsonpath={.spec.ports[0].port}", Prints("80")),
        Row::new("expose nodes 127.0.0.1", Fails(&["cannot expose"])),
        Row::new(
            "expose -f $DIR/large.json --name=invalid-large-service-name-that-has-more-than-sixty-three-characters --port=8081",
            Fails(&["metadata.name: Invalid value"]),
        ),
        Row::new(
            "expose -f $DIR/large.json --port=8081",
            Prints("service/a-name-that-is-longer-than-the-sixty-three-characters-a-service exposed"),
        ),
        Row::new("expose -f $DIR/two-ports.json --selector=test=two", Succeeds),
        Row::new(
            "get service two-ports -o jsonpath='{range .spec.ports[*]}{.name} {.port},{end}'",
            Prints("port-1 2380,port-2 2379,"),
        ),
        Row::new("delete deployment/exposed pod/meta", Succeeds),
        Row::new("delete services --all", Says(&["meta-3"])),
    ],
};
