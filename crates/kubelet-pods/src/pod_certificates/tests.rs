//! How credentials of pods come, are renewed, and are told of.

use api_types::core_v1::Node;
use base::Rng;
use client::fake::FakeServer;
use serde_json::{Value, json};

use super::*;
use crate::events::RecordedEvents;
use crate::node::FixedNode;

const REQUESTS: &str = "certificates.k8s.io/v1beta1/podcertificaterequests";
const HOUR: Duration = Duration::from_secs(3600);

struct Bench {
    server: FakeServer,
    events: Arc<RecordedEvents>,
    certificates: PodCertificates,
    pod: Pod,
    wanted: PodCertificateProjection,
}

impl Bench {
    fn new() -> Self {
        let server = FakeServer::new();
        server.put("v1/serviceaccounts", json!({"metadata": {"name": "robot", "namespace": "ns", "uid": "robot-uid"}}));
        let mut node = Node::default();
        (node.metadata.name, node.metadata.uid) = ("n".into(), "n-uid".into());
        let node = Arc::new(FixedNode { node: Some(Arc::new(node)) });
        let events = Arc::new(RecordedEvents::default());
        let certificates = PodCertificates::new(server.client(), node, events.clone(), Rng::seeded(1));
        let mut pod = Pod::default();
        (pod.metadata.name, pod.metadata.namespace, pod.metadata.uid) = ("p".into(), "ns".into(), "p-uid".into());
        pod.spec.service_account_name = "robot".into();
        let wanted = PodCertificateProjection {
            signer_name: "example.com/signer".into(),
            key_type: "ED25519".into(),
            max_expiration_seconds: Some(86_400),
            user_annotations: [("example.com/a".to_owned(), "b".to_owned())].into(),
            ..PodCertificateProjection::default()
        };
        Self { server, events, certificates, pod, wanted }
    }

    async fn credential(&self) -> Result<Credential, String> {
        let place = ("p-uid".to_owned(), "v".to_owned(), 0);
        self.certificates.credential(&self.pod, place, &self.wanted).await.map_err(|error| error.to_string())
    }

    fn requests(&self) -> Vec<Value> {
        self.server.objects(REQUESTS)
    }

    /// The newest request is decided so.
    fn decide(&self, status: Value) {
        let mut request = self.requests().pop().expect("a request");
        request["status"] = status;
        self.server.put(REQUESTS, request);
    }

    /// Issued now, for a day.
    fn issue(&self, chain: &str) {
        let now = Time::from(self.certificates.client.clock().wall());
        self.decide(json!({
            "conditions": [{"type": "Issued", "status": "True", "reason": "R"}], "certificateChain": chain,
            "beginRefreshAt": (now + HOUR * 20).to_string(), "notAfter": (now + HOUR * 24).to_string(),
        }));
    }

    fn states(&self) -> String {
        let states = self.certificates.states();
        states.into_iter().map(|((signer, state), count)| format!("{signer} {state} {count}")).collect()
    }

    fn told(&self) -> Vec<String> {
        self.events.taken().into_iter().map(|event| format!("{}: {}", event.reason, event.message)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_asked_for_and_renewed() {
    let bench = Bench::new();
    assert_eq!(bench.credential().await, Err("credential bundle is not issued yet".into()));
    assert_eq!(bench.credential().await, Err("credential bundle is not issued yet".into()));
    let request: PodCertificateRequest = api_machinery::object::from_value(&bench.requests()[0]).unwrap();
    let (spec, owner) = (&request.spec, &request.metadata.owner_references[0]);
    assert_eq!((spec.pod_name.as_str(), spec.pod_uid.as_str(), owner.uid.as_str()), ("p", "p-uid", "p-uid"));
    assert_eq!((spec.service_account_name.as_str(), spec.service_account_uid.as_str()), ("robot", "robot-uid"));
    assert_eq!((spec.node_name.as_str(), spec.node_uid.as_str()), ("n", "n-uid"));
    assert_eq!(spec.unverified_user_annotations, bench.wanted.user_annotations);
    let stub = CertificateRequest::from_der(&spec.stub_pkcs10_request.0).unwrap();
    stub.verify().unwrap();

    bench.issue("first");
    let first = bench.credential().await.unwrap();
    let key = PrivateKey::from_pem(first.key.as_bytes()).unwrap();
    assert_eq!((first.chain.as_str(), key.public_key().spki()), ("first", stub.public_key().spki()));
    tokio::time::sleep(HOUR * 19).await;
    assert_eq!(bench.credential().await, Ok(first.clone()));
    assert_eq!(bench.requests().len(), 1, "nothing is asked for before its time");

    tokio::time::sleep(HOUR + JITTER).await;
    assert_eq!(bench.credential().await, Ok(first.clone()), "the old one is good meanwhile");
    assert_eq!(bench.requests().len(), 2);
    bench.issue("second");
    let second = bench.credential().await.unwrap();
    assert_eq!(second.chain, "second");
    assert_ne!(second.key, first.key, "each has a key of its own");
    assert_eq!(bench.told(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_signer_refuses_is_final() {
    let bench = Bench::new();
    bench.credential().await.unwrap_err();
    bench.decide(json!({"conditions": [{"type": "Denied", "status": "True", "reason": "No", "message": "never"}]}));
    let text = "PodCertificateRequest was permanently denied: reason=\"No\" message=\"never\"";
    for _ in 0..2 {
        assert_eq!(bench.credential().await, Err(text.into()));
    }
    assert_eq!((bench.told(), bench.requests().len()), (vec![format!("Denied: {text}")], 1));
    assert_eq!(bench.states(), "example.com/signer denied 1");
    bench.certificates.forget("p-uid");
    assert_eq!(bench.states(), "");
    assert_eq!(bench.credential().await, Err("credential bundle is not issued yet".into()), "a pod of its own");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_gone_is_made_anew_and_a_late_renewal_told() {
    let bench = Bench::new();
    bench.credential().await.unwrap_err();
    let name = bench.requests()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    bench.server.remove(REQUESTS, "ns", &name);
    bench.credential().await.unwrap_err();
    assert_eq!(bench.requests().len(), 0);
    tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
    // As the Node authorizer answers of what is not there.
    bench.server.fail_next("GET", &[403]);
    bench.credential().await.unwrap_err();
    assert_eq!(bench.requests().len(), 1);

    bench.issue("first");
    bench.credential().await.unwrap();
    for (hours, expected, state) in [
        (20, "", "fresh"),
        (1, "CertificateOverdueForRefresh: PodCertificate refresh overdue", "overdue_for_refresh"),
        (1, "", "overdue_for_refresh"),
        (3, "CertificateExpired: PodCertificate expired", "expired"),
    ] {
        tokio::time::sleep(HOUR * hours).await;
        assert_eq!(bench.states(), format!("example.com/signer {state} 1"), "by the time of the question");
        bench.credential().await.unwrap();
        assert_eq!(bench.told().join(", "), expected);
    }
}

#[tokio::test]
async fn every_kind_of_key_can_be_had() {
    for (name, _) in KEYS {
        let (key, stub) = new_key(name).await.unwrap();
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"), "{name}");
        CertificateRequest::from_der(&stub).unwrap().verify().unwrap();
    }
    assert_eq!(new_key("RSA1024").await.unwrap_err().to_string(), "unknown key type: \"RSA1024\"");
}
