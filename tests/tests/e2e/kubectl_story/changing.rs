//! Commands that change what is there.

use tests::desk::Desk;
use tests::table::{Row, Want::*};

const SCALING: &[Row] = &[
    Row::new("scale deployment/web --replicas=3", Says(&["deployment.apps/web scaled"])),
    Row::new("get deployment web", Shows(&["3/3"])),
    Row::new("scale deployment/web --current-replicas=9 --replicas=1", Fails(&["Expected replicas to be 9, was 3"])),
    Row::new("scale deployment/web --replicas=1", Succeeds),
    Row::new("rollout status deployment/web --timeout=60s", Succeeds),
];

const ROLLING: &[Row] = &[
    Row::new("set image deployment/web echo=k8s.gcr.io/echoserver:1.5", Says(&["deployment.apps/web image updated"])),
    Row::new("rollout status deployment/web --timeout=90s", Says(&["successfully rolled out"])),
    Row::new("rollout history deployment/web", Says(&["REVISION", "CHANGE-CAUSE", "1", "2"])),
    Row::new("rollout history deployment/web --revision=2", Says(&["Pod Template:", "echoserver:1.5"])),
    Row::new("rollout undo deployment/web", Says(&["deployment.apps/web rolled back"])),
    Row::new("rollout status deployment/web --timeout=90s", Succeeds),
    Row::new(
        "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}",
        Prints("k8s.gcr.io/echoserver:1.4"),
    ),
    Row::new(
        "rollout undo deployment/web --to-revision=99",
        Fails(&["unable to find specified revision 99 in history"]),
    ),
    Row::new("rollout pause deployment/web", Says(&["deployment.apps/web paused"])),
    Row::new("set env deployment/web MODE=test", Says(&["deployment.apps/web env updated"])),
    Row::new("set env deployment/web --list", Says(&["MODE=test"])),
    Row::new("rollout undo deployment/web", Fails(&["paused"])),
    Row::new("set resources deployment/web --requests=cpu=5m,memory=8Mi", Says(&["resource requirements updated"])),
    Row::new("rollout resume deployment/web", Says(&["deployment.apps/web resumed"])),
    Row::new("rollout status deployment/web --timeout=90s", Succeeds),
    Row::new("exec deployment/web -- sh -c 'echo $MODE'", Prints("test")),
    Row::new("rollout restart deployment/web", Says(&["deployment.apps/web restarted"])),
    Row::new("rollout status deployment/web --timeout=90s", Succeeds),
    Row::new("get deployment web -o yaml", Says(&["kubectl.kubernetes.io/restartedAt"])),
    Row::new("set serviceaccount deployment/web default", Says(&["serviceaccount updated"])),
];

const MARKING: &[Row] = &[
    Row::new("label pod shell tier=front", Says(&["pod/shell labeled"])),
    Row::new("label pod shell tier=back", Fails(&["'tier' already has a value (front), and --overwrite is false"])),
    Row::new("label pod shell tier=back --overwrite", Says(&["pod/shell labeled"])),
    Row::new("get pods -l tier=back -o name", Prints("pod/shell")),
    Row::new("label pod shell tier-", Says(&["pod/shell unlabeled"])),
    Row::new("label pod shell 'tier=not valid'", Fails(&["invalid label value"])),
    Row::new("annotate pod shell note=hello", Says(&["pod/shell annotated"])),
    Row::new("annotate pod shell note-", Says(&["pod/shell annotated"])),
];

const PATCHING: &[Row] = &[
    Row::new(
        "patch deployment web -p {\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"echo\",\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}]}}}}",
        Says(&["deployment.apps/web patched"]),
    ),
    Row::new("get deployment web -o jsonpath={.spec.template.spec.containers[0].env[*].name}", Prints("A MODE")),
    Row::new(
        "patch configmap settings --type=merge -p {\"data\":{\"colour\":null,\"size\":\"big\"}}",
        Says(&["configmap/settings patched"]),
    ),
    Row::new("get configmap settings -o jsonpath={.data}", Prints("{\"size\":\"big\"}")),
    Row::new(
        "patch configmap settings --type=json -p [{\"op\":\"add\",\"path\":\"/data/colour\",\"value\":\"red\"}]",
        Says(&["configmap/settings patched"]),
    ),
    Row::new(
        "patch configmap settings --type=json -p [{\"op\":\"test\",\"path\":\"/data/colour\",\"value\":\"blue\"}]",
        Fails(&["The request is invalid"]),
    ),
    Row::new("patch configmap settings -p {\"data\":{\"colour\":\"red\"}}", Says(&["patched (no change)"])),
    Row::new(
        "patch deployment web --subresource=scale --type=merge -p {\"spec\":{\"replicas\":2}}",
        Says(&["patched"]),
    ),
    Row::new("get deployment web -o jsonpath={.spec.replicas}", Prints("2")),
    Row::new("get deployment web --subresource=scale", Says(&["DESIRED", "AVAILABLE"])),
    Row::new(
        "patch pod shell -p {\"spec\":{\"nodeName\":\"other\"}}",
        Fails(&["pod updates may not change fields other than"]),
    ),
    Row::new("apply -f $MANIFEST --prune -l part=kubectl", Says(&["configmap/settings configured"])),
];

const APPLYING: &[Row] = &[
    Row::new("diff -f $DIR/colours.yaml", Ends(1, &["+  colour: green"])),
    Row::new("apply -f $DIR/colours.yaml --dry-run=server", Says(&["configmap/colours created (server dry run)"])),
    Row::new("get configmap colours", Fails(&["not found"])),
    Row::new("apply -f $DIR/colours.yaml --dry-run=client -o yaml", Says(&["colour: green"])),
    Row::new("apply --server-side -f $DIR/colours.yaml", Says(&["configmap/colours serverside-applied"])),
    Row::new("apply --server-side -f $DIR/colours.yaml", Says(&["configmap/colours serverside-applied"])),
    Row::new("diff --server-side -f $DIR/colours.yaml", Succeeds),
    Row::new("patch configmap colours -p {\"data\":{\"colour\":\"grey\"}}", Succeeds),
    Row::new(
        "apply --server-side -f $DIR/colours.yaml",
        Fails(&["Apply failed with 1 conflict: conflict with \"kubectl-patch\"", ".data.colour"]),
    ),
    Row::new("apply --server-side --force-conflicts -f $DIR/colours.yaml", Says(&["serverside-applied"])),
    Row::new("get configmap colours -o jsonpath={.data.colour}", Prints("green")),
    Row::new("apply --server-side --field-manager=other -f $DIR/colours.yaml", Succeeds),
    Row::new("apply edit-last-applied configmap none", Fails(&["not found"])),
    Row::new("apply view-last-applied configmap settings", Says(&["colour: blue"])),
    Row::with(
        "apply -f -",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wrong\nnonsense: 1\n",
        Fails(&["strict decoding error: unknown field \"nonsense\""]),
    ),
    Row::with(
        "apply -f -",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: UPPER\nspec:\n  containers: []\n",
        Fails(&["is invalid", "metadata.name", "spec.containers: Required value"]),
    ),
    // For a version that nobody serves kubectl reads OpenAPI version 2 in protobuf.
    Row::with(
        "apply -f -",
        "apiVersion: v9\nkind: Pod\nmetadata:\n  name: x\n",
        Fails(&[
            "resource mapping not found for name: \"x\" namespace: \"\" from \"STDIN\": no matches for kind \"Pod\" in \
             version \"v9\"",
        ]),
    ),
    // Pruning takes what is no longer in the file.
    Row::new(
        "apply -f $DIR/two.yaml --prune -l set=pruned",
        Says(&["configmap/first created", "configmap/second created"]),
    ),
    Row::new(
        "apply -f $DIR/one.yaml --prune -l set=pruned",
        Says(&["configmap/first unchanged", "configmap/second pruned"]),
    ),
    Row::new("replace -f $DIR/replacement.yaml", Says(&["configmap/first replaced"])),
    Row::new("get configmap first -o jsonpath={.data.a}", Prints("2")),
    Row::new(
        "replace --force -f $DIR/replacement.yaml",
        Says(&["configmap \"first\" deleted", "configmap/first replaced"]),
    ),
    Row::new("delete -f $DIR/replacement.yaml", Says(&["configmap \"first\" deleted"])),
    Row::new("delete -f $DIR/replacement.yaml", Fails(&["configmaps \"first\" not found"])),
    Row::new("delete -f $DIR/replacement.yaml --ignore-not-found", Succeeds),
];

const EDITING: &[Row] = &[
    Row::new("edit configmap colours", Says(&["configmap/colours edited"])).editing("sed -i s/green/purple/"),
    Row::new("edit configmap colours", Says(&["Edit cancelled, no changes made"])).editing("true"),
    Row::new("get configmap colours -o jsonpath={.data.colour}", Prints("purple")),
];

const DELETING: &[Row] = &[
    Row::new("delete pod shell --force --grace-period=0", Says(&["pod \"shell\" force deleted"])),
    Row::new("wait --for=delete pod/shell --timeout=60s", Succeeds),
    Row::new("delete pods -l run=shell-echo --wait=false", Says(&["pod \"shell-echo\" deleted"])),
    Row::new("wait --for=delete pod/shell-echo --timeout=60s", Succeeds),
    // The pods stay behind as orphans.
    Row::new("scale deployment/web --replicas=1", Succeeds),
    Row::new("rollout status deployment/web --timeout=60s", Succeeds),
    Row::new("delete deployment web --cascade=orphan", Says(&["deployment.apps \"web\" deleted"])),
    Row::new("get replicasets -l app=web -o jsonpath={.items[*].metadata.ownerReferences}", Shows(&[""])),
    Row::new("get pods -l app=web --no-headers", Says(&["Running"])),
    Row::new("delete replicasets -l app=web --cascade=foreground --timeout=60s", Says(&["deleted"])),
    Row::new("wait --for=delete pod -l app=web --timeout=60s", Succeeds),
    Row::new("delete service,configmap --all", Says(&["service \"web\" deleted", "configmap \"colours\" deleted"])),
];

pub(super) async fn story(desk: &Desk) {
    let map = |name: &str, label: &str, data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: $NS\n{label}data:\n  {data}\n"
        )
    };
    const LABEL: &str = "  labels:\n    set: pruned\n";
    desk.write("colours.yaml", &map("colours", "", "colour: green"));
    desk.write("one.yaml", &map("first", LABEL, "a: \"1\""));
    desk.write("two.yaml", &format!("{}---\n{}", map("first", LABEL, "a: \"1\""), map("second", LABEL, "b: \"1\"")));
    desk.write("replacement.yaml", &map("first", "", "a: \"2\""));
    for table in [SCALING, ROLLING, MARKING, PATCHING, APPLYING, EDITING, DELETING] {
        desk.work_through(table).await;
    }
}
