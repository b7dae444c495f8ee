//! Status, scale, binding and eviction.

use super::harness::Api;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

const DEPLOYMENT: &str = r#"{"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;

#[tokio::test(start_paused = true)]
async fn a_scale_is_read_and_written() {
    let api = Api::start().await;
    assert_eq!(api.post(DEPLOYMENTS, DEPLOYMENT).await.code, 201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = api.get(&path).await.json();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&"Scale".into(), &"autoscaling/v1".into()));
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&2.into(), &"a=b".into()));
    let accept = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let table = api.send(&format!("GET {path}"), &accept, "").await.json();
    let columns = table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap());
    assert_eq!(columns.collect::<Vec<_>>(), ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["d", 2, 0, "0s"]));
    let mut wanted = scale.clone();
    wanted["spec"]["replicas"] = 5.into();
    assert_eq!(api.put(&path, &wanted.to_string()).await.json()["spec"]["replicas"], 5);
    assert_eq!(api.put(&path, &wanted.to_string()).await.code, 409, "the revision is checked");
    let patched = api.patch("merge-patch", &path, r#"{"spec":{"replicas":1}}"#).await;
    assert_eq!((patched.code, &patched.json()["spec"]["replicas"]), (200, &1.into()));
    let deployment = api.get(&format!("{DEPLOYMENTS}/d")).await.json();
    assert_eq!((&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]), (&1.into(), &3.into()));
    assert_eq!(api.patch("merge-patch", &path, r#"{"spec":{"replicas":-1}}"#).await.code, 422);
    assert_eq!(api.delete(&path).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_cannot_be_answered_is_not_written() {
    let api = Api::start().await;
    assert_eq!(api.post(DEPLOYMENTS, DEPLOYMENT).await.code, 201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let body = r#"{"spec":{"replicas":7}}"#;
    let of = |accept| [("accept", accept), ("content-type", "application/merge-patch+json")];
    let unknown = api.send(&format!("PATCH {path}"), &of("image/png"), body).await;
    assert_eq!(unknown.code, 406, "{}", unknown.text);
    let table = of("application/json;as=Table;g=meta.k8s.io;v=v1");
    let wrong = api.send(&format!("PATCH {path}?includeObject=Some"), &table, body).await;
    assert_eq!(wrong.code, 400, "{}", wrong.text);
    assert_eq!(api.get(&path).await.json()["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_applied() {
    let api = Api::start().await;
    assert_eq!(api.post(&format!("{DEPLOYMENTS}?fieldManager=maker"), DEPLOYMENT).await.code, 201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let body = r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":4}}"#;
    let conflict = api.patch("apply", &format!("{path}?fieldManager=scaler"), body).await;
    assert_eq!(conflict.code, 409, "{}", conflict.text);
    assert!(conflict.text.contains("conflict with \\\"maker\\\""), "{}", conflict.text);
    let applied = api.patch("apply", &format!("{path}?fieldManager=scaler&force=true"), body).await;
    assert_eq!((applied.code, &applied.json()["spec"]["replicas"]), (200, &4.into()), "{}", applied.text);
    let deployment = api.get(&format!("{DEPLOYMENTS}/d")).await.json();
    assert_eq!(deployment["spec"]["replicas"], 4);
    let record = deployment["metadata"]["managedFields"].as_array().unwrap();
    let own = record.iter().find(|entry| entry["manager"] == "scaler").expect("an entry of the scaler");
    assert_eq!((&own["operation"], &own["subresource"]), (&"Apply".into(), &"scale".into()), "{own}");
    assert_eq!(own["apiVersion"], "apps/v1");
    assert_eq!(own["fieldsV1"], serde_json::json!({"f:spec": {"f:replicas": {}}}));
    let maker = record.iter().find(|entry| entry["manager"] == "maker").expect("an entry of the maker");
    assert!(maker["fieldsV1"]["f:spec"]["f:replicas"].is_null(), "{maker}");
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, DEPLOYMENT).await;
    let path = format!("{DEPLOYMENTS}/d");
    let body = r#"{"status":{"replicas":7},"spec":{"replicas":9}}"#;
    let status = api.patch("merge-patch", &format!("{path}/status"), body).await.json();
    assert_eq!((&status["status"]["replicas"], &status["spec"]["replicas"]), (&7.into(), &2.into()));
    let main = api.patch("merge-patch", &path, r#"{"status":{"replicas":1},"spec":{"replicas":9}}"#).await.json();
    assert_eq!((&main["status"]["replicas"], &main["spec"]["replicas"]), (&7.into(), &9.into()));
    let record = main["metadata"]["managedFields"].as_array().unwrap();
    assert!(record.iter().any(|entry| entry["subresource"] == "status"), "{record:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_are_bound_and_evicted() {
    let api = Api::start().await;
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let made = api.post(PODS, pod).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let binding = r#"{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}"#;
    let bound = api.post(&format!("{PODS}/p/binding"), binding).await;
    assert_eq!((bound.code, &bound.json()["status"]), (201, &"Success".into()));
    assert_eq!(api.get(&format!("{PODS}/p")).await.json()["spec"]["nodeName"], "n1");
    let again = api.post("/api/v1/namespaces/default/bindings", binding).await.refusal();
    assert_eq!(
        again,
        (409, "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"".into())
    );
    let eviction = r#"{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"}}"#;
    let evicted = api.post(&format!("{PODS}/p/eviction"), eviction).await;
    assert_eq!((evicted.code, &evicted.json()["status"]), (201, &"Success".into()));
    let going = api.get(&format!("{PODS}/p")).await.json();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
}
