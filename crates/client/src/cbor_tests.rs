//! Free-form access over a server that speaks CBOR, by the gates of clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_machinery::cbor;
use api_machinery::json::{encode_value, parse_value};
use api_machinery::meta::ListOptions;
use api_machinery::object::{Object, Unstructured};
use api_types::core_v1::ConfigMap;
use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use component_base::serving::full;
use component_base::{Feature, Gates};
use http::{HeaderValue, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;

use super::*;
use crate::fake::FakeServer;

const ALLOW: Feature = Feature::named("ClientsAllowCBOR");
const PREFER: Feature = Feature::named("ClientsPreferCBOR");
const MAPS: &str = "v1/configmaps";

/// Speaks CBOR for a server that does not, with whoever asks for it; notes which forms were asked for and sent.
struct Translator {
    inner: Arc<dyn Transport>,
    seen: Mutex<Vec<String>>,
    /// Nothing that is sent as CBOR is taken.
    refuses: AtomicBool,
}

fn subtype(value: Option<&HeaderValue>) -> String {
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.rsplit_once("application/").map_or(text, |(_, subtype)| subtype).to_owned()
}

/// The lines of a JSON watch as the items of a CBOR one.
fn as_items(body: Body) -> Body {
    let items = body.into_data_stream();
    let items = futures_util::StreamExt::map(items, |line| {
        let value = parse_value(&String::from_utf8_lossy(&line?))?;
        Ok(Frame::data(Bytes::from(cbor::encode_value(&value))))
    });
    StreamBody::new(items).boxed_unsync()
}

#[async_trait::async_trait]
impl Transport for Translator {
    async fn send(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let (accept, content) =
            [header::ACCEPT, header::CONTENT_TYPE].map(|name| subtype(request.headers().get(name))).into();
        self.seen.lock().push(format!("{} {accept} {content}", request.method()));
        if content.contains("cbor") {
            if self.refuses.load(Ordering::Relaxed) {
                let mut refusal = http::Response::new(full("no"));
                *refusal.status_mut() = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
                return Ok(refusal);
            }
            let text = cbor::to_json(request.body()).expect("a body of CBOR");
            *request.body_mut() = Bytes::from(text);
        }
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.inner.send(request).await?;
        if !accept.contains("cbor") {
            return Ok(answer);
        }
        let (mut parts, body) = answer.into_parts();
        let media_type = if watches { "application/cbor-seq" } else { "application/cbor" };
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        if watches {
            return Ok(http::Response::from_parts(parts, as_items(body)));
        }
        let text = body.collect().await.expect("a whole body").to_bytes();
        let value = parse_value(&String::from_utf8_lossy(&text)).expect("JSON");
        Ok(http::Response::from_parts(parts, full(cbor::encode_value(&value))))
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

fn start(allow: bool, prefer: bool) -> (FakeServer, Arc<Translator>, Client) {
    let server = FakeServer::new();
    let (seen, refuses) = (Mutex::default(), AtomicBool::new(false));
    let translator = Arc::new(Translator { inner: server.transport(), seen, refuses });
    let gates = Gates::default().with(ALLOW, allow).with(PREFER, prefer);
    let cx = ClientCx::new(TokioClock::shared(), Rng::seeded(1), TaskGroup::new("test")).obeying(&gates);
    let mut config = ClientConfig::for_server("https://fake").with_rate(-1.0, 1);
    config.content = ContentType::Json;
    let client = Client::with_transport(Arc::<Translator>::clone(&translator), config, cx).unwrap();
    (server, translator, client)
}

fn map(name: &str) -> Unstructured {
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"ns"}},"data":{{"k":"v"}}}}"#
    );
    Unstructured::from_value(&parse_value(&text).unwrap()).unwrap()
}

fn value(object: &dyn Object) -> api_machinery::value::Value {
    object.to_value()
}

impl Translator {
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn free_form_objects_go_as_cbor_where_the_process_has_it() {
    for (allow, prefer, accept, content) in [
        (false, false, "json", "json"),
        (false, true, "json", "json"),
        (true, false, "cbor;q=1", "json"),
        (true, true, "cbor;q=1", "cbor"),
    ] {
        let (server, translator, client) = start(allow, prefer);
        let maps = client.dynamic(&ResourceInfo::of::<ConfigMap>(), "ns");
        let made = maps.create(&map("a")).await.unwrap();
        assert_eq!(encode_value(&value(&made)["data"]), r#"{"k":"v"}"#);
        let mut watch =
            maps.watch(&ListOptions { resource_version: "0".into(), ..ListOptions::default() }).await.unwrap();
        server.put(MAPS, value(&map("b")));
        for name in ["a", "b"] {
            let Some(Ok(WatchEvent::Added(object))) = watch.next().await else { panic!("{name} is told of") };
            assert_eq!(object.metadata.name, name);
        }
        assert_eq!(maps.list(&ListOptions::default()).await.unwrap().items.len(), 2);
        assert!(maps.get("c").await.unwrap_err().is_not_found());
        maps.delete("a", &Default::default()).await.unwrap();
        client.namespaced::<ConfigMap>("ns").get("b").await.unwrap();
        let expected = [
            format!("POST {accept} {content}"),
            format!("GET {accept} "),
            format!("GET {accept} "),
            format!("GET {accept} "),
            format!("DELETE {accept} json"),
            "GET json ".to_owned(),
        ];
        assert_eq!(translator.seen(), expected, "allow {allow}, prefer {prefer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_cbor_is_sent_none_any_more() {
    let (_, translator, client) = start(true, true);
    translator.refuses.store(true, Ordering::Relaxed);
    let maps = client.dynamic(&ResourceInfo::of::<ConfigMap>(), "ns");
    assert_eq!(maps.create(&map("a")).await.unwrap_err().api().map(|error| error.code), Some(415));
    maps.create(&map("a")).await.unwrap();
    assert_eq!(translator.seen(), ["POST cbor;q=1 cbor", "POST cbor;q=1 json"]);
}

#[test]
fn what_is_applied_is_cbor_where_that_is_sent() {
    let patch = Patch::Apply(value(&map("a")));
    let (media_type, body) = patch.encode(true);
    assert_eq!(media_type, "application/apply-patch+cbor");
    assert_eq!(cbor::parse_value(&body).unwrap(), value(&map("a")));
    assert_eq!(patch.encode(false).0, "application/apply-patch+yaml");
    assert_eq!(Patch::Merge(value(&map("a"))).encode(true).0, "application/merge-patch+json");
}
