//! What clients see of a server that ends.

use std::sync::Arc;
use std::time::Duration;

use super::harness::Api;
use crate::server::shut_down;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn who_comes_late_is_told_to_come_again() {
    let api = Api::with(|config| {
        config.shutdown.send_retry_after = true;
        config.shutdown.delay = Duration::from_secs(5);
        config.shutdown.watch_grace = Duration::from_secs(10);
    })
    .await;
    api.wait_until_ready().await;
    let held = Arc::new(tokio::sync::Notify::new());
    let hook = Arc::clone(&held);
    api.server.cx().before_shutdown(move |_| {
        let held = Arc::clone(&hook);
        async move { held.notified().await }
    });
    let watch = api.open(&format!("GET {MAPS}?watch=1"), &[], "").await;
    let clients = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(
            (api.get(MAPS).await.code, api.get("/readyz").await.code),
            (200, 500),
            "the delay is over, the hooks are not"
        );
        held.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let late = api.get(MAPS).await;
        assert_eq!((late.code, late.text.as_str()), (429, "The apiserver is shutting down, please try again later."));
        assert_eq!(
            (&late.headers["retry-after"], &late.headers["connection"]),
            (&"5".parse().unwrap(), &"close".parse().unwrap())
        );
        assert_eq!(api.get("/livez").await.code, 200, "probes go on");
        let other = [("user-agent", "kube-apiserver/v1.36.3")];
        assert_eq!(api.send(&format!("GET {MAPS}"), &other, "").await.code, 200, "and other API servers");
        assert_eq!(api.send(&format!("GET {MAPS}?watch=1"), &other, "").await.code, 503, "but for new watches");
    };
    let begun = tokio::time::Instant::now();
    tokio::join!(shut_down(api.server.cx(), None), clients);
    assert_eq!(begun.elapsed().as_secs(), 16, "a watch that nobody reads has its time");
    drop(watch);
}

/// Who starts servers again and again, as the simulation does, would run out of memory.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_server_outlives_it() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    let tasks = api.server.cx().tasks().clone();
    let left = Arc::downgrade(api.server.cx());
    shut_down(api.server.cx(), None).await;
    drop(api);
    tasks.shutdown(Duration::from_secs(30)).await;
    assert_eq!(left.strong_count(), 0, "something keeps the server's context");
}
