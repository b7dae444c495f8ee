//! Names of Services and pods as pods resolve them, and what a pod may say about its own resolver.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::networking::client;
use super::object::{idle, pause, pod, text, with};

const CLIENT: &str = "dns-client";

pub(crate) fn checks() -> Vec<Check> {
    vec![services(), pods(), external_names(), own_resolver()]
}

/// Waits until a command of the client prints all of these.
async fn prints(place: &Place, command: &str, wanted: &[&str]) {
    let printed = async || match place.try_exec(CLIENT, "main", command).await {
        Ok(printed) if wanted.iter().all(|text| printed.contains(text)) => Ok(()),
        other => Err(format!("{command}: {other:?} without {wanted:?}")),
    };
    place.eventually(printed).await;
}

/// A record of a full name.
fn lookup(kind: &str, name: &str) -> String {
    format!("nslookup -type={kind} {name} || true")
}

/// What the C library makes of a name, with the search list; whether it is reachable does not matter.
fn resolve(name: &str) -> String {
    format!("ping -c1 -W1 {name} | head -1")
}

fn of(app: &str, more: Value) -> Value {
    let base = json!({"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    json!({"metadata": {"name": app}, "spec": with(base, more)})
}

fn labelled(name: &str, app: &str, spec: Value) -> Value {
    with(pod(name, &[pause("main")], spec), json!({"metadata": {"labels": {"app": app}}}))
}

fn services() -> Check {
    const ITEMS: &[&str] = &[
        "DNS should provide DNS for the cluster",
        "DNS should provide DNS for services",
        "DNS should resolve DNS of partial qualified names for services",
    ];
    Check::new("dns-services", ITEMS, async |place: Place| {
        place.shared(&client(CLIENT, json!({}))).await;
        let made = place.create("services", &of("dns", json!({}))).await.ok();
        let (ip, namespace) = (text(&made["spec"]["clusterIP"]), &place.namespace);
        let mut headless = of("dns", json!({"clusterIP": "None"}));
        headless["metadata"]["name"] = json!("dns-headless");
        place.create("services", &headless).await.ok();
        let pod = place.ready(&labelled("dns-backend", "dns", json!({}))).await;
        let pod_ip = text(&pod["status"]["podIP"]);
        let whole = format!("dns.{namespace}.svc.cluster.local");
        for name in ["dns", &format!("dns.{namespace}"), &format!("dns.{namespace}.svc"), &whole] {
            prints(&place, &resolve(name), &[&format!("({ip})")]).await;
            prints(&place, &format!("RES_OPTIONS=use-vc {}", resolve(name)), &[&format!("({ip})")]).await;
        }
        for name in [&format!("dns-headless.{namespace}"), &format!("dns-headless.{namespace}.svc.cluster.local")] {
            prints(&place, &resolve(name), &[&format!("({pod_ip})")]).await;
        }
        prints(&place, &lookup("srv", &format!("_http._tcp.{whole}")), &[" 80 ", &whole]).await;
        prints(&place, &lookup("srv", &format!("_http._tcp.dns-headless.{namespace}.svc.cluster.local")), &[" 8080 "])
            .await;
        prints(&place, &format!("nslookup {ip}"), &[&format!("name = {whole}")]).await;
        let api = place.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
        let api = format!("({})", text(&api["spec"]["clusterIP"]));
        for options in ["", "RES_OPTIONS=use-vc "] {
            prints(&place, &format!("{options}{}", resolve("kubernetes.default")), &[&api]).await;
            prints(&place, &format!("{options}{}", resolve("kubernetes.default.svc.cluster.local")), &[&api]).await;
        }
    })
}

fn pods() -> Check {
    const ITEMS: &[&str] =
        &["DNS should provide DNS for pods for Hostname", "DNS should provide DNS for pods for Subdomain"];
    Check::new("dns-pods", ITEMS, async |place: Place| {
        place.shared(&client(CLIENT, json!({}))).await;
        place.create("services", &of("sub", json!({"clusterIP": "None"}))).await.ok();
        let pod = place.ready(&labelled("dns-named", "sub", json!({"hostname": "querier", "subdomain": "sub"}))).await;
        let ip = text(&pod["status"]["podIP"]);
        let domain = format!("sub.{}.svc.cluster.local", place.namespace);
        prints(&place, &lookup("a", &format!("querier.{domain}")), &[&format!("Address: {ip}")]).await;
        prints(&place, &lookup("a", &domain), &[&format!("Address: {ip}")]).await;
    })
}

fn external_names() -> Check {
    const ITEM: &str = "DNS should provide DNS for ExternalName services";
    Check::new("dns-external-names", &[ITEM], async |place: Place| {
        place.shared(&client(CLIENT, json!({}))).await;
        let spec = json!({"type": "ExternalName", "externalName": "foo.example.com"});
        place.create("services", &json!({"metadata": {"name": "external"}, "spec": spec})).await.ok();
        let name = format!("external.{}.svc.cluster.local", place.namespace);
        prints(&place, &lookup("cname", &name), &["canonical name = foo.example.com"]).await;
        let path = place.path("services/external");
        place.merge(&path, &json!({"spec": {"externalName": "bar.example.com"}})).await.ok();
        prints(&place, &lookup("cname", &name), &["canonical name = bar.example.com"]).await;
        let spec = json!({"type": "ClusterIP", "externalName": null, "ports": [{"port": 80, "name": "http", "protocol": "TCP"}]});
        let changed = place.merge(&path, &json!({"spec": spec})).await.ok();
        let ip = text(&changed["spec"]["clusterIP"]);
        prints(&place, &lookup("a", &name), &[&format!("Address: {ip}")]).await;
    })
}

fn own_resolver() -> Check {
    const ITEM: &str = "DNS should support configurable pod DNS nameservers";
    Check::new("dns-config", &[ITEM], async |place: Place| {
        let config = json!({"nameservers": ["1.1.1.1"], "searches": ["resolv.conf.local"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "debug"}]});
        place.ready(&pod("dns-config", &[idle("main")], json!({"dnsPolicy": "None", "dnsConfig": config}))).await;
        let file = place.exec("dns-config", "main", "cat /etc/resolv.conf").await;
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(lines, ["search resolv.conf.local", "nameserver 1.1.1.1", "options ndots:2 debug"], "{file}");
    })
}
