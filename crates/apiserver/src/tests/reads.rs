//! Get and list, in every form.

use super::harness::Api;

#[tokio::test(start_paused = true)]
async fn objects_are_shown_as_wanted() {
    let api = Api::start().await;
    let made = api.config_map("one").await;
    assert_eq!(made["kind"], "ConfigMap");
    let path = "/api/v1/namespaces/default/configmaps/one";
    let plain = api.get(path).await;
    assert_eq!((plain.code, plain.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    assert!(
        plain.text.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one""#),
        "{}",
        plain.text
    );
    assert!(plain.text.ends_with("}\n"));
    assert!(api.get(&format!("{path}?pretty=true")).await.text.starts_with("{\n  \"kind\""));

    let accept = |value| [("accept", value)];
    let line = format!("GET {path}");
    let yaml = api.send(&line, &accept("application/yaml"), "").await;
    assert!(yaml.text.contains("kind: ConfigMap\n"), "{}", yaml.text);
    let protobuf = api.send(&line, &accept("application/vnd.kubernetes.protobuf"), "").await;
    assert!(protobuf.text.starts_with("k8s\0"));
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let partial = api.send(&line, &accept(metadata), "").await.json();
    assert_eq!((&partial["kind"], &partial["data"]), (&"PartialObjectMetadata".into(), &serde_json::Value::Null));
    let wrong = metadata.replace("Metadata;", "MetadataList;");
    assert_eq!(
        api.send(&line, &accept(&wrong), "").await.refusal(),
        (
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)".into()
        )
    );
    let table = api.send(&line, &accept("application/json;as=Table;g=meta.k8s.io;v=v1"), "").await.json();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&"Table".into(), &"one".into()));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(api.send(&line, &accept("text/html"), "").await.code, 406);
}

#[tokio::test(start_paused = true)]
async fn lists_and_their_options() {
    let api = Api::start().await;
    for name in ["one", "two", "three"] {
        api.config_map(name).await;
    }
    let path = "/api/v1/namespaces/default/configmaps";
    let all = api.get(path).await.json();
    assert_eq!((&all["kind"], all["items"].as_array().unwrap().len()), (&"ConfigMapList".into(), 3));
    assert_eq!(all["items"][0]["kind"], serde_json::Value::Null, "items of built-in kinds carry no kind");
    let page = api.get(&format!("{path}?limit=2")).await.json();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = api.get(&format!("{path}?limit=2&continue={token}")).await.json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    let none = api.get(&format!("{path}?labelSelector=a%3Db")).await;
    assert!(none.text.contains("\"items\":[]"), "{}", none.text);

    for (query, code) in [
        ("labelSelector=a%3D%3D%3D", 400),
        ("fieldSelector=spec.x%3Dy", 400),
        ("limit=x", 400),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("continue=x", 400),
    ] {
        assert_eq!(api.get(&format!("{path}?{query}")).await.code, code, "{query}");
    }
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let table = api.send(&format!("GET {path}?includeObject=Nothing"), &table, "").await;
    assert!(table.refusal().1.contains("must be 'Metadata', 'Object', 'None', or empty"), "{table:?}");
}

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere() {
    let api = Api::start().await;
    let status = "the server could not find the requested resource";
    let cases = [
        ("GET /foo", 404, "404 page not found\n"),
        ("GET /apis/nope.example.com/v1/things", 404, "404 page not found\n"),
        ("GET /api/v1/things", 404, status),
        ("GET /api/v1/pods/p", 404, status),
        ("GET /api/v1/namespaces/default/nodes", 404, status),
        ("GET /api/v1/namespaces/default/pods/p/nothing", 404, status),
        ("GET /api/v1/namespaces/default/pods/p/status/more", 404, status),
        ("GET /api/v1/namespaces/default/pods/p", 404, "pods \"p\" not found"),
        ("GET /api/v1/namespaces/%2e%2e/pods", 400, "Namespace parameter invalid: \"..\": may not be '..'"),
        ("GET /api/v1/namespaces/default/pods/%2e%2e", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ("GET /api/v1/namespaces/default/pods/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        ("PUT /api/v1/pods", 405, "the server does not allow this method on the requested resource"),
        ("POST /api/v1/pods", 405, "the server does not allow this method on the requested resource"),
        ("DELETE /api/v1/namespaces", 405, "the server does not allow this method on the requested resource"),
        ("HEAD /api/v1/namespaces/default", 405, "the server does not allow this method on the requested resource"),
        (
            "GET /api/v1/watch",
            500,
            "Internal Server Error: \"/api/v1/watch\": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch\n",
        ),
    ];
    for (line, code, message) in cases {
        assert_eq!(api.send(line, &[], "").await.refusal(), (code, message.to_owned()), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn claim_templates_say_what_they_are() {
    let api = Api::start().await;
    let template = |rest: &str| {
        format!(
            r#"{{{rest}"metadata":{{"name":"data"}},"spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1Gi"}}}}}}}}"#
        )
    };
    let pods = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    for (name, rest) in [("silent", ""), ("wrong", r#""kind":"Banana","apiVersion":"fruit/v1","#)] {
        let spec = format!(
            r#"{{"serviceName":"s","selector":{{"matchLabels":{{"a":"b"}}}},"template":{pods},"volumeClaimTemplates":[{}]}}"#,
            template(rest)
        );
        let made = api.post(sets, &format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let list = api.get(sets).await.json();
        let item = list["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == name).unwrap();
        assert_eq!(item.get("kind"), None, "items leave that to the list");
        for shown in [&made.json(), &api.get(&format!("{sets}/{name}")).await.json(), item] {
            let template = &shown["spec"]["volumeClaimTemplates"][0];
            assert_eq!((&template["kind"], &template["apiVersion"]), (&"PersistentVolumeClaim".into(), &"v1".into()));
            assert_eq!(shown["spec"]["template"].get("kind"), None, "pod templates are no kind");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn references_say_what_they_name() {
    let api = Api::start().await;
    let spec = r#"{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"},
        "claimRef":{"kind":"Banana","namespace":"default","name":"data"}}"#;
    let made = api.post("/api/v1/persistentvolumes", &format!(r#"{{"metadata":{{"name":"v"}},"spec":{spec}}}"#)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let named = r#""claimRef":{"kind":"Banana","namespace":"default","name":"data"}"#;
    assert!(made.text.contains(named), "{}", made.text);
}

/// A lease must be renewed in time, however much others read: on every way a list is put together, others get a turn
/// after some dozens of objects.
#[tokio::test(start_paused = true)]
async fn long_lists_give_others_their_turns() {
    const OBJECTS: usize = 2_000;
    /// Of a build without optimization, beside other tests; the whole list takes many times that.
    const MOST_MS: u64 = 50;
    let api = Api::start().await;
    let maps = api.server.cx().registry().resource("", "v1", "configmaps").unwrap();
    let request = crate::own_request::server_request(api.server.cx().registry().rule_context(), "default");
    for number in 0..OBJECTS {
        let mut map = api_types::core_v1::ConfigMap::default();
        map.metadata.name = format!("map-{number:04}");
        map.metadata.namespace = "default".into();
        map.metadata.labels.insert("a".into(), "b".into());
        map.data.insert("text".into(), "x".repeat(300));
        maps.create(&request, Box::new(map), &registry::Hooks::none()).await.unwrap();
    }
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for accept in ["application/json", "application/vnd.kubernetes.protobuf", table, metadata] {
        for (query, gzip) in [("", ""), ("?labelSelector=a%3Db", "gzip"), ("?limit=1900", "gzip")] {
            let line = format!("GET /api/v1/namespaces/default/configmaps{query}");
            let headers = [("accept", accept), ("accept-encoding", gzip)];
            let mut listing = Box::pin(async {
                let response = api.open(&line, &headers, "").await;
                let is_packed = response.headers().contains_key("content-encoding");
                let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
                (is_packed, bytes.len())
            });
            let (mut turns, mut longest) = (0, 0);
            let (is_packed, bytes) = std::future::poll_fn(|cx| {
                turns += 1;
                let before = processor_time_ms();
                let outcome = listing.as_mut().poll(cx);
                longest = longest.max(processor_time_ms() - before);
                outcome
            })
            .await;
            assert!(longest <= MOST_MS, "{accept} {query}: one turn took {longest} ms");
            assert!(turns >= OBJECTS / 40, "{accept} {query}: {bytes} bytes in {turns} turns");
            assert_eq!(is_packed, !gzip.is_empty(), "{accept} {query}: {bytes} bytes");
        }
    }
}

/// How long this thread has run, whoever else ran meanwhile; 0 where the kernel does not say.
fn processor_time_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}
