//! exec and logs over WebSockets that nobody wrapped: the bytes that clients see.

use serde_json::json;

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, pod, shell};
use super::socket::{channel, talk};

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "Pods should support remote command execution over websockets",
        "Pods should support retrieving logs from the container over websockets",
    ];
    vec![Check::new("websockets", ITEMS, async |place: Place| {
        let script = format!("echo container is alive; {IDLE}");
        place.ready(&pod("socket", &[shell("main", &script)], json!({}))).await;
        place.log_until("socket", "main", |log| !log.is_empty()).await;
        exec(&place).await;
        log(&place).await;
    })]
}

async fn exec(place: &Place) {
    let path = "pods/socket/exec?command=echo&command=remote+execution+test&stdout=1&stderr=1&container=main";
    let path = place.path(path);
    let messages = talk(place.client.config(), &path, "channel.k8s.io").await.expect("the server upgrades");
    assert_eq!([1, 2].map(|number| channel(&messages, number)), ["remote execution test\n", ""], "{messages:?}");
    // This protocol has no word for success.
    assert!(messages.iter().all(|message| message.len() == 1 || message.first() == Some(&1)), "{messages:?}");
    let messages = talk(place.client.config(), &path, "v4.channel.k8s.io").await.expect("the server upgrades");
    assert!(channel(&messages, 3).contains("\"status\":\"Success\""), "{messages:?}");
}

async fn log(place: &Place) {
    let path = place.path("pods/socket/log?container=main");
    let messages = talk(place.client.config(), &path, "binary.k8s.io").await.expect("the server upgrades");
    assert_eq!(String::from_utf8_lossy(&messages.concat()), "container is alive\n");
}
