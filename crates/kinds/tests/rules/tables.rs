//! The rows that `kubectl get` prints, kind by kind: objects in, cells out.

use api_machinery::time::Time;
use serde_json::{Value, json};

use crate::{kind, read};

/// When the objects were made: the first moment of 2026.
const MADE: i64 = 1_767_225_600;
/// Two hours, four minutes and five seconds later.
const NOW: i64 = MADE + 7_445;

/// The cells of an object that was made a while ago.
fn cells(name: &str, text: &str) -> Vec<Value> {
    let rules = kind(name);
    let mut object = read(rules, text);
    object.meta_mut().creation_timestamp = Time::from_unix_seconds(MADE);
    rules.cells(&*object, Time::from_unix_seconds(NOW))
}

/// Checks one cell, found by its column's name, in each of several objects of a kind.
fn check_cell(name: &str, column: &str, rows: &[(&str, &str)]) {
    let columns = kind(name).columns();
    let at = columns.iter().position(|own| own.name == column).unwrap_or_else(|| panic!("{name}: no {column}"));
    for (text, expected) in rows {
        assert_eq!(cells(name, text)[at], json!(expected), "{name} {column} {text}");
    }
}

#[test]
fn endpoints_go_port_by_port() {
    let subset = |ips: &[&str], ports: &str| {
        let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
        let ports: Value = serde_json::from_str(ports).unwrap();
        json!({"subsets": [{"addresses": addresses, "ports": ports}]}).to_string()
    };
    let dns = r#"[{"name":"dns","port":53,"protocol":"UDP"},{"name":"metrics","port":9153}]"#;
    let rows = [
        ("{}".to_owned(), "<none>"),
        (subset(&["10.0.0.1"], "[]"), "10.0.0.1"),
        (subset(&["10.0.0.1", "fd00::1"], r#"[{"port":80}]"#), "10.0.0.1:80,[fd00::1]:80"),
        (subset(&["10.0.0.1", "10.0.0.2"], dns), "10.0.0.1:53,10.0.0.2:53,10.0.0.1:9153 + 1 more..."),
        // Nobody is ready: the subset is there, and says nothing.
        (r#"{"subsets":[{"notReadyAddresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]}"#.to_owned(), ""),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell("endpoints", "Endpoints", &rows);
}

#[test]
fn endpoint_slices() {
    let name = "discovery.k8s.io/endpointslices";
    let slice = |rest: &str| format!(r#"{{"addressType":"IPv4",{rest}}}"#);
    let ports = slice(r#""endpoints":[],"ports":[{"port":1},{"port":2},{"port":3},{"port":4}]"#);
    let named = slice(r#""endpoints":[],"ports":[{"name":"web"},{"name":"tls"}]"#);
    let bare = slice(r#""endpoints":[],"ports":[{}]"#);
    check_cell(name, "Ports", &[(&ports, "1,2,3 + 1 more..."), (&named, "web,tls"), (&bare, "<unset>")]);
    let some = slice(r#""endpoints":[{"addresses":["10.0.0.1","10.0.0.2"]},{"addresses":["10.0.0.3","10.0.0.4"]}]"#);
    let none = slice(r#""endpoints":[]"#);
    check_cell(name, "Endpoints", &[(&some, "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more..."), (&none, "<unset>")]);
}

#[test]
fn claims_show_what_they_have_and_not_what_they_ask() {
    let spec = r#""accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"5Gi"}}"#;
    let pending = format!(r#"{{"spec":{{{spec}}},"status":{{"phase":"Pending"}}}}"#);
    let named = format!(r#"{{"spec":{{{spec},"volumeName":"v"}},"status":{{"phase":"Pending"}}}}"#);
    let bound = format!(
        r#"{{"spec":{{{spec},"volumeName":"v"}},"status":{{"phase":"Bound","capacity":{{"storage":"8Gi"}},
            "accessModes":["ReadOnlyMany","ReadWriteOnce"]}}}}"#
    );
    let name = "persistentvolumeclaims";
    check_cell(name, "Capacity", &[(&pending, ""), (&named, "0"), (&bound, "8Gi")]);
    check_cell(name, "Access Modes", &[(&pending, ""), (&named, ""), (&bound, "RWO,ROX")]);
    let going = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Bound"}}"#;
    check_cell(name, "Status", &[(&pending, "Pending"), (&bound, "Bound"), (going, "Terminating")]);
    let old = r#"{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"old"}},
        "spec":{"storageClassName":"new"}}"#;
    check_cell(name, "StorageClass", &[("{}", ""), (r#"{"spec":{"storageClassName":"new"}}"#, "new"), (old, "old")]);
    check_cell(name, "VolumeAttributesClass", &[("{}", "<unset>")]);
    check_cell("persistentvolumes", "Capacity", &[("{}", "0"), (r#"{"spec":{"capacity":{"storage":"1Ti"}}}"#, "1Ti")]);
    let claimed = r#"{"spec":{"claimRef":{"namespace":"a","name":"b"}}}"#;
    check_cell("persistentvolumes", "Claim", &[("{}", ""), (claimed, "a/b")]);
}

#[test]
fn services() {
    let external = |type_: &str, rest: &str| format!(r#"{{"spec":{{"type":"{type_}"{rest}}}}}"#);
    let ips = r#","externalIPs":["192.0.2.9","192.0.2.8"]"#;
    let balanced = |ips: &str| {
        format!(
            r#"{{"spec":{{"type":"LoadBalancer"{ips}}},"status":{{"loadBalancer":{{"ingress":[
                {{"hostname":"b.example"}},{{"ip":"192.0.2.2","hostname":"x"}},{{"hostname":"b.example"}},{{}}]}}}}}}"#
        )
    };
    let empty = r#"{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{}]}}}"#;
    let rows = [
        (external("ClusterIP", ""), "<none>"),
        (external("ClusterIP", ips), "192.0.2.9,192.0.2.8"),
        (external("NodePort", ""), "<none>"),
        (external("LoadBalancer", ""), "<pending>"),
        (external("LoadBalancer", ips), "192.0.2.9,192.0.2.8"),
        (balanced(""), "192.0.2.2,b.example"),
        (balanced(ips), "192.0.2.2,b.example,192.0.2.9,192.0.2.8"),
        (empty.to_owned(), "<pending>"),
        (external("ExternalName", r#","externalName":"db.example""#), "db.example"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell("services", "External-IP", &rows);
    let ports = r#"{"spec":{"ports":[{"port":80,"nodePort":30080},{"port":53,"protocol":"UDP"}]}}"#;
    check_cell("services", "Port(s)", &[("{}", "<none>"), (ports, "80:30080/TCP,53/UDP")]);
    let address = r#"{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"]}}"#;
    check_cell("services", "Cluster-IP", &[("{}", "<none>"), (address, "10.0.0.1")]);
    check_cell("services", "Selector", &[("{}", "<none>"), (r#"{"spec":{"selector":{"b":"2","a":"1"}}}"#, "a=1,b=2")]);
    check_cell("services", "Age", &[("{}", "124m")]);
}

#[test]
fn ingresses() {
    let name = "networking.k8s.io/ingresses";
    let rules = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        json!({"spec": {"rules": rules}}).to_string()
    };
    let rows = [
        (rules(&[]), "*"),
        (rules(&[""]), "*"),
        (rules(&["a", "", "b", "c"]), "a,b,c"),
        (rules(&["a", "b", "c", ""]), "a,b,c + 1 more..."),
        (rules(&["a", "", "b", "c", "d"]), "a,b,c + 2 more..."),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell(name, "Hosts", &rows);
    check_cell(name, "Ports", &[("{}", "80"), (r#"{"spec":{"tls":[{}]}}"#, "80, 443")]);
    let there = r#"{"status":{"loadBalancer":{"ingress":[{"hostname":"b"},{"ip":"192.0.2.1"},{}]}}}"#;
    check_cell(name, "Address", &[("{}", ""), (there, "192.0.2.1,b")]);
    check_cell(name, "Class", &[("{}", "<none>"), (r#"{"spec":{"ingressClassName":"c"}}"#, "c")]);
}

#[test]
fn nodes() {
    let ready = |status: &str, rest: &str| {
        format!(r#"{{"status":{{"conditions":[{{"type":"Ready","status":"{status}"}}]}},"spec":{{{rest}}}}}"#)
    };
    let cordoned = r#""unschedulable":true"#;
    let rows = [
        (ready("True", ""), "Ready"),
        (ready("False", ""), "NotReady"),
        (ready("Unknown", cordoned), "NotReady,SchedulingDisabled"),
        (ready("True", cordoned), "Ready,SchedulingDisabled"),
        ("{}".to_owned(), "Unknown"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell("nodes", "Status", &rows);
    let roles = r#"{"metadata":{"labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/":"x",
        "node-role.kubernetes.io/control-plane":"true","kubernetes.io/role":"worker"}}}"#;
    check_cell("nodes", "Roles", &[("{}", "<none>"), (roles, "control-plane,worker")]);
    let info = r#"{"status":{"nodeInfo":{"kernelVersion":"6.1","architecture":"arm64","osImage":"Debian"},
        "addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"192.0.2.1"},
        {"type":"InternalIP","address":"192.0.2.2"}]}}"#;
    check_cell("nodes", "Internal-IP", &[("{}", "<none>"), (info, "192.0.2.1")]);
    check_cell("nodes", "External-IP", &[(info, "<none>")]);
    check_cell("nodes", "OS-Image", &[("{}", "<unknown>"), (info, "Debian")]);
    check_cell("nodes", "Kernel-Version", &[("{}", "<unknown>"), (info, "6.1 (arm64)")]);
    check_cell("nodes", "Container-Runtime", &[("{}", "<unknown>")]);
}

#[test]
fn jobs_and_cron_jobs() {
    let condition = |type_: &str| format!(r#"{{"status":{{"conditions":[{{"type":"{type_}","status":"True"}}]}}}}"#);
    let mut rows = vec![("{}".to_owned(), "Running")];
    for word in ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"] {
        rows.push((condition(word), word));
    }
    rows.push((r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#.to_owned(), "Terminating"));
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell("batch/jobs", "Status", &rows);
    let rows = [
        (r#"{"spec":{"completions":3},"status":{"succeeded":2}}"#, "2/3"),
        (r#"{"spec":{"parallelism":4},"status":{"succeeded":1}}"#, "1/1 of 4"),
        (r#"{"spec":{"parallelism":1},"status":{}}"#, "0/1"),
    ];
    check_cell("batch/jobs", "Completions", &rows);
    let rows = [
        ("{}", ""),
        (r#"{"status":{"startTime":"2026-01-01T02:03:05Z"}}"#, "60s"),
        (r#"{"status":{"startTime":"2026-01-01T02:00:00Z","completionTime":"2026-01-01T02:03:20Z"}}"#, "3m20s"),
    ];
    check_cell("batch/jobs", "Duration", &rows);
    let cron = "batch/cronjobs";
    check_cell(cron, "Suspend", &[("{}", "False"), (r#"{"spec":{"suspend":true}}"#, "True")]);
    check_cell(cron, "Timezone", &[("{}", "<none>"), (r#"{"spec":{"timeZone":"Europe/Oslo"}}"#, "Europe/Oslo")]);
    let ran = r#"{"status":{"lastScheduleTime":"2026-01-01T02:01:05Z"}}"#;
    check_cell(cron, "Last Schedule", &[("{}", "<none>"), (ran, "3m")]);
    check_cell(cron, "Selector", &[("{}", "<none>")]);
}

#[test]
fn workloads_count_what_is_ready() {
    let text = r#"{"spec":{"replicas":3,"selector":{"matchLabels":{"a":"1"},"matchExpressions":[
        {"key":"b","operator":"In","values":["y","x"]}]},"template":{"spec":{"containers":[
        {"name":"one","image":"i:1"},{"name":"two","image":"i:2"}],"initContainers":[{"name":"zero"}]}}},
        "status":{"readyReplicas":2,"availableReplicas":1,"replicas":4}}"#;
    let expected = json!(["n", "2/3", 0, 1, "124m", "one,two", "i:1,i:2", "a=1,b in (x,y)"]);
    assert_eq!(json!(cells("apps/deployments", text)), expected);
    let expected = json!(["n", 3, 4, 2, "124m", "one,two", "i:1,i:2", "a=1,b in (x,y)"]);
    assert_eq!(json!(cells("apps/replicasets", text)), expected);
    assert_eq!(json!(cells("apps/statefulsets", text)), json!(["n", "2/3", "124m", "one,two", "i:1,i:2"]));
    let text = r#"{"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"},"containers":[{"name":"c","image":"i"}]}},
        "selector":{"matchLabels":{"a":"1"}}},"status":{"desiredNumberScheduled":5,"currentNumberScheduled":4,
        "numberReady":3,"updatedNumberScheduled":2,"numberAvailable":1}}"#;
    let expected = json!(["n", 5, 4, 3, 2, 1, "disk=ssd", "124m", "c", "i", "a=1"]);
    assert_eq!(json!(cells("apps/daemonsets", text)), expected);
}

#[test]
fn events() {
    let row = |text: &str| json!(cells("events", text));
    let text = r#"{"involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec.containers{c}"},"type":"Warning",
        "reason":"BackOff","message":" no\n","source":{"component":"kubelet","host":"node"},"count":4,
        "firstTimestamp":"2026-01-01T01:00:00Z","lastTimestamp":"2026-01-01T02:03:00Z"}"#;
    let expected =
        json!(["65s", "Warning", "BackOff", "pod/p", "spec.containers{c}", "kubelet, node", "no", "64m", 4, "n"]);
    assert_eq!(row(text), expected);
    let text = r#"{"involvedObject":{"kind":"Node"},"type":"Normal","eventTime":"2026-01-01T02:00:00.000000Z",
        "reportingComponent":"scheduler","reportingInstance":"s-1"}"#;
    let expected = json!(["4m5s", "Normal", "", "node", "", "scheduler, s-1", "", "4m5s", 1, "n"]);
    assert_eq!(row(text), expected);
    let text = r#"{"eventTime":"2026-01-01T02:00:00.000000Z","series":{"count":7,
        "lastObservedTime":"2026-01-01T02:04:00.000000Z"}}"#;
    assert_eq!(row(text)[0], "5s");
    assert_eq!(row(text)[8], 7);
    assert_eq!(row("{}")[0], "<unknown>");
}

#[test]
fn what_is_default_says_so() {
    let marked = |key: &str, value: &str| format!(r#"{{"metadata":{{"annotations":{{"{key}":"{value}"}}}}}}"#);
    let class = "storageclass.kubernetes.io/is-default-class";
    let beta = "storageclass.beta.kubernetes.io/is-default-class";
    let (yes, old, no) = (marked(class, "true"), marked(beta, "true"), marked(class, "false"));
    let rows = [("{}", "n"), (yes.as_str(), "n (default)"), (old.as_str(), "n (default)"), (no.as_str(), "n")];
    check_cell("storage.k8s.io/storageclasses", "Name", &rows);
    let rows = [("{}", "<none>"), (r#"{"spec":{"parameters":{"apiGroup":"g","kind":"K","name":"p"}}}"#, "K.g/p")];
    check_cell("networking.k8s.io/ingressclasses", "Parameters", &rows);
}

#[test]
fn quotas_budgets_and_requests() {
    let quota =
        r#"{"status":{"hard":{"limits.cpu":"4","pods":"10","cpu":"2"},"used":{"pods":"3","limits.cpu":"500m"}}}"#;
    check_cell("resourcequotas", "Request", &[("{}", ""), (quota, "cpu: 0/2, pods: 3/10")]);
    check_cell("resourcequotas", "Limit", &[("{}", ""), (quota, "limits.cpu: 500m/4")]);
    let budget = "policy/poddisruptionbudgets";
    check_cell(budget, "Min Available", &[("{}", "N/A"), (r#"{"spec":{"minAvailable":"50%"}}"#, "50%")]);
    check_cell(budget, "Max Unavailable", &[("{}", "N/A"), (r#"{"spec":{"maxUnavailable":0}}"#, "0")]);
    let condition = |types: &[&str], rest: &str| {
        let conditions: Vec<String> =
            types.iter().map(|one| format!(r#"{{"type":"{one}","status":"True"}}"#)).collect();
        format!(r#"{{"status":{{"conditions":[{}]{rest}}}}}"#, conditions.join(","))
    };
    let rows = [
        (condition(&[], ""), "Pending"),
        (condition(&["Approved"], ""), "Approved"),
        (condition(&["Approved"], r#","certificate":"eA==""#), "Approved,Issued"),
        (condition(&["Approved", "Failed"], ""), "Approved,Failed"),
        (condition(&["Denied"], ""), "Denied"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_cell("certificates.k8s.io/certificatesigningrequests", "Condition", &rows);
    let asked = r#"{"spec":{"expirationSeconds":86400}}"#;
    check_cell(
        "certificates.k8s.io/certificatesigningrequests",
        "RequestedDuration",
        &[("{}", "<none>"), (asked, "24h")],
    );
}

#[test]
fn the_rest() {
    let revision = r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d",
        "controller":true}]},"revision":3}"#;
    assert_eq!(json!(cells("apps/controllerrevisions", revision)), json!(["n", "daemonset.apps/d", 3, "124m"]));
    check_cell("apps/controllerrevisions", "Controller", &[("{}", "<none>")]);
    check_cell("coordination.k8s.io/leases", "Holder", &[("{}", ""), (r#"{"spec":{"holderIdentity":"h"}}"#, "h")]);
    let binding = r#"{"roleRef":{"kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"u"},
        {"kind":"Group","name":"g"},{"kind":"ServiceAccount","namespace":"s","name":"a"},{"kind":"User","name":"v"}]}"#;
    let expected = json!(["n", "ClusterRole/view", "124m", "u, v", "g", "s/a"]);
    assert_eq!(json!(cells("rbac.authorization.k8s.io/rolebindings", binding)), expected);
    let policy = "networking.k8s.io/networkpolicies";
    check_cell(
        policy,
        "Pod-Selector",
        &[("{}", "<none>"), (r#"{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}"#, "a=b")],
    );
    assert_eq!(json!(cells("rbac.authorization.k8s.io/roles", "{}")), json!(["n", "2026-01-01T00:00:00Z"]));
    assert_eq!(json!(cells("limitranges", "{}")), json!(["n", "2026-01-01T00:00:00Z"]));
    let data = r#"{"data":{"a":"eA==","b":"eA=="}}"#;
    assert_eq!(json!(cells("secrets", data)), json!(["n", "Opaque", 2, "124m"]));
    assert_eq!(json!(cells("configmaps", r#"{"data":{"a":"x"},"binaryData":{"b":"eA=="}}"#)), json!(["n", 2, "124m"]));
    assert_eq!(json!(cells("namespaces", r#"{"status":{"phase":"Active"}}"#)), json!(["n", "Active", "124m"]));
}
