//! The flags of other API servers behind this one.

use std::path::PathBuf;

use component_base::flags::{Errors, Options};

use crate::config::{AggregationConfig, AggregationRouting, Redirects};

pub(super) fn read(options: &Options, errors: &mut Errors) -> AggregationConfig {
    let path = |name: &str| Some(options.string(name)).filter(|path| !path.is_empty()).map(PathBuf::from);
    let pair = (path("proxy-client-cert-file"), path("proxy-client-key-file"));
    errors.check(
        pair.0.is_some() == pair.1.is_some(),
        "--proxy-client-cert-file and --proxy-client-key-file must be specified together",
    );
    let routing = options.bool("enable-aggregator-routing");
    let rejects = options.bool("aggregator-reject-forwarding-redirect");
    AggregationConfig {
        client_pair: pair.0.zip(pair.1),
        routing: if routing { AggregationRouting::Endpoints } else { AggregationRouting::ClusterIp },
        redirects: if rejects { Redirects::Rejected } else { Redirects::Passed },
    }
}
