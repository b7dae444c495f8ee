//! Bodies that no honest client sends, to every decoder: cut short, with bytes changed, nested without end, too large.
//! Each is answered as a client's mistake (or taken, where the change did no harm), and the server goes on.

use api_machinery::object::{Object, from_value};
use api_types::apps_v1::Deployment;
use base::Rng;
use serde_json::json;

use super::harness::Api;

const DEPLOYMENTS: &str = "POST /apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAP: &str = "PATCH /api/v1/namespaces/default/configmaps/a";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What a refused body is answered with; 409 is the second object of a name.
const REFUSALS: &[u16] = &[400, 409, 413, 415, 422];
/// How many bodies are made of each honest one.
const MUTANTS: u64 = 150;

fn deployment() -> Deployment {
    let container = json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "ä\u{1F600}"}], "ports": [{"containerPort": 80}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    from_value(&json!({"metadata": {"name": "d", "annotations": {"k": "v"}}, "spec": spec})).unwrap()
}

/// One body with something wrong, drawn from the seed.
fn mutant(honest: &[u8], rng: &Rng) -> Vec<u8> {
    let at = |most: usize| usize::try_from(rng.below(u64::try_from(most).unwrap().max(1))).unwrap();
    let byte = || u8::try_from(rng.below(256)).unwrap();
    let mut body = honest.to_vec();
    match rng.below(4) {
        0 => body.truncate(at(body.len())),
        1 => {
            for _ in 0..=rng.below(4) {
                let place = at(body.len());
                body[place] = byte();
            }
        }
        2 => {
            let noise: Vec<u8> = (0..=rng.below(16)).map(|_| byte()).collect();
            let place = at(body.len());
            body.splice(place..place, noise);
        }
        _ => {
            let (from, to) = (at(body.len()), at(body.len()));
            let part = body[from.min(to)..from.max(to)].to_vec();
            let place = at(body.len());
            body.splice(place..place, part);
        }
    }
    body
}

#[tokio::test(start_paused = true)]
async fn changed_bodies_are_refused_or_taken() {
    let api = Api::start().await;
    let object: Box<dyn Object> = Box::new(deployment());
    let json = object.to_json();
    let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: &s\n    matchLabels: {a: b}\n  \
                template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - name: c\n        image: 'i'\n";
    let bodies = [
        ("application/json", json.into_bytes()),
        ("application/yaml", yaml.as_bytes().to_vec()),
        (PROTOBUF, object.to_protobuf()),
    ];
    let mut refused = 0;
    for (kind, honest) in bodies {
        let rng = Rng::seeded(11);
        let first = api.send(DEPLOYMENTS, &[("content-type", kind)], &honest).await;
        assert!(first.code == 201 || first.code == 409, "{kind}: {}", first.text);
        for number in 0..MUTANTS {
            let body = mutant(&honest, &rng);
            let answer = api.send(DEPLOYMENTS, &[("content-type", kind)], &body).await;
            let expected = answer.code == 201 || REFUSALS.contains(&answer.code);
            assert!(
                expected,
                "{kind} {number}: {} {} for {:?}",
                answer.code,
                answer.text,
                String::from_utf8_lossy(&body)
            );
            refused += u64::from(matches!(answer.code, 400 | 422));
        }
    }
    assert!(refused > MUTANTS, "only {refused} bodies were refused as malformed");
    assert_eq!(api.get("/api/v1/namespaces/default").await.code, 200);
}

/// One field of a message that holds bytes.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for mut value in [number << 3 | 2, u32::try_from(content.len()).unwrap()] {
        while value >= 0x80 {
            out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        out.push(u8::try_from(value).unwrap());
    }
    out.extend(content);
    out
}

#[tokio::test(start_paused = true)]
async fn bodies_that_grow_without_end_are_refused() {
    let api = Api::start().await;
    api.config_map("a").await;
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
    let aliases: String =
        (1..40).map(|level| format!("a{level}: &a{level} [*a{0},*a{0},*a{0},*a{0}]\n", level - 1)).collect();
    let copies: Vec<_> = (0..40).map(|_| json!({"op": "copy", "from": "/data", "path": "/data/a"})).collect();
    let many: Vec<_> = (0..20_000).map(|_| json!({"op": "test", "path": "/data/a", "value": "b"})).collect();
    // `not` within `not`, in the schema of a version of a definition.
    let schema = (0..3000).fold(Vec::new(), |inner, _| field(28, &inner));
    let definition = [7, 2].into_iter().fold(field(4, &field(1, &schema)), |inner, number| field(number, &inner));
    let meta = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat();
    let sealed = [b"k8s\0".to_vec(), field(1, &meta), field(2, &definition)].concat();
    let cases: Vec<(&str, &str, Vec<u8>)> = vec![
        (DEPLOYMENTS, "application/json", deep("{\"a\":", "}").into_bytes()),
        (DEPLOYMENTS, "application/json", deep("[", "]").into_bytes()),
        (DEPLOYMENTS, "application/yaml", deep("[", "]").into_bytes()),
        (DEPLOYMENTS, "application/yaml", format!("a0: &a0 [x,x,x,x]\n{aliases}").into_bytes()),
        (DEFINITIONS, PROTOBUF, sealed),
        (DEPLOYMENTS, "application/json", vec![b' '; 4 << 20]),
        (CONFIG_MAP, "application/merge-patch+json", deep("{\"a\":", "}").into_bytes()),
        (CONFIG_MAP, "application/strategic-merge-patch+json", deep("{\"a\":", "}").into_bytes()),
        (CONFIG_MAP, "application/apply-patch+yaml", deep("{a: ", "}").into_bytes()),
        (CONFIG_MAP, "application/json-patch+json", json!(copies).to_string().into_bytes()),
        (CONFIG_MAP, "application/json-patch+json", json!(many).to_string().into_bytes()),
    ];
    for (number, (line, kind, body)) in cases.into_iter().enumerate() {
        let answer = api.send(line, &[("content-type", kind)], &body).await;
        assert!(REFUSALS.contains(&answer.code), "{number} {kind}: {} {}", answer.code, answer.text);
        // The nesting is what is refused, and not what is in it.
        assert!(line != DEFINITIONS || answer.text.contains("depth"), "{}", answer.text);
    }
    assert_eq!(api.get("/api/v1/namespaces/default/configmaps/a").await.json()["data"], json!({"a": "b"}));
}
