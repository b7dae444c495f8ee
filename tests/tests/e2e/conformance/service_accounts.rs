//! Tokens that pods get, and what they are good for.

use serde_json::{Value, json};
use sys::exec::{Command, Exec as _};

use super::check::Check;
use super::live::Place;
use super::object::{idle, pod, shell, text, with};

const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(crate) fn checks() -> Vec<Check> {
    vec![mounted(), projected(), discovery()]
}

/// Who a token stands for.
async fn reviewed(place: &Place, token: &str, audiences: Value) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences}});
    place.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.ok()["status"].take()
}

fn mounted() -> Check {
    const ITEM: &str = "ServiceAccounts should mount an API token into pods";
    Check::new("mounted-token", &[ITEM], async |place: Place| {
        let spec = json!({"automountServiceAccountToken": true});
        let pod = place.ready(&pod("mounted", &[idle("main")], spec)).await;
        let read = async |file: &str| place.exec("mounted", "main", &format!("cat {MOUNT}/{file}")).await;
        let status = reviewed(&place, &read("token").await, Value::Null).await;
        assert_eq!(status["authenticated"], true, "{status}");
        assert_eq!(status["user"]["username"], format!("system:serviceaccount:{}:default", place.namespace));
        assert_eq!(status["user"]["extra"]["authentication.kubernetes.io/pod-uid"][0], pod["metadata"]["uid"]);
        assert_eq!(read("namespace").await, place.namespace);
        let root = place.get(&place.path("configmaps/kube-root-ca.crt")).await.ok();
        assert_eq!(read("ca.crt").await, text(&root["data"]["ca.crt"]).trim());
    })
}

fn projected() -> Check {
    const ITEM: &str = "ServiceAccounts should mount projected service account token";
    Check::new("projected-token", &[ITEM], async |place: Place| {
        let source = json!({"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 7200}});
        let mount = json!({"volumeMounts": [{"name": "token", "mountPath": "/v"}]});
        let volumes = |mode: Value| json!({"volumes": [{"name": "token", "projected": with(json!({"sources": [source]}), mode)}]});
        let spec = with(volumes(json!({"defaultMode": 0o400})), json!({"securityContext": {"runAsUser": 1000}}));
        let spec = with(spec, json!({"restartPolicy": "Never"}));
        let script = "stat -Lc \"%a %u\" /v/token; cat /v/token";
        let (_, log) = place.result(&pod("projected", &[with(shell("main", script), mount)], spec), "main").await;
        let (mode, token) = log.split_once('\n').unwrap_or_default();
        // Whoever runs the containers owns the token.
        assert_eq!(mode, "600 1000", "{log}");
        let status = reviewed(&place, token, json!(["vault"])).await;
        assert_eq!(status["audiences"], json!(["vault"]), "{status}");
        assert_ne!(reviewed(&place, token, json!(["other"])).await["authenticated"], true);
        let claims = claims(token, 1);
        let (issued, expires) = (claims["iat"].as_i64().unwrap_or(0), claims["exp"].as_i64().unwrap_or(0));
        assert!((7200 - 60..=7200 + 60).contains(&(expires - issued)), "{claims}");
    })
}

/// A part of a token: 0 is the header, 1 what it claims.
fn claims(token: &str, part: usize) -> Value {
    let text = token.trim().split('.').nth(part).unwrap_or_default();
    let bytes = from_base64url(text);
    serde_json::from_slice(&bytes).expect("a token is JSON inside")
}

fn from_base64url(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.chars().filter_map(|c| DIGITS.find(c)) {
        bits = bits << 6 | u32::try_from(digit).unwrap_or(0);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from(bits >> count & 0xff));
        }
    }
    bytes
}

fn discovery() -> Check {
    const ITEM: &str =
        "ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery of service account issuer";
    Check::new("issuer-discovery", &[ITEM], async |place: Place| {
        place.ready(&pod("discovery", &[idle("main")], json!({"automountServiceAccountToken": true}))).await;
        let token = place.exec("discovery", "main", &format!("cat {MOUNT}/token")).await;
        // As the pod would ask; its busybox has none of the ciphers that servers still take.
        let (server, bearer) = (&place.client.config().server, format!("Authorization: Bearer {token}"));
        let get = async |path: &str| -> Value {
            let url = format!("{server}{path}");
            let command = Command::with("curl", &["-ksSf", "--max-time", "10", "-H", &bearer, &url]);
            let output = place.cluster.exec.run(&command).await.expect("curl starts");
            assert!(output.success(), "{path}: {}", output.error_text());
            serde_json::from_str(&output.text()).expect("the server answers in JSON")
        };
        let configuration = get("/.well-known/openid-configuration").await;
        assert_eq!(configuration["issuer"], claims(&token, 1)["iss"], "{configuration}");
        assert!(text(&configuration["jwks_uri"]).ends_with("/openid/v1/jwks"), "{configuration}");
        // The pod can reach where the keys are.
        let uri: http::Uri = text(&configuration["jwks_uri"]).parse().expect("the keys have a place");
        let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
        place.exec("discovery", "main", &format!("nc -w 5 {host} {port} < /dev/null")).await;
        let keys = get("/openid/v1/jwks").await;
        let ids: Vec<&Value> = keys["keys"].as_array().into_iter().flatten().map(|key| &key["kid"]).collect();
        assert!(ids.contains(&&claims(&token, 0)["kid"]), "{keys}");
    })
}
