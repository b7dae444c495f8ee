//! Metrics under the names that dashboards for cluster DNS look for, those of CoreDNS.
//!
//! Deliberately not here: families of plugins that have no counterpart, and those about each single upstream.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};
use component_base::version::git_version;

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
const REJECTS: Desc =
    desc("coredns_forward_max_concurrent_rejects_total", "Queries refused because too many waited for other servers.");

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
    responses: Counters,
    duration: Histograms,
    request_size: Histograms,
    response_size: Histograms,
    entries: Gauges,
    hits: Counters,
    misses: Counters,
    lookups: Counters,
    rejects: Counters,
}

impl DnsMetrics {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Arc<Self> {
        metrics.gauges(&BUILD).with(&[git_version(), "", ""]).set(1.0);
        Arc::new(Self {
            requests: metrics.counters(&REQUESTS),
            responses: metrics.counters(&RESPONSES),
            duration: metrics.histograms(&DURATION),
            request_size: metrics.histograms(&REQUEST_SIZE),
            response_size: metrics.histograms(&RESPONSE_SIZE),
            entries: metrics.gauges(&ENTRIES),
            hits: metrics.counters(&HITS),
            misses: metrics.counters(&MISSES),
            lookups: metrics.counters(&LOOKUPS),
            rejects: metrics.counters(&REJECTS),
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

    /// Too many queries waited for other servers.
    pub fn rejected(&self) {
        self.rejects.with(&[]).inc();
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
    use hickory_proto::op::{Message, Query, ResponseCode};
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
        own.looked_up(Some(Held::Denial));
        own.kept(Held::Success, 3);
        let text = metrics.text();
        for (name, labels, value) in [
            (
                "coredns_dns_requests_total",
                "family=\"2\",proto=\"tcp\",server=\"dns://:53\",type=\"AAAA\",view=\"\",zone=\".\"",
                1,
            ),
            (
                "coredns_dns_responses_total",
                "plugin=\"forward\",rcode=\"NXDOMAIN\",server=\"dns://:53\",view=\"\",zone=\".\"",
                1,
            ),
            ("coredns_dns_request_duration_seconds_count", "server=\"dns://:53\",view=\"\",zone=\".\"", 2),
            ("coredns_cache_hits_total", "server=\"dns://:53\",type=\"denial\",view=\"\",zones=\".\"", 1),
            ("coredns_cache_entries", "server=\"dns://:53\",type=\"success\",view=\"\",zones=\".\"", 3),
        ] {
            let line = format!("{name}{{{labels}}} {value}\n");
            assert!(text.contains(&line), "{line}\nin\n{text}");
        }
    }
}
