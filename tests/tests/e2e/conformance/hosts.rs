//! `/etc/hosts` as the kubelet writes it, and as it leaves it alone.

use serde_json::json;

use super::check::Check;
use super::live::Place;
use super::object::{idle, pod, text, with};

const MANAGED: &str = "# Kubernetes-managed hosts file.";

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "Kubelet when scheduling an agnhost Pod with hostAliases should write entries to /etc/hosts",
        "KubeletManagedEtcHosts should test kubelet managed /etc/hosts file",
        "DNS should provide /etc/hosts entries for the cluster",
    ];
    vec![Check::new("etc-hosts", ITEMS, async |place: Place| tokio::join!(own(&place), of_the_host(&place)).0)]
}

async fn own(place: &Place) {
    place
        .create("configmaps", &json!({"metadata": {"name": "hosts"}, "data": {"hosts": "1.2.3.4 mounted\n"}}))
        .await
        .ok();
    let mount = json!({"volumeMounts": [{"name": "hosts", "mountPath": "/etc/hosts", "subPath": "hosts"}]});
    let spec = json!({
        "hostname": "querier",
        "subdomain": "sub",
        "hostAliases": [{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}],
        "volumes": [{"name": "hosts", "configMap": {"name": "hosts"}}],
    });
    let pod = place.ready(&pod("own", &[idle("managed"), with(idle("mounted"), mount)], spec)).await;
    let ip = text(&pod["status"]["podIP"]);
    let hosts = place.exec("own", "managed", "cat /etc/hosts").await;
    assert!(hosts.starts_with(MANAGED), "{hosts}");
    let names = format!("{ip}\tquerier.sub.{}.svc.cluster.local\tquerier", place.namespace);
    for line in ["127.0.0.1\tlocalhost", &names, "123.45.67.89\tfoo\tbar"] {
        assert!(hosts.lines().any(|have| have == line), "{line:?} is not in {hosts}");
    }
    assert_eq!(place.exec("own", "mounted", "cat /etc/hosts").await, "1.2.3.4 mounted");
    place.exec("own", "managed", "ping -c1 -W2 querier && ping -c1 -W2 $(hostname -f)").await;
}

async fn of_the_host(place: &Place) {
    place.ready(&pod("host", &[idle("main")], json!({"hostNetwork": true}))).await;
    let hosts = place.exec("host", "main", "cat /etc/hosts").await;
    assert!(!hosts.contains(MANAGED), "{hosts}");
}
