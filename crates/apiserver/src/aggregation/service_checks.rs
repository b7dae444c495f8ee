//! What a Service and its endpoints say of the server behind them. Pure.

use api_machinery::time::Time;
use api_types::apiregistration_v1::APIServiceCondition;
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::core_v1::Service;
use api_types::core_v1::constants::service_type;
use api_types::discovery_v1::EndpointSlice;

use crate::service_endpoints::{port_of, ready};

/// What is found about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn passed() -> Self {
        Self { status: condition_status::TRUE, reason: "Passed", message: "all checks passed".to_owned() }
    }

    pub(super) fn failed(reason: &'static str, message: String) -> Self {
        Self { status: condition_status::FALSE, reason, message }
    }

    /// Whether the server can be asked, or why not.
    pub(super) fn outcome(&self) -> Result<(), &'static str> {
        if self.status == condition_status::TRUE { Ok(()) } else { Err(self.reason) }
    }

    /// As a condition; one that says the same as before keeps its time.
    pub(super) fn condition(&self, former: Option<&APIServiceCondition>, now: Time) -> APIServiceCondition {
        let since = former.filter(|former| former.status == self.status).map(|former| former.last_transition_time);
        APIServiceCondition {
            type_: AVAILABLE.to_owned(),
            status: self.status.to_owned(),
            last_transition_time: since.unwrap_or(now),
            reason: self.reason.to_owned(),
            message: self.message.clone(),
        }
    }
}

/// Whether a Service leads to a server at all.
///
/// # Errors
/// What is missing.
pub(super) fn check(
    service: Option<&Service>,
    slices: &[EndpointSlice],
    (namespace, name): (&str, &str),
    port: u16,
) -> Result<(), Finding> {
    let Some(service) = service else {
        return Err(Finding::failed("ServiceNotFound", format!("service/{name} in {namespace:?} is not present")));
    };
    // Of others the ports and endpoints say little: the server is asked at once.
    if service.spec.type_ != service_type::CLUSTER_IP {
        return Ok(());
    }
    let Some(found) = port_of(service, port) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(Finding::failed("ServicePortError", message));
    };
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Err(Finding::failed("EndpointsNotFound", message));
    }
    if slices.iter().all(|slice| ready(slice, &found.name).next().is_none()) {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name {:?}",
            found.name
        );
        return Err(Finding::failed("MissingEndpoints", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use api_machinery::reflect::Reflect;

    use super::*;

    fn read<T: Default + Reflect>(text: &str) -> T {
        let mut object = T::default();
        api_machinery::json::decode(text.as_bytes(), &mut object).unwrap();
        object
    }

    #[test]
    fn what_is_missing_is_said_in_upstreams_words() {
        let ports = r#""ports":[{"name":"api","port":443}]"#;
        let slice =
            |endpoints: &str| format!(r#"{{"ports":[{{"name":"api","port":8443}}],"endpoints":[{endpoints}]}}"#);
        let ready = slice(r#"{"addresses":["10.0.0.1"]}"#);
        let cases: &[(&str, Option<String>, &[String], &str)] = &[
            ("none", None, &[], "ServiceNotFound: service/s in \"n\" is not present"),
            (
                "another port",
                Some(r#"{"spec":{"type":"ClusterIP","ports":[{"port":80}]}}"#.into()),
                &[],
                "ServicePortError: service/s in \"n\" is not listening on port 443",
            ),
            (
                "no slices",
                Some(format!(r#"{{"spec":{{"type":"ClusterIP",{ports}}}}}"#)),
                &[],
                "EndpointsNotFound: cannot find endpointslices for service/s in \"n\"",
            ),
            (
                "nobody ready",
                Some(format!(r#"{{"spec":{{"type":"ClusterIP",{ports}}}}}"#)),
                &[slice(r#"{"addresses":["10.0.0.1"],"conditions":{"ready":false}}"#)],
                "MissingEndpoints: endpointslices for service/s in \"n\" have no addresses with port name \"api\"",
            ),
            (
                "another port's slice",
                Some(r#"{"spec":{"type":"ClusterIP","ports":[{"port":443}]}}"#.into()),
                std::slice::from_ref(&ready),
                "MissingEndpoints: endpointslices for service/s in \"n\" have no addresses with port name \"\"",
            ),
            ("ready", Some(format!(r#"{{"spec":{{"type":"ClusterIP",{ports}}}}}"#)), &[slice(""), ready.clone()], ""),
            ("another type", Some(r#"{"spec":{"type":"NodePort"}}"#.into()), &[], ""),
        ];
        for (name, service, slices, expected) in cases {
            let service: Option<Service> = service.as_deref().map(read);
            let slices: Vec<EndpointSlice> = slices.iter().map(|slice| read(slice)).collect();
            let outcome = check(service.as_ref(), &slices, ("n", "s"), 443);
            let told = outcome.err().map(|own| format!("{}: {}", own.reason, own.message)).unwrap_or_default();
            assert_eq!(told, *expected, "{name}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_stays() {
        let at = |seconds: u64| Time::from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        let first = Finding::failed("ServiceNotFound", String::new()).condition(None, at(1));
        let second = Finding::failed("MissingEndpoints", String::new()).condition(Some(&first), at(2));
        let third = Finding::passed().condition(Some(&second), at(3));
        let times = [&first, &second, &third].map(|own| own.last_transition_time);
        assert_eq!(times, [at(1), at(1), at(3)]);
    }
}
