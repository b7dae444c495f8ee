//! Headers and what they get.

use super::*;

fn preferences(accept: &str) -> Preferences {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept.parse().unwrap());
    Preferences::new(&headers, &Query::default())
}

fn chosen(accept: &str, offer: Offer) -> Result<(MediaType, Target), String> {
    preferences(accept).choose(offer).map(|choice| (choice.media, choice.target)).map_err(|error| error.message)
}

const KUBECTL: &str =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

#[test]
fn the_best_clause_wins() {
    use MediaType::{Json, Protobuf, Yaml};
    let resource = Offer::resource(false);
    let cases = [
        ("", Json, Target::Object),
        ("*/*", Json, Target::Object),
        ("*", Json, Target::Object),
        ("application/*", Json, Target::Object),
        ("application/vnd.kubernetes.protobuf,application/json", Protobuf, Target::Object),
        ("application/json;q=0.5, application/yaml", Yaml, Target::Object),
        ("*/*;q=1, application/yaml;q=1", Yaml, Target::Object),
        ("text/html, application/yaml;q=0", Yaml, Target::Object),
        (KUBECTL, Json, Target::Table("v1")),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", Json, Target::Object),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Protobuf,
            Target::MetadataList("v1"),
        ),
        ("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/yaml", Yaml, Target::Object),
        ("application/json;sv=v2,application/yaml", Yaml, Target::Object),
        ("application/json;profile=nopeer", Json, Target::Object),
    ];
    for (accept, media, target) in cases {
        assert_eq!(chosen(accept, resource), Ok((media, target)), "{accept}");
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let none = "only the following media types are accepted: ";
    assert_eq!(
        chosen("text/plain", Offer::resource(false)).unwrap_err(),
        format!("{none}application/json, application/yaml, application/vnd.kubernetes.protobuf")
    );
    assert_eq!(
        chosen("application/vnd.kubernetes.protobuf", Offer::resource(true)).unwrap_err(),
        format!("{none}application/json, application/yaml, application/vnd.kubernetes.protobuf")
    );
    assert_eq!(
        chosen("application/yaml", Offer::resource(false).as_stream()).unwrap_err(),
        format!("{none}application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
    );
    assert!(chosen("application/json;stream=other", Offer::resource(false)).is_err());
    assert!(chosen("application/json;stream=watch", Offer::resource(false)).is_ok(), "whatever it is asked of");
    assert!(chosen("application/json;stream=watch", Offer::resource(false).as_stream()).is_ok());
    assert!(chosen(KUBECTL, Offer::PLAIN).is_ok_and(|(_, target)| target == Target::Object));
    assert!(chosen("text/plain", Offer::PLAIN).is_err());
    assert!(preferences("text/plain").choose_for_error().pretty);
}

#[test]
fn indentation_is_for_people() {
    let pretty = |agent: &str, query: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, agent.parse().unwrap());
        Preferences::new(&headers, &Query::parse(query)).choose(Offer::PLAIN).unwrap().pretty
    };
    let cases = [
        ("curl/8", "", true),
        ("curl/8", "pretty=false", false),
        ("curl/8", "pretty=", true),
        ("kubectl", "", false),
        ("kubectl", "pretty=1", true),
        ("curl/8", "pretty=maybe", false),
    ];
    for (agent, query, expected) in cases {
        assert_eq!(pretty(agent, query), expected, "{agent} {query}");
    }
}

#[test]
fn any_media_type_can_be_offered() {
    let offered = ["application/json", "application/com.example@v1.0+protobuf"];
    let cases = [
        ("", Some(0)),
        ("*/*", Some(0)),
        ("application/*", Some(0)),
        ("application/com.example@v1.0+protobuf", Some(1)),
        ("application/com.example@v1.0+protobuf, application/json", Some(1)),
        ("application/com.example@v1.0+protobuf;q=0.8,application/json", Some(0)),
        ("application/json;q=0.1,application/com.example@v1.0+protobuf;q=0.9", Some(1)),
        ("text/html,*/*;q=0.1", Some(0)),
        ("text/html", None),
        ("nonsense", None),
    ];
    for (accept, expected) in cases {
        assert_eq!(preferred(accept, &offered), expected.map(|index: usize| offered[index]), "{accept}");
    }
}
