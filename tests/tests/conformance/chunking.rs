//! Lists in pieces.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Cx, conform, conform_compacted, name_of, text, version_of};

const OBJECTS: usize = 60;
const PAGE: usize = 13;

async fn pod_templates(cx: &Cx, ns: &str) -> String {
    let collection = format!("/api/v1/namespaces/{ns}/podtemplates");
    for index in 0..OBJECTS {
        let template = json!({"metadata": {"name": format!("template-{index:04}")}, "template": {
            "spec": {"containers": [{"name": "test", "image": "test2"}]}}});
        cx.create(&collection, &template).await.ok();
    }
    collection
}

#[test]
fn the_server_returns_chunks_of_results() {
    conform(async |cx| {
        let ns = cx.namespace("chunking").await;
        let collection = pod_templates(cx, &ns).await;
        for page in [1, PAGE, OBJECTS - 1, OBJECTS, OBJECTS + 5] {
            let (mut next, mut seen, mut version) = (String::new(), 0, String::new());
            loop {
                let list = cx.get(&format!("{collection}?limit={page}&continue={next}")).await.ok();
                let items = list["items"].as_array().expect("items");
                assert!(items.len() <= page);
                for item in items {
                    assert_eq!(name_of(item), format!("template-{seen:04}"));
                    seen += 1;
                }
                if version.is_empty() {
                    version = version_of(&list).to_owned();
                }
                assert_eq!(version_of(&list), version, "all chunks are of one version");
                next = text(&list["metadata"]["continue"]).to_owned();
                let left = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
                assert_eq!(usize::try_from(left).expect("a count"), OBJECTS - seen);
                if next.is_empty() {
                    break;
                }
            }
            assert_eq!(seen, OBJECTS);
        }
        assert_eq!(cx.items(&collection).await.len(), OBJECTS);
    });
}

#[test]
fn the_list_goes_on_although_its_version_was_compacted() {
    conform_compacted(async |cx| {
        let ns = cx.namespace("chunking").await;
        let collection = pod_templates(cx, &ns).await;
        let first = cx.get(&format!("{collection}?limit={PAGE}")).await.ok();
        let token = text(&first["metadata"]["continue"]).to_owned();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20 * 60);
        let refused = loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            // Something must happen for there to be something to compact.
            cx.merge(
                &format!("{collection}/template-0000"),
                &json!({"metadata": {"annotations": {"x":
                format!("{:?}", tokio::time::Instant::now())}}}),
            )
            .await
            .ok();
            let answer = cx.get(&format!("{collection}?limit={PAGE}&continue={token}")).await;
            if answer.code != 200 {
                break answer;
            }
            assert!(tokio::time::Instant::now() < deadline, "the version is never compacted");
        };
        assert_eq!(refused.code, 410, "{}", refused.body);
        assert_eq!(refused.body["reason"], "Expired");
        let mut next = text(&refused.body["metadata"]["continue"]).to_owned();
        assert!(!next.is_empty(), "{}", refused.body);
        let mut seen = PAGE;
        loop {
            let list = cx.get(&format!("{collection}?limit={PAGE}&continue={next}")).await.ok();
            assert_ne!(version_of(&list), version_of(&first));
            for item in list["items"].as_array().expect("items") {
                assert_eq!(name_of(item), format!("template-{seen:04}"));
                seen += 1;
            }
            next = text(&list["metadata"]["continue"]).to_owned();
            if next.is_empty() {
                break;
            }
        }
        assert_eq!(seen, OBJECTS);
    });
}
