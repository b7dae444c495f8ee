//! How a scheduler ends: who leads next meets nothing of it.

use base::{CancellationToken, Rng};
use bytes::Bytes;
use client::fake::FakeServer;
use client::{Body, Transport, TransportError};
use component_base::flags::parse;

use super::tests::{NODES, PODS, pod_in, put};
use super::*;
use crate::test_objects::{node, pod};

/// Settings as flags alone make them.
fn settings() -> Settings {
    let options = parse(flags::FLAGS, ["--master=https://server:6443".to_owned()]).unwrap();
    let configuration = settings::configuration(&options, &Gates::default()).unwrap();
    Settings::new(configuration, &options, &Rng::seeded(1), &Gates::default()).unwrap()
}

#[test]
fn the_lease_is_given_back_at_a_stop() {
    assert!(settings().process.leader.unwrap().release_on_stop);
}

/// Bindings are on their way for some time before the server sees them.
struct SlowBindings {
    inner: Arc<dyn Transport>,
    takes: Duration,
}

#[async_trait::async_trait]
impl Transport for SlowBindings {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.uri().path().ends_with("/binding") {
            tokio::time::sleep(self.takes).await;
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_on_when_the_lead_has_ended() {
    // How long a binding takes that begins a second before the stop, after how many seconds the lead ends then, and whether
    // the pod has been bound by then.
    let cases = [(3, 2, true), (20, 3, false)];
    for (takes, ends, is_bound) in cases {
        let server = FakeServer::new();
        put(&server, NODES, &*node("a").build());
        let slow = SlowBindings { inner: server.transport(), takes: Duration::from_secs(takes) };
        let client = server.client_over(Arc::new(slow));
        let watches = Arc::new(Watches::new(&client));
        let (stop, metrics) = (CancellationToken::new(), Metrics::of_process(MetricsOptions::default()));
        let leading = Leading { client: client.clone(), metrics, stop: stop.clone() };
        put(&server, PODS, &*pod("p").request("cpu", "3").build());
        let lead = lead(settings(), Gates::default(), client.clone(), watches, leading);
        let asked = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
            tokio::time::Instant::now()
        };
        let (outcome, asked) = tokio::join!(lead, asked);
        outcome.unwrap();
        let bound = || pod_in(&server, "p")["spec"]["nodeName"] == "a";
        assert_eq!((asked.elapsed().as_secs_f64().round(), bound()), (f64::from(ends), is_bound), "{takes}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(bound(), is_bound, "{takes}: nothing of it comes later");
    }
}
