//! One webhook, ready to be asked.

use std::time::Duration;

use admission_cel::{MatchConditions, Origin, environment};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::constants::{
    failure_policy_type, reinvocation_policy_type, side_effect_class,
};
use api_types::admissionregistration_v1::{Webhook, WebhookClientConfig};

use super::caller::{Address, Target};
use super::may_be_asked;
use super::review::ReviewVersion;
use crate::Attributes;
use crate::matching::{Criteria, MatchPolicy, Matched, Rule, Subject};

/// How long an answer may take where a configuration says nothing; defaults say so, too.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is said of side effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideEffects {
    /// Nothing: the webhook cannot be asked.
    Unsaid,
    /// It may be asked in dry runs.
    NoneOnDryRun,
    /// It may not.
    Possible,
}

/// Where a configuration comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Somebody has written it through the API.
    Api,
    /// It stands in a file.
    File,
}

/// A webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    source: Source,
    /// The name of its configuration.
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// Tells it from all others, for the second round.
    pub(crate) id: String,
    criteria: Result<Criteria, String>,
    pub(super) conditions: MatchConditions,
    pub(super) target: Target,
    /// The version of the question; nothing where it knows none of ours.
    pub(super) version: Option<ReviewVersion>,
    pub(crate) side_effects: SideEffects,
    pub(super) timeout: Duration,
    /// Whether a request goes on when it cannot be asked.
    pub(crate) fails_open: bool,
    /// Whether it is asked once more when others changed the object.
    pub(crate) again_if_needed: bool,
}

impl Hook {
    /// A webhook of a configuration, the `nth` of its name there.
    pub(super) fn new((configuration, source): (&str, Source), own: &Webhook<'_>, nth: usize) -> Self {
        let root = match source {
            Source::Api => "",
            Source::File => "manifest/",
        };
        let timeout = own.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        Self {
            source,
            configuration: configuration.to_owned(),
            name: own.name.to_owned(),
            id: format!("{root}{configuration}/{}/{nth}", own.name),
            criteria: criteria(own),
            conditions: conditions(own),
            target: target(own.client_config),
            version: own.admission_review_versions.iter().find_map(|name| ReviewVersion::named(name)),
            side_effects: match own.side_effects {
                None => SideEffects::Unsaid,
                Some(side_effect_class::NONE | side_effect_class::NONE_ON_DRY_RUN) => SideEffects::NoneOnDryRun,
                Some(_) => SideEffects::Possible,
            },
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            fails_open: own.failure_policy == Some(failure_policy_type::IGNORE),
            again_if_needed: own.reinvocation_policy == Some(reinvocation_policy_type::IF_NEEDED),
        }
    }

    /// Whether it may be asked about a request at all, whatever it is about.
    pub(crate) fn may_be_asked(&self, attributes: &Attributes) -> bool {
        self.source == Source::File || may_be_asked(attributes)
    }

    /// Whether it is to be asked about a request, and as of which version.
    ///
    /// # Errors
    /// When that cannot be found out; the request fails.
    pub(crate) async fn matches(&self, subject: &Subject<'_>) -> Result<Option<Matched>, ApiError> {
        match &self.criteria {
            Ok(criteria) => criteria.matches(subject).await,
            Err(error) => Err(ApiError::internal(error)),
        }
    }
}

fn criteria(own: &Webhook<'_>) -> Result<Criteria, String> {
    let selector = |field| Criteria::selector(field).map_err(|error| error.to_string());
    Ok(Criteria {
        namespace_selector: selector(own.namespace_selector)?,
        object_selector: selector(own.object_selector)?,
        rules: Some(own.rules.iter().map(Rule::from).collect()),
        excluded: Vec::new(),
        match_policy: MatchPolicy::named(own.match_policy),
    })
}

fn conditions(own: &Webhook<'_>) -> MatchConditions {
    let scope = admission_cel::Scope { authorizer: true, ..Default::default() };
    let named = own.match_conditions.iter().map(|own| (own.name.as_str(), own.expression.as_str()));
    MatchConditions::new(&environment(scope, Origin::Stored), named)
}

fn target(own: &WebhookClientConfig) -> Target {
    let address = match &own.service {
        Some(own) => Address::of_service(&own.namespace, &own.name, own.port, own.path.as_deref()),
        None => Address::Url(own.url.clone().unwrap_or_default()),
    };
    Target { address, ca_bundle: own.ca_bundle.0.clone() }
}
