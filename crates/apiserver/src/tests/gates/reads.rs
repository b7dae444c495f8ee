//! Lists and watches.

use component_base::Gates;

use crate::tests::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The sum of a family's samples with a label.
async fn sum(api: &Api, family: &str, label: &str) -> u64 {
    let text = api.get("/metrics").await.text;
    let samples = text.lines().filter(|line| line.starts_with(family) && line.contains(label));
    samples.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Where the second page of a list comes from.
pub(super) async fn second_page(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    for name in ["a", "b"] {
        api.config_map(name).await;
    }
    let first = api.get(&format!("{MAPS}?limit=1")).await.json();
    let token = first["metadata"]["continue"].as_str().expect("there is more").to_owned();
    let of_maps = r#"resource="configmaps""#;
    let lists = async |kind: &str| sum(&api, &format!("apiserver_{kind}_list_total{{"), of_maps).await;
    let before = [lists("cache").await, lists("storage").await];
    let second = api.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!(second.json()["items"].as_array().map(Vec::len), Some(1), "{}", second.text);
    let after = [lists("cache").await, lists("storage").await];
    match [after[0] - before[0], after[1] - before[1]] {
        [1, 0] => "from the cache".to_owned(),
        [0, 1] => "from the store".to_owned(),
        other => format!("{other:?}"),
    }
}

/// How many seats a list takes of few that weigh much; who may not see them takes them all the same, and nobody else is
/// of his level.
pub(super) async fn seats(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    for name in ["a", "b", "c"] {
        let map = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"text":"{}"}}}}"#, "x".repeat(150_000));
        assert_eq!(api.post(MAPS, &map).await.code, 201);
    }
    // A read waits until the cache is as new as the store.
    api.get(MAPS).await;
    let level = r#"priority_level="global-default""#;
    let taken = async || sum(&api, "apiserver_flowcontrol_work_estimated_seats_sum{", level).await;
    let before = taken().await;
    assert_eq!(api.send(&format!("GET {MAPS}"), &[("authorization", "Bearer alice")], "").await.code, 403);
    // Their weight is what the cache keeps of them, at least what was sent.
    if taken().await - before >= 5 { "as they weigh".to_owned() } else { "as they are few".to_owned() }
}

/// How a watch is answered that is to tell of what there is first, and when that is all.
pub(super) async fn watch_list(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    api.get(&format!("{MAPS}?{query}")).await.code.to_string()
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_together_is_of_the_shards() {
    let (first, second) = (("0000000000000000", "8000000000000000"), ("8000000000000000", "10000000000000000"));
    let query = |(low, high): (&str, &str)| {
        format!("shardSelector=shardRange%28object.metadata.uid%2C%270x{low}%27%2C%270x{high}%27%29")
    };
    for on in [true, false] {
        let gates = Gates::default().with(crate::gates::SHARDS, on);
        let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
        for number in 0..16 {
            api.config_map(&format!("map-{number}")).await;
        }
        let count = async |query: &str| {
            let list = api.get(&format!("{MAPS}?{query}")).await.json();
            list["items"].as_array().map_or(0, Vec::len)
        };
        let (all, rest) = (count("").await, count(&query(second)).await);
        let deleted = api.delete(&format!("{MAPS}?{}", query(first))).await;
        assert_eq!(deleted.code, 200, "{}", deleted.text);
        let expected = if on { rest } else { 0 };
        assert_eq!(count("").await, expected, "{on}");
        assert!(!on || (0 < rest && rest < all), "some of {all} are of each half: {rest}");
    }
}
