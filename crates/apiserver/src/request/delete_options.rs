//! The options of a delete: from the body, or from the query when there is no body.

use api_machinery::cbor;
use api_machinery::json::{self, TypeMeta};
use api_machinery::meta::{DeleteOptions, Preconditions};
use api_machinery::protobuf;
use api_machinery::status::ApiError;
use api_machinery::yaml;
use component_base::Gates;

use super::decode::{SCHEME, not_yaml};
use super::query::Query;
use crate::negotiate::MediaType;

/// The name that texts about unknown kinds print for the set of the kinds of options.
const META_SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// Groups of upstream beside those of the kinds here.
const ELSEWHERE: [&str; 9] = [
    "admission.k8s.io",
    "admissionregistration.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "meta.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
];

/// The API versions that a body may say it is of: clients write that of whatever they delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyVersions {
    /// Any: upstream reads the options of one deletion apart from all kinds.
    Any,
    /// Those that the built-in kinds have, with which upstream reads the options of a collection's deletion.
    Registered,
}

/// Reads and checks the options; `media` is the body's type, of no matter when it is empty. Those of a body are noted.
///
/// # Errors
/// 400 for what cannot be read, 422 for what makes no sense.
pub(crate) fn delete_options(
    body: &[u8],
    media: MediaType,
    versions: BodyVersions,
    query: &Query,
    audit: &audit::Context,
    gates: &Gates,
) -> Result<DeleteOptions, ApiError> {
    let mut options = if body.is_empty() {
        from_query(query)?
    } else {
        let (options, version) = from_body(body, media, versions)?;
        audit.options(|| json::encode_typed("DeleteOptions", &version, &options));
        options
    };
    if !gates.enabled(registry::UNSAFE_DELETION) {
        options.ignore_store_read_error_with_cluster_breaking_potential = None;
    }
    registry::validate_delete_options(&options)?;
    if options.grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        options.grace_period_seconds = Some(1);
    }
    Ok(options)
}

fn from_query(query: &Query) -> Result<DeleteOptions, ApiError> {
    let text = |name: &str| query.first(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let preconditions = Preconditions { uid: text("uid"), resource_version: text("resourceVersion") };
    let wanted = preconditions.uid.is_some() || preconditions.resource_version.is_some();
    Ok(DeleteOptions {
        grace_period_seconds: query.integer("gracePeriodSeconds")?,
        orphan_dependents: query.switch("orphanDependents"),
        propagation_policy: query.first("propagationPolicy").map(str::to_owned),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
        preconditions: wanted.then_some(preconditions),
        ignore_store_read_error_with_cluster_breaking_potential: query
            .switch("ignoreStoreReadErrorWithClusterBreakingPotential"),
    })
}

/// The options and the version that they say they are of.
fn from_body(body: &[u8], media: MediaType, versions: BodyVersions) -> Result<(DeleteOptions, String), ApiError> {
    let mut options = DeleteOptions::default();
    let bad = |error: String| ApiError::bad_request(error);
    let named = match media {
        MediaType::Protobuf => {
            let envelope = protobuf::open(body).map_err(|error| bad(error.to_string()))?;
            protobuf::decode(envelope.raw, &mut options).map_err(|error| bad(error.to_string()))?;
            TypeMeta { api_version: envelope.api_version, kind: envelope.kind }
        }
        MediaType::Cbor => {
            let text = cbor::to_json(body).map_err(|error| bad(error.to_string()))?;
            json::decode(text.as_bytes(), &mut options).map_err(|error| bad(error.to_string()))?.type_meta
        }
        MediaType::Json => json::decode(body, &mut options).map_err(|error| bad(error.to_string()))?.type_meta,
        MediaType::Yaml => {
            let document = yaml::parse(&String::from_utf8_lossy(body)).map_err(|error| bad(not_yaml(&error)))?;
            let text = json::encode_value(&document.value);
            json::decode(text.as_bytes(), &mut options).map_err(|error| bad(error.to_string()))?.type_meta
        }
    };
    let version = &named.api_version;
    if !matches!(named.kind.as_str(), "" | "DeleteOptions") {
        let (kind, shown) = (&named.kind, if version.is_empty() { "v1" } else { version });
        // The kinds that options of one deletion are read among are those of options alone.
        return Err(bad(if versions == BodyVersions::Any && !kind.ends_with("Options") {
            format!("no kind {kind:?} is registered for version {shown:?} in scheme {META_SCHEME:?}")
        } else {
            "decoded object cannot be converted to DeleteOptions".to_owned()
        }));
    }
    if version.matches('/').count() > 1 {
        return Err(bad(format!("unexpected GroupVersion string: {version}")));
    }
    if versions == BodyVersions::Registered && !is_registered(version) {
        let error = format!("no kind \"DeleteOptions\" is registered for version {version:?} in scheme {SCHEME:?}");
        return Err(bad(error));
    }
    let version = if version.is_empty() { "v1".to_owned() } else { version.clone() };
    Ok((options, version))
}

/// Whether upstream's built-in kinds have this version; one that is left out is the endpoint's.
fn is_registered(api_version: &str) -> bool {
    let Some((group, version)) = api_version.split_once('/') else { return matches!(api_version, "" | "v1") };
    let known = ELSEWHERE.contains(&group) || kinds::all().any(|rules| rules.info().group == group);
    // Versions that are not served any more are known all the same, such as `extensions/v1beta1`.
    let generation = version.strip_prefix("v1").or_else(|| version.strip_prefix("v2")).unwrap_or("-");
    known && !group.is_empty() && (generation.is_empty() || generation.starts_with(['a', 'b']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, query: &str) -> Result<DeleteOptions, String> {
        of_versions(BodyVersions::Any, body, query)
    }

    fn of_versions(versions: BodyVersions, body: &str, query: &str) -> Result<DeleteOptions, String> {
        gated(&Gates::default(), versions, body, query)
    }

    fn gated(gates: &Gates, versions: BodyVersions, body: &str, query: &str) -> Result<DeleteOptions, String> {
        let (query, audit) = (Query::parse(query), &audit::Context::UNHEARD);
        let read = delete_options(body.as_bytes(), MediaType::Json, versions, &query, audit, gates);
        read.map_err(|error| format!("{} {}", error.code, error.message))
    }

    #[test]
    fn body_wins_over_query() {
        let options =
            read(r#"{"kind":"DeleteOptions","apiVersion":"apps/v1","gracePeriodSeconds":-5}"#, "gracePeriodSeconds=9");
        assert_eq!(options.unwrap().grace_period_seconds, Some(1));
        let options = read("", "gracePeriodSeconds=0&propagationPolicy=Orphan&uid=u").unwrap();
        assert_eq!(options.propagation_policy.as_deref(), Some("Orphan"));
        assert_eq!(options.preconditions.unwrap().uid.as_deref(), Some("u"));
    }

    #[test]
    fn nonsense_is_refused() {
        let both = read("", "orphanDependents=true&propagationPolicy=Orphan").unwrap_err();
        assert!(
            both.starts_with(
                "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphan"
            ),
            "{both}"
        );
        let unknown = read("", "propagationPolicy=Never").unwrap_err();
        assert!(
            unknown.ends_with("supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""),
            "{unknown}"
        );
        let pod = r#"{"kind":"Pod"}"#;
        let unknown = format!("400 no kind \"Pod\" is registered for version \"v1\" in scheme {META_SCHEME:?}");
        assert_eq!(read(pod, "").unwrap_err(), unknown);
        let of_all = of_versions(BodyVersions::Registered, pod, "").unwrap_err();
        assert_eq!(of_all, "400 decoded object cannot be converted to DeleteOptions");
        let dry_run = read(r#"{"dryRun":["All","Some"]}"#, "").unwrap_err();
        assert!(dry_run.contains(r#"dryRun: Unsupported value: ["All","Some"]: supported values: "All""#), "{dry_run}");
    }

    #[test]
    fn what_cannot_be_read_is_deleted_without_further_wishes() {
        const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
        let on = Gates::default().with(registry::UNSAFE_DELETION, true);
        let asked = |gates: &Gates, more: &str| {
            let in_query = gated(gates, BodyVersions::Any, "", &format!("{OPTION}=true&{}", more.replace(' ', "&")))?;
            Ok::<_, String>(in_query.ignore_store_read_error_with_cluster_breaking_potential)
        };
        assert_eq!(asked(&on, ""), Ok(Some(true)));
        assert_eq!(asked(&Gates::default(), "dryRun=All"), Ok(None), "dropped");
        let in_body = gated(&on, BodyVersions::Any, &format!(r#"{{"{OPTION}":true}}"#), "").unwrap();
        assert_eq!(in_body.ignore_store_read_error_with_cluster_breaking_potential, Some(true));
        for (more, others) in [
            ("dryRun=All", &["dryRun"][..]),
            ("propagationPolicy=Orphan", &["propagationPolicy"]),
            ("orphanDependents=false gracePeriodSeconds=0", &["orphanDependents", "gracePeriodSeconds"]),
            ("uid=u", &["preconditions"]),
        ] {
            let text = asked(&on, more).unwrap_err();
            for other in others {
                let wanted = format!("{OPTION}: Invalid value: true: cannot be set together with .{other}");
                assert!(text.starts_with("422 ") && text.contains(&wanted), "{text}");
            }
        }
    }

    #[test]
    fn the_version_of_a_body_matters_for_collections() {
        let unknown = |version: &str| {
            format!("400 no kind \"DeleteOptions\" is registered for version {version:?} in scheme {SCHEME:?}")
        };
        for (version, one, all) in [
            ("", None, None),
            ("v1", None, None),
            ("meta.k8s.io/v1", None, None),
            ("apps/v1", None, None),
            ("extensions/v1beta1", None, None),
            ("admissionregistration.k8s.io/v1", None, None),
            ("v2", None, Some(unknown("v2"))),
            ("apps/v9", None, Some(unknown("apps/v9"))),
            ("example.com/v1", None, Some(unknown("example.com/v1"))),
        ] {
            let body = format!(r#"{{"kind":"DeleteOptions","apiVersion":"{version}"}}"#);
            assert_eq!(read(&body, "").err(), one, "{version}");
            assert_eq!(of_versions(BodyVersions::Registered, &body, "").err(), all, "{version}");
        }
        let odd = read(r#"{"kind":"DeleteOptions","apiVersion":"a/b/c"}"#, "").unwrap_err();
        assert_eq!(odd, "400 unexpected GroupVersion string: a/b/c");
    }
}
