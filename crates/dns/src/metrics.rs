//! Metrics under the names that dashboards for cluster DNS look for, those of CoreDNS.
//!
//! Deliberately not here: families of plugins that have no counterpart. What is asked of the API server is told as all
//! components tell it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};
use component_base::version::git_version;
use hickory_proto::op::Message;

use crate::answer::{Source, Transport};
use crate::cache::Held;

/// The one listener, and the zone of its configuration: everything.
const SERVER: &str = "dns://:53";
const ZONE: &str = ".";
const VIEW: &str = "";

const SECONDS: &[f64] = &exponential::<16>(0.000_25, 2.0);
const BYTES: &[f64] = &[0.0, 100.0, 200.0, 300.0, 400.0, 511.0, 1023.0, 2047.0, 4095.0, 8291.0, 16e3, 32e3, 48e3, 64e3];

const fn desc(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

const BUILD: Desc =
    desc("coredns_build_info", "The version that answers.").labels(&["version", "revision", "goversion"]);
const REQUESTS: Desc = desc("coredns_dns_requests_total", "Queries by protocol, family and type.")
    .labels(&["server", "zone", "view", "proto", "family", "type"]);
const DNSSEC: Desc =
    desc("coredns_dns_do_requests_total", "Queries that ask for signatures.").labels(&["server", "zone", "view"]);
const RESPONSES: Desc = desc("coredns_dns_responses_total", "Answers by code and by what gave them.")
    .labels(&["server", "zone", "view", "rcode", "plugin"]);
const DURATION: Desc = desc("coredns_dns_request_duration_seconds", "How long answers took.")
    .labels(&["server", "zone", "view"])
    .buckets(SECONDS);
const REQUEST_SIZE: Desc = desc("coredns_dns_request_size_bytes", "The size of queries.")
    .labels(&["server", "zone", "view", "proto"])
    .buckets(BYTES);
const RESPONSE_SIZE: Desc = desc("coredns_dns_response_size_bytes", "The size of answers.")
    .labels(&["server", "zone", "view", "proto"])
    .buckets(BYTES);
const ENTRIES: Desc =
    desc("coredns_cache_entries", "Answers that are kept.").labels(&["server", "type", "zones", "view"]);
const HITS: Desc =
    desc("coredns_cache_hits_total", "Queries that a kept answer served.").labels(&["server", "type", "zones", "view"]);
const MISSES: Desc =
    desc("coredns_cache_misses_total", "Queries that no kept answer served.").labels(&["server", "zones", "view"]);
const LOOKUPS: Desc =
    desc("coredns_cache_requests_total", "Queries that looked for a kept answer.").labels(&["server", "zones", "view"]);
const EVICTIONS: Desc = desc("coredns_cache_evictions_total", "Kept answers that made room for others.")
    .labels(&["server", "type", "zones", "view"]);
const REJECTS: Desc =
    desc("coredns_forward_max_concurrent_rejects_total", "Queries refused because too many waited for other servers.");
const BROKEN: Desc =
    desc("coredns_forward_healthcheck_broken_total", "Queries handed on while every other server had just failed.");
const HANDED_ON: Desc = desc("coredns_proxy_request_duration_seconds", "How long other servers took to answer.")
    .labels(&["proxy_name", "to", "rcode"])
    .buckets(SECONDS);
const PROGRAMMED: Desc = desc(
    "coredns_kubernetes_dns_programming_duration_seconds",
    "How long after a change of a headless Service's pods its names say so.",
)
.labels(&["service_kind"])
.buckets(&exponential::<20>(0.001, 2.0));
const ENABLED: Desc =
    desc("coredns_plugin_enabled", "What the server does.").labels(&["server", "zone", "view", "name"]);

/// The plugins of CoreDNS whose part this server plays, in order.
const PLUGINS: [&str; 6] = ["prometheus", "loadbalance", "cache", "kubernetes", "loop", "forward"];

/// What gave an answer, by the name of the plugin that would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Giver {
    /// The cluster's own zone.
    Cluster,
    /// Another server.
    Forward,
    /// A kept answer of another server.
    Cache,
}

/// The families.
pub struct DnsMetrics {
    requests: Counters,
    dnssec: Counters,
    responses: Counters,
    duration: Histograms,
    request_size: Histograms,
    response_size: Histograms,
    entries: Gauges,
    hits: Counters,
    misses: Counters,
    lookups: Counters,
    evictions: Counters,
    rejects: Counters,
    broken: Counters,
    handed_on: Histograms,
    programmed: Histograms,
}

impl DnsMetrics {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Arc<Self> {
        metrics.gauges(&BUILD).with(&[git_version(), "", ""]).set(1.0);
        let enabled = metrics.gauges(&ENABLED);
        PLUGINS.iter().for_each(|name| enabled.with(&[SERVER, ZONE, VIEW, name]).set(1.0));
        Arc::new(Self {
            requests: metrics.counters(&REQUESTS),
            dnssec: metrics.counters(&DNSSEC),
            responses: metrics.counters(&RESPONSES),
            duration: metrics.histograms(&DURATION),
            request_size: metrics.histograms(&REQUEST_SIZE),
            response_size: metrics.histograms(&RESPONSE_SIZE),
            entries: metrics.gauges(&ENTRIES),
            hits: metrics.counters(&HITS),
            misses: metrics.counters(&MISSES),
            lookups: metrics.counters(&LOOKUPS),
            evictions: metrics.counters(&EVICTIONS),
            rejects: metrics.counters(&REJECTS),
            broken: metrics.counters(&BROKEN),
            handed_on: metrics.histograms(&HANDED_ON),
            programmed: metrics.histograms(&PROGRAMMED),
        })
    }

    /// A query was answered.
    pub fn answered(&self, query: &[u8], answer: &[u8], source: Source, giver: Giver, took: Duration) {
        let proto = match source.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        };
        let family = match source.client.ip() {
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_none() => "2",
            _ => "1",
        };
        let plugin = match giver {
            Giver::Cluster => "kubernetes",
            Giver::Forward => "forward",
            Giver::Cache => "cache",
        };
        self.requests.with(&[SERVER, ZONE, VIEW, proto, family, asked_type(query)]).inc();
        if asks_for_signatures(query) {
            self.dnssec.with(&[SERVER, ZONE, VIEW]).inc();
        }
        self.responses.with(&[SERVER, ZONE, VIEW, code(answer), plugin]).inc();
        self.duration.with(&[SERVER, ZONE, VIEW]).observe(took.as_secs_f64());
        self.request_size.with(&[SERVER, ZONE, VIEW, proto]).observe(bytes(query));
        self.response_size.with(&[SERVER, ZONE, VIEW, proto]).observe(bytes(answer));
    }

    /// A kept answer was looked for, and found as an answer or denial or not at all.
    pub fn looked_up(&self, found: Option<Held>) {
        self.lookups.with(&[SERVER, ZONE, VIEW]).inc();
        match found {
            Some(held) => self.hits.with(&[SERVER, held_name(held), ZONE, VIEW]).inc(),
            None => self.misses.with(&[SERVER, ZONE, VIEW]).inc(),
        }
    }

    /// So many answers of a sort are kept.
    #[expect(clippy::cast_precision_loss, reason = "the cache is small")]
    pub fn kept(&self, held: Held, count: usize) {
        self.entries.with(&[SERVER, held_name(held), ZONE, VIEW]).set(count as f64);
    }

    /// So many kept answers of a sort made room for another.
    #[expect(clippy::cast_precision_loss, reason = "the cache is small")]
    pub fn evicted(&self, held: Held, count: usize) {
        self.evictions.with(&[SERVER, held_name(held), ZONE, VIEW]).inc_by(count as f64);
    }

    /// Too many queries waited for other servers.
    pub fn rejected(&self) {
        self.rejects.with(&[]).inc();
    }

    /// A query is handed on though no other server is known to be well.
    pub fn none_is_well(&self) {
        self.broken.with(&[]).inc();
    }

    /// The server at an address answered a query that was handed on.
    pub fn handed_on(&self, to: &str, answer: &[u8], took: Duration) {
        self.handed_on.with(&["forward", to, code(answer)]).observe(took.as_secs_f64());
    }

    /// A headless Service with a selector is answered as its pods have been for `took`.
    pub fn programmed(&self, took: Duration) {
        self.programmed.with(&["headless_with_selector"]).observe(took.as_secs_f64());
    }
}

fn held_name(held: Held) -> &'static str {
    match held {
        Held::Success => "success",
        Held::Denial => "denial",
    }
}

#[expect(clippy::cast_precision_loss, reason = "messages have 64 KiB at most")]
fn bytes(message: &[u8]) -> f64 {
    message.len() as f64
}

/// The type of a query's first question, without decoding all of it.
fn asked_type(query: &[u8]) -> &'static str {
    let mut rest = query.get(12..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first() {
        rest = after;
        if *length == 0 {
            break;
        }
        rest = rest.get(usize::from(*length)..).unwrap_or_default();
    }
    let number = rest.first_chunk::<2>().map_or(0, |pair| u16::from_be_bytes(*pair));
    match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        43 => "DS",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        50 => "NSEC3",
        65 => "HTTPS",
        _ => "other",
    }
}

/// Whether a query has the bit `DO`, for which only few have to be decoded: those with additional records.
fn asks_for_signatures(query: &[u8]) -> bool {
    query.get(10..12).is_some_and(|count| count != [0, 0])
        && Message::from_vec(query).is_ok_and(|query| query.edns.is_some_and(|edns| edns.flags().dnssec_ok))
}

/// The name of an answer's code.
fn code(answer: &[u8]) -> &'static str {
    match answer.get(3).map(|flags| flags & 0x0f) {
        Some(0) => "NOERROR",
        Some(1) => "FORMERR",
        Some(2) => "SERVFAIL",
        Some(3) => "NXDOMAIN",
        Some(4) => "NOTIMP",
        Some(5) => "REFUSED",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::MetricsOptions;
    use hickory_proto::op::{Query, ResponseCode};
    use hickory_proto::rr::{Name, RecordType};

    use super::*;

    #[test]
    fn queries_show_as_dashboards_look_for_them() {
        let metrics = Metrics::new(MetricsOptions::default());
        let own = DnsMetrics::new(&metrics);
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii("a.example.").unwrap(), RecordType::AAAA));
        let mut answer = Message::response(1, query.metadata.op_code);
        answer.metadata.response_code = ResponseCode::NXDomain;
        let source = Source { transport: Transport::Tcp, client: "[fd00::1]:9".parse().unwrap() };
        let (query, answer) = (query.to_vec().unwrap(), answer.to_vec().unwrap());
        own.answered(&query, &answer, source, Giver::Forward, Duration::from_millis(1));
        own.answered(b"", b"", source, Giver::Cluster, Duration::ZERO);
        let mut signed = Message::from_vec(&query).unwrap();
        signed.edns = Some(hickory_proto::op::Edns::new());
        own.answered(&signed.to_vec().unwrap(), &answer, source, Giver::Cluster, Duration::ZERO);
        signed.edns.as_mut().unwrap().set_dnssec_ok(true);
        own.answered(&signed.to_vec().unwrap(), &answer, source, Giver::Cluster, Duration::ZERO);
        own.looked_up(Some(Held::Denial));
        own.kept(Held::Success, 3);
        own.evicted(Held::Success, 2);
        own.programmed(Duration::from_secs(1));
        let text = metrics.text();
        for (name, labels, value) in [
            (
                "coredns_dns_requests_total",
                "family=\"2\",proto=\"tcp\",server=\"dns://:53\",type=\"AAAA\",view=\"\",zone=\".\"",
                3,
            ),
            ("coredns_dns_do_requests_total", "server=\"dns://:53\",view=\"\",zone=\".\"", 1),
            ("coredns_plugin_enabled", "name=\"forward\",server=\"dns://:53\",view=\"\",zone=\".\"", 1),
            (
                "coredns_dns_responses_total",
                "plugin=\"forward\",rcode=\"NXDOMAIN\",server=\"dns://:53\",view=\"\",zone=\".\"",
                1,
            ),
            ("coredns_dns_request_duration_seconds_count", "server=\"dns://:53\",view=\"\",zone=\".\"", 4),
            ("coredns_cache_hits_total", "server=\"dns://:53\",type=\"denial\",view=\"\",zones=\".\"", 1),
            ("coredns_cache_evictions_total", "server=\"dns://:53\",type=\"success\",view=\"\",zones=\".\"", 2),
            ("coredns_kubernetes_dns_programming_duration_seconds_count", "service_kind=\"headless_with_selector\"", 1),
            ("coredns_cache_entries", "server=\"dns://:53\",type=\"success\",view=\"\",zones=\".\"", 3),
        ] {
            let line = format!("{name}{{{labels}}} {value}\n");
            assert!(text.contains(&line), "{line}\nin\n{text}");
        }
    }
}
