//! The `create` family, `run`, `expose`, and what the objects do then.

use tests::desk::Desk;
use tests::table::{Row, Want::*};

const WORKLOADS: &[Row] = &[
    Row::new(
        "create deployment app --image=k8s.gcr.io/echoserver:1.4 --replicas=1 --port=8080",
        Says(&["deployment.apps/app created"]),
    ),
    Row::new("rollout status deployment/app --timeout=90s", Succeeds),
    Row::new("expose deployment app --port=80 --target-port=8080", Says(&["service/app exposed"])),
    Row::new("get endpoints app", Shows(&[":8080"])),
    Row::new(
        "expose deployment app --name=app-node --type=NodePort --port=80 --target-port=8080",
        Says(&["service/app-node exposed"]),
    ),
    Row::new("get service app-node", Says(&["NodePort", "80:3"])),
    Row::new("autoscale deployment none --max=3", Fails(&[])),
    Row::new("create job sum --image=busybox:1.36 -- sh -c 'echo $((20+22))'", Says(&["job.batch/sum created"])),
    Row::new("wait --for=condition=Complete job/sum --timeout=90s", Says(&["job.batch/sum condition met"])),
    Row::new("logs job/sum", Prints("42")),
    Row::new("get jobs", Says(&["STATUS", "COMPLETIONS", "Complete", "1/1"])),
    Row::new(
        "create cronjob tick --image=busybox:1.36 --schedule='0 0 1 1 *' -- true",
        Says(&["cronjob.batch/tick created"]),
    ),
    Row::new("create job tock --from=cronjob/tick", Says(&["job.batch/tock created"])),
    Row::new("wait --for=condition=Complete job/tock --timeout=90s", Succeeds),
    Row::new("delete job sum", Says(&["job.batch \"sum\" deleted"])),
    Row::new("wait --for=delete pod -l job-name=sum --timeout=60s", Succeeds),
    Row::new(
        "run bare --image=k8s.gcr.io/echoserver:1.4 --port=8080 --labels=kind=bare --expose",
        Says(&["service/bare created", "pod/bare created"]),
    ),
    Row::new("wait --for=condition=Ready pod/bare --timeout=60s", Succeeds),
    Row::new("run nothing --image=busybox --dry-run=client -o yaml", Says(&["kind: Pod", "image: busybox"])),
    Row::new("run nothing --image=busybox --dry-run=server", Says(&["pod/nothing created (server dry run)"])),
];

const SETTINGS: &[Row] = &[
    Row::new(
        "create configmap from-words --from-literal=a=1 --from-literal=b=2",
        Says(&["configmap/from-words created"]),
    ),
    Row::new("create configmap from-file --from-file=$DIR/there2", Says(&["created"])),
    Row::new("get configmap from-file -o jsonpath={.data.there2}", Prints("words")),
    Row::new("create secret generic password --from-literal=word=hidden", Says(&["secret/password created"])),
    Row::new("get secret password -o jsonpath={.data.word}", Prints("aGlkZGVu")),
    Row::new("get secret password", Says(&["TYPE", "Opaque", "1"])),
    Row::new(
        "create secret docker-registry pull --docker-server=r.example --docker-username=u --docker-password=p",
        Says(&["secret/pull created"]),
    ),
    Row::new("create quota small --hard=pods=10,configmaps=20", Says(&["resourcequota/small created"])),
    Row::new(
        "create poddisruptionbudget keep --selector=app=app --min-available=1",
        Says(&["poddisruptionbudget.policy/keep created"]),
    ),
    Row::new("create priorityclass $NS-high --value=1000", Says(&["priorityclass.scheduling.k8s.io/$NS-high created"])),
    Row::new("delete priorityclass $NS-high", Succeeds),
    Row::new("create ingress gate --rule=example.org/*=app:80", Says(&["ingress.networking.k8s.io/gate created"])),
    Row::new("describe ingress gate", Says(&["example.org", "app:80"])),
    Row::new("create service clusterip plain --tcp=5678:8080", Says(&["service/plain created"])),
    Row::new("create service nodeport opened --tcp=5678:8080", Says(&["service/opened created"])),
    Row::new("create service clusterip headless --clusterip=None", Says(&["service/headless created"])),
    Row::new("create service externalname away --external-name=example.org", Says(&["service/away created"])),
    Row::new("get service away headless", Says(&["ExternalName", "example.org", "None"])),
];

const RIGHTS: &[Row] = &[
    Row::new("create serviceaccount robot", Says(&["serviceaccount/robot created"])),
    Row::new(
        "create role reader --verb=get,list --resource=pods,deployments.apps",
        Says(&["role.rbac.authorization.k8s.io/reader created"]),
    ),
    Row::new(
        "create rolebinding robot-reads --role=reader --serviceaccount=$NS:robot",
        Says(&["rolebinding.rbac.authorization.k8s.io/robot-reads created"]),
    ),
    Row::new("auth can-i list pods --as=system:serviceaccount:$NS:robot", Shows(&["yes"])),
    Row::new("auth can-i delete pods --as=system:serviceaccount:$NS:robot", Ends(1, &["no"])),
    Row::new("auth can-i list pods -n default --as=system:serviceaccount:$NS:robot", Ends(1, &["no"])),
    Row::new("create clusterrole $NS-nodes --verb=get --resource=nodes", Says(&["created"])),
    Row::new(
        "create clusterrolebinding $NS-robot --clusterrole=$NS-nodes --serviceaccount=$NS:robot",
        Says(&["created"]),
    ),
    Row::new("auth can-i get nodes --as=system:serviceaccount:$NS:robot", Shows(&["yes"])),
    Row::new("create token robot --duration=10m", Says(&["eyJ"])),
    Row::new("create token none", Fails(&["serviceaccounts \"none\" not found"])),
    Row::new("auth reconcile -f $DIR/role.yaml", Says(&["role.rbac.authorization.k8s.io/reader reconciled"])),
    Row::new("describe role reader", Says(&["PolicyRule:", "configmaps"])),
    Row::new("delete clusterrolebinding $NS-robot", Succeeds),
    Row::new("delete clusterrole $NS-nodes", Succeeds),
    Row::new("create -f $DIR/role.yaml", Fails(&["(AlreadyExists)"])),
];

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: reader\n  namespace: $NS\nrules:\n- \
    apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [get]\n";

pub(super) async fn story(desk: &Desk) {
    desk.write("there2", "words");
    desk.write("role.yaml", ROLE);
    for table in [WORKLOADS, SETTINGS, RIGHTS] {
        desk.work_through(table).await;
    }
    use_token(desk).await;
}

/// What a token allows, for a `kubectl` without any other identity.
async fn use_token(desk: &Desk) {
    let token = desk.kubectl.ok("create token robot").await;
    let server = desk.kubectl.ok("config view --raw -o jsonpath={.clusters[0].cluster.server}").await;
    let authority =
        desk.kubectl.ok("config view --raw -o jsonpath={.clusters[0].cluster.certificate-authority-data}").await;
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\nclusters:\n- \
         name: c\n  cluster: {{server: {server}, certificate-authority-data: {authority}}}\nusers:\n- name: u\n  user: \
         {{token: {token}}}\n"
    );
    desk.write("robot.conf", &config);
    let mut robot = desk.kubectl.clone();
    robot.kubeconfig = desk.files.join("robot.conf");
    let who = robot.ok("auth whoami -o jsonpath={.status.userInfo.username}").await;
    assert_eq!(who, format!("system:serviceaccount:{}:robot", desk.kubectl.namespace));
    robot.ok("get pods").await;
    let refused = robot.run("get secrets").await;
    assert!(refused.error_text().contains("cannot list resource \"secrets\""), "{}", refused.error_text());
}
