//! Requests that the API server passes on to pods and Services.

use http::Method;
use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{ECHO_OTHER, echo, name_of, pause, pod, shell, template, with};

const NAME: &str = "proxied";

pub(crate) fn checks() -> Vec<Check> {
    vec![ports(), methods(), replicas()]
}

async fn fixture(place: &Place) -> Value {
    let named = with(echo("main", 8080), json!({"ports": [{"name": "web", "containerPort": 8080}]}));
    let ports =
        json!([{"name": "one", "port": 80, "targetPort": "web"}, {"name": "two", "port": 81, "targetPort": 8080}]);
    place
        .create("services", &json!({"metadata": {"name": NAME}, "spec": {"selector": {"pod": NAME}, "ports": ports}}))
        .await;
    let ready = place.shared(&pod(NAME, &[named], json!({}))).await;
    place.until(&place.path(&format!("endpoints/{NAME}")), |found| !found["subsets"][0]["addresses"].is_null()).await;
    ready
}

fn ports() -> Check {
    const ITEM: &str = "Proxy version v1 should proxy through a service and a pod";
    Check::new("proxied-ports", &[ITEM], async |place: Place| {
        let pod = fixture(&place).await;
        let forms = [
            "services/proxied:one",
            "services/proxied:two",
            "services/http:proxied:one",
            "services/http:proxied:two",
            "services/proxied:80",
            "services/http:proxied:81",
            "pods/proxied",
            "pods/proxied:8080",
            "pods/http:proxied:8080",
        ];
        for form in forms {
            let answer = place.get(&place.path(&format!("{form}/proxy/some/path?a=b"))).await;
            assert!(answer.code == 200 && answer.text.contains("real path=/some/path?a=b"), "{form}: {answer:?}");
        }
        // A pod of the host's network has the kubelet at its address, which speaks TLS and knows nobody without a
        // certificate.
        let spec = json!({"hostNetwork": true, "nodeSelector": {"kubernetes.io/hostname": pod["spec"]["nodeName"]}});
        place.ready(&super::object::pod("tls", &[pause("main")], spec)).await;
        let ports = json!({"selector": {"pod": "tls"}, "ports": [{"name": "tls", "port": 443, "targetPort": 10250}]});
        place.create("services", &json!({"metadata": {"name": "tls"}, "spec": ports})).await.ok();
        for form in ["pods/https:tls:10250", "services/https:tls:tls", "services/https:tls:443"] {
            let path = place.path(&format!("{form}/proxy/metrics"));
            let answers = async || match place.get(&path).await {
                answer if answer.code == 401 => Ok(()),
                answer => Err(format!("{form}: {answer:?}")),
            };
            place.eventually(answers).await;
        }
        links(&place).await;
    })
}

/// Links of a page lead through the proxy as well.
async fn links(place: &Place) {
    let script = "echo \"<a href=\\\"/rewriteme\\\">test</a>\" > /www/index.html; exec httpd -f -p 8080 -h /www";
    let ports = json!({"ports": [{"containerPort": 8080}]});
    place.ready(&pod("page", &[with(shell("main", script), ports)], json!({}))).await;
    for form in ["pods/page", "pods/page:8080", "pods/http:page:8080"] {
        let path = place.path(&format!("{form}/proxy"));
        let wanted = format!("<a href=\"{path}/rewriteme\">test</a>");
        let answers = async || match place.get(&format!("{path}/")).await {
            answer if answer.code == 200 && answer.text.trim() == wanted => Ok(()),
            answer => Err(format!("{form}: {answer:?} instead of {wanted}")),
        };
        place.eventually(answers).await;
    }
}

fn methods() -> Check {
    const ITEMS: &[&str] = &[
        "Proxy version v1 A set of valid responses are returned for both pod and service Proxy",
        "Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath",
    ];
    Check::new("proxied-methods", ITEMS, async |place: Place| {
        fixture(&place).await;
        for target in ["pods/proxied", "services/proxied:one"] {
            for method in
                [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::HEAD]
            {
                for path in
                    [format!("{target}/proxy/?method={method}"), format!("{target}/proxy/some/path?method={method}")]
                {
                    let request = client::Request::new(method.clone(), place.path(&path));
                    let answer = place.send(request).await;
                    let seen = method == Method::HEAD || answer.text.contains(&format!("command={method}\n"));
                    assert!(answer.code == 200 && seen, "{method} {path}: {answer:?}");
                }
            }
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
                let path = format!("{target}/proxy?method={method}");
                let answer = place.send(client::Request::new(method.clone(), place.path(&path))).await;
                let seen = answer.text.contains(&format!("command={method}\n"));
                assert!(answer.code == 200 && seen, "{method} {path}: {answer:?}");
            }
            for method in [Method::GET, Method::HEAD] {
                let path = format!("{target}/proxy?method={method}");
                let answer = place.send(client::Request::new(method.clone(), place.path(&path))).await;
                assert_eq!(answer.code, 301, "{method} {path}: {answer:?}");
            }
        }
    })
}

fn replicas() -> Check {
    const ITEMS: &[&str] = &[
        "ReplicaSet should serve a basic image on each replica with a public image",
        "ReplicationController should serve a basic image on each replica with a public image",
    ];
    Check::new("serving-replicas", ITEMS, async |place: Place| {
        for (resource, kind) in [("replicasets", "set"), ("replicationcontrollers", "controller")] {
            let labels = json!({"serves": kind});
            let selector = if kind == "set" { json!({"matchLabels": labels}) } else { labels.clone() };
            let container = with(echo("main", 9376), json!({"image": ECHO_OTHER}));
            let spec = json!({"replicas": 2, "selector": selector, "template": template(&labels, &[container])});
            place.create(resource, &json!({"metadata": {"name": kind}, "spec": spec})).await.ok();
            place
                .until(&place.path(&format!("{resource}/{kind}")), |found| found["status"]["readyReplicas"] == 2)
                .await;
            for pod in place.items(&place.path(&format!("pods?labelSelector=serves%3D{kind}"))).await {
                let name = name_of(&pod);
                let answer = place.get(&place.path(&format!("pods/{name}/proxy/hostname"))).await;
                assert_eq!((answer.code, answer.text.as_str()), (200, name), "{kind}");
            }
        }
    })
}
