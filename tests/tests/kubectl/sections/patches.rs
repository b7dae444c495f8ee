//! `patch` and `replace`.

use super::prelude::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"name":"web"}},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}"#;
const RENAMED: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"name":"web"}},
    "spec":{"containers":[{"name":"other","image":"registry.example/web:1"}]}}"#;
/// A version of zero says that the newest is meant, whichever that is.
const NODE: &str =
    r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"judged","annotations":{"a":"b"},"resourceVersion":"0"}}"#;

/// No JSON, whatever a request says that it is.
const AS_YAML: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n";

const IMAGE: &str = "get pod web -o jsonpath={.spec.containers[0].image}";
const MANAGERS: &str = "get pod web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}";

pub(crate) const PATCHING: Section = Section {
    name: "patches",
    files: &[("pod.json", POD)],
    rows: &[
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new(
            "patch --local -f $DIR/pod.json -p {\"spec\":{\"restartPolicy\":\"Never\"}} -o yaml",
            Says(&["Never"]),
        ),
        Row::new(
            "patch pod web -p {\"metadata\":{\"labels\":\"invalid\"}}",
            Ends(1, &["cannot restore map from string"]),
        ),
        Row::new(
            "patch pod web -p {\"metadata\":{\"labels\":{\"name\":\"web\"}}}",
            Prints("pod/web patched (no change)"),
        ),
        Row::new(
            "patch pod web --record -p {\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/web:2\"}]}}",
            Says(&["pod/web patched"]),
        ),
        Row::new(IMAGE, Prints("registry.example/web:2")),
        Row::new("get pod web -o jsonpath={.metadata.annotations}", Says(&["kubernetes.io/change-cause"])),
        Row::new(
            "patch pod web --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/containers/0/image\",\"value\":\"registry.example/web:3\"}]",
            Succeeds,
        ),
        Row::new(IMAGE, Prints("registry.example/web:3")),
        Row::new(
            "patch pod web --dry-run=client -p {\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"other\"}]}}",
            Says(&["pod/web patched"]),
        ),
        Row::new(
            "patch pod web --dry-run=server -p {\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"other\"}]}}",
            Says(&["pod/web patched"]),
        ),
        Row::new(IMAGE, Prints("registry.example/web:3")),
        Row::new(
            "patch pod web -p 'spec:\n  containers:\n  - name: main\n    image: registry.example/web:4\n'",
            Succeeds,
        ),
        Row::new(IMAGE, Prints("registry.example/web:4")),
        Row::new(
            "patch -f $DIR/pod.json -p {\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/web:5\"}]}}",
            Succeeds,
        ),
        Row::new(IMAGE, Prints("registry.example/web:5")),
        Row::new(MANAGERS, Says(&["kubectl-patch"])),
        Row::new("get pod web -o jsonpath={.metadata.resourceVersion}", Keeps("VERSION")),
        Row::new(
            "patch pod web -p {\"metadata\":{\"resourceVersion\":\"$VERSION\",\"annotations\":{\"in\":\"time\"}}}",
            Succeeds,
        ),
        Row::new(
            "patch pod web -p {\"metadata\":{\"resourceVersion\":\"$VERSION\",\"annotations\":{\"too\":\"late\"}}}",
            Fails(&["(Conflict)", "please apply your changes to the latest version and try again"]),
        ),
        Row::new("get pod web -o jsonpath={.metadata.annotations.in}{.metadata.annotations.too}", Prints("time")),
        Row::new("delete pod web", Succeeds),
    ],
};

pub(crate) const REPLACING: Section = Section {
    name: "replacements",
    files: &[("pod.json", POD), ("pod.yaml", AS_YAML), ("renamed.json", RENAMED), ("node.json", NODE)],
    rows: &[
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("replace -f $DIR/renamed.json", Fails(&["pod updates may not change fields other than"])),
        Row::new("replace --force -f $DIR/renamed.json", Says(&["pod \"web\" deleted", "pod/web replaced"])),
        Row::new("get pod web -o go-template='{{(index .spec.containers 0).name}}'", Prints("other")),
        Row::new(MANAGERS, Says(&["kubectl-replace"])),
        Row::new(
            "replace --grace-period=1 -f $DIR/renamed.json",
            Fails(&["--grace-period must have --force specified"]),
        ),
        Row::new("replace --timeout=1s -f $DIR/renamed.json", Fails(&["--timeout must have --force specified"])),
        Row::new("delete pod web", Succeeds),
        Row::with(
            "create -f -",
            "---\n{apiVersion: v1, kind: Node, metadata: {name: judged}}",
            Prints("node/judged created"),
        ),
        Row::new("replace --dry-run=server -f $DIR/node.json", Prints("node/judged replaced (server dry run)")),
        Row::new("replace --dry-run=client -f $DIR/node.json", Prints("node/judged replaced (dry run)")),
        Row::new("get node judged -o go-template={{.metadata.annotations.a}}", Prints("<no value>")),
        Row::new("replace -f $DIR/node.json", Prints("node/judged replaced")),
        Row::new("get node judged -o go-template={{.metadata.annotations.a}}", Prints("b")),
        Row::new("delete node judged", Prints("node \"judged\" deleted")),
        // Raw paths.
        Row::with(
            "create --raw /api/v1/namespaces/$NS/configmaps -f -",
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"raw\"}}",
            Says(&["\"uid\":"]),
        ),
        Row::with(
            "replace --raw /api/v1/namespaces/$NS/configmaps/raw -f -",
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"raw\"},\"data\":{\"key1\":\"config1\"}}",
            Says(&["\"uid\":"]),
        ),
        Row::new("get --raw /api/v1/namespaces/$NS/configmaps/raw", Says(&["config1"])),
        Row::new("delete --raw /api/v1/namespaces/$NS/configmaps/raw", Says(&["\"status\":\"Success\""])),
        Row::new("get configmap raw", Fails(&["configmaps \"raw\" not found"])),
        Row::new(
            "create --raw /api/v1/namespaces -f $DIR/pod.yaml",
            Fails(&["(BadRequest)", "the object provided is unrecognized (must be of type Namespace)"]),
        ),
        Row::new(
            "create --raw /api/v1/namespaces -f $DIR/pod.json",
            Fails(&["Pod in version \"v1\" cannot be handled as a Namespace"]),
        ),
        Row::new("create --raw /api/v1/namespaces -f $DIR/pod.json --edit", Fails(&["mutually exclusive"])),
    ],
};
