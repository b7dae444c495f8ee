//! What the zone says to a question.

use std::collections::HashSet;
use std::net::IpAddr;

use hickory_proto::rr::rdata::{A, AAAA, CNAME, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::data::{ClusterData, EndpointRecord, PortRecord, ServiceRecord};
use crate::name::{Asked, Part, parse};

/// How long the version of the naming scheme may be kept.
const VERSION_TTL: u32 = 28_800;
const VERSION: &str = "1.1.0";
const MAX_SOA_TTL: u32 = 300;
/// How many aliases inside the zone are followed.
const MAX_ALIASES: usize = 8;

/// The zone's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The domain, lower-case and without the last dot.
    pub domain: String,
    /// How long answers may be kept, in seconds.
    pub ttl: u32,
    /// The Service of the DNS server itself: namespace and name.
    pub own_service: (String, String),
}

/// What the zone says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Whether it worked.
    pub outcome: Resolution,
    /// The records that were asked for.
    pub answers: Vec<Record>,
    /// The authority's own record, in negative answers.
    pub authorities: Vec<Record>,
    /// Addresses of names in the answers.
    pub additionals: Vec<Record>,
    /// A name outside the zone at which an alias ends.
    pub follow: Option<Name>,
}

/// Whether it worked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resolution {
    /// The name exists; there may be no records of the type.
    #[default]
    Found,
    /// There is no such name.
    NoSuchName,
    /// Nothing is known yet.
    NotReady,
    /// The name is not in the zone.
    Foreign,
}

/// A question inside the zone.
struct Question<'a> {
    zone: &'a Zone,
    data: &'a dyn ClusterData,
    /// The name as it was asked, which answers repeat.
    name: &'a Name,
    kind: RecordType,
}

impl Zone {
    /// Answers a question.
    #[must_use]
    pub fn reply(&self, data: &dyn ClusterData, name: &Name, kind: RecordType) -> Reply {
        let question = Question { zone: self, data, name, kind };
        let text = plain(name);
        let mut reply =
            question.reply(&parse(&text, &self.domain)).unwrap_or_else(|outcome| Reply { outcome, ..Reply::default() });
        if reply.outcome == Resolution::NoSuchName && !data.is_synced() {
            reply.outcome = Resolution::NotReady;
        }
        let negative = reply.answers.is_empty() && matches!(reply.outcome, Resolution::Found | Resolution::NoSuchName);
        if negative {
            reply.authorities.push(self.authority(data.serial()));
        }
        self.follow_aliases(data, &mut reply, kind);
        reply
    }

    /// Appends what an alias stands for, as far as this zone knows.
    fn follow_aliases(&self, data: &dyn ClusterData, reply: &mut Reply, kind: RecordType) {
        for _ in 0..MAX_ALIASES {
            let Some(target) = reply.follow.clone() else { return };
            if parse(&plain(&target), &self.domain) == Asked::Foreign {
                return;
            }
            reply.follow = None;
            let next = Question { zone: self, data, name: &target, kind };
            let Ok(found) = next.reply(&parse(&plain(&target), &self.domain)) else { return };
            reply.answers.extend(found.answers);
            reply.follow = found.follow;
        }
        reply.follow = None;
    }

    /// The record of the zone's authority.
    fn authority(&self, serial: u32) -> Record {
        let (server, mail) = (self.absolute("ns.dns."), self.absolute("hostmaster."));
        let data = SOA::new(server, mail, serial, 7200, 1800, 86_400, self.ttl);
        Record::from_rdata(self.absolute(""), self.ttl.min(MAX_SOA_TTL), RData::SOA(data))
    }

    fn absolute(&self, prefix: &str) -> Name {
        Name::from_ascii(format!("{prefix}{}.", self.domain)).unwrap_or_default()
    }

    fn service_name(&self, namespace: &str, service: &str) -> String {
        format!("{service}.{namespace}.svc.{}.", self.domain)
    }
}

fn plain(name: &Name) -> String {
    name.to_ascii().trim_end_matches('.').to_ascii_lowercase()
}

type Found = Result<Reply, Resolution>;

impl Question<'_> {
    fn reply(&self, asked: &Asked) -> Found {
        match asked {
            Asked::Foreign => Err(Resolution::Foreign),
            Asked::Nothing => Err(Resolution::NoSuchName),
            Asked::Apex => Ok(self.apex()),
            Asked::NameServer => Ok(self.addresses(self.own_addresses())),
            Asked::Version => Ok(self.version()),
            Asked::Between { namespace } => match namespace {
                Some(name) if !self.data.has_namespace(name) => Err(Resolution::NoSuchName),
                _ => Ok(Reply::default()),
            },
            Asked::Pod { namespace, address } => match address {
                Some(address) if self.data.has_namespace(namespace) => Ok(self.addresses([*address])),
                _ => Err(Resolution::NoSuchName),
            },
            Asked::Reverse(address) => self.pointer(*address),
            Asked::Service { namespace, service, part } => {
                let found = self.data.service(namespace, service).filter(|_| self.data.has_namespace(namespace));
                self.service(&found.ok_or(Resolution::NoSuchName)?, part)
            }
        }
    }

    fn record(&self, data: RData) -> Record {
        Record::from_rdata(self.name.clone(), self.zone.ttl, data)
    }

    /// Those of the addresses that are of the family that was asked for, each once.
    fn addresses(&self, all: impl IntoIterator<Item = IpAddr>) -> Reply {
        let mut seen = HashSet::new();
        let once = all.into_iter().filter(|address| seen.insert(*address));
        let answers =
            once.filter_map(|address| address_data(address, self.kind)).map(|data| self.record(data)).collect();
        Reply { answers, ..Reply::default() }
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        let (namespace, name) = &self.zone.own_service;
        self.data.service(namespace, name).map(|own| own.cluster_ips).unwrap_or_default()
    }

    fn apex(&self) -> Reply {
        let mut reply = Reply::default();
        match self.kind {
            RecordType::SOA => reply.answers.push(self.zone.authority(self.data.serial())),
            RecordType::NS => {
                let (namespace, name) = &self.zone.own_service;
                let known = self.data.service(namespace, name);
                let service = || Name::from_ascii(self.zone.service_name(namespace, name)).ok();
                let server = known.as_ref().and_then(|_| service()).unwrap_or_else(|| self.zone.absolute("ns.dns."));
                reply.additionals = self.glue(&server, &known.map(|own| own.cluster_ips).unwrap_or_default());
                reply.answers.push(self.record(RData::NS(NS(server))));
            }
            _ => {}
        }
        reply
    }

    fn version(&self) -> Reply {
        let mut reply = Reply::default();
        if self.kind == RecordType::TXT {
            let data = RData::TXT(TXT::new(vec![VERSION.to_owned()]));
            reply.answers.push(Record::from_rdata(self.name.clone(), VERSION_TTL, data));
        }
        reply
    }

    fn pointer(&self, address: Option<IpAddr>) -> Found {
        // What is not an address of the cluster may be known elsewhere.
        let address = address.ok_or(Resolution::Foreign)?;
        let names: Vec<String> = match self.data.service_by_ip(address) {
            Some(service) => vec![self.zone.service_name(&service.namespace, &service.name)],
            None => {
                let endpoints = self.data.endpoints_by_ip(address).into_iter();
                let name = |(namespace, service, endpoint): (String, String, EndpointRecord)| {
                    format!("{}.{}", endpoint.label, self.zone.service_name(&namespace, &service))
                };
                endpoints.map(name).collect()
            }
        };
        if names.is_empty() {
            return Err(Resolution::Foreign);
        }
        let mut reply = Reply::default();
        if self.kind == RecordType::PTR {
            // An endpoint may stand in several slices of its Service.
            let mut seen = HashSet::new();
            let once = names.iter().filter(|name| seen.insert(name.as_str()));
            let targets = once.filter_map(|name| Name::from_ascii(name).ok());
            reply.answers = targets.map(|name| self.record(RData::PTR(PTR(name)))).collect();
        }
        Ok(reply)
    }

    fn service(&self, service: &ServiceRecord, part: &Part) -> Found {
        if !service.external_name.is_empty() {
            return self.alias(service, part);
        }
        let mut endpoints = self.data.endpoints(&service.namespace, &service.name);
        match part {
            Part::Endpoint(label) => {
                endpoints.retain(|one| one.label == *label);
                self.of_endpoints(service, part, &endpoints)
            }
            _ if service.is_headless() => self.of_endpoints(service, part, &endpoints),
            _ => self.with_address(service, part),
        }
    }

    /// An alias, whatever type is asked for; an address is no name to stand for.
    fn alias(&self, service: &ServiceRecord, part: &Part) -> Found {
        let is_address = service.external_name.parse::<IpAddr>().is_ok();
        let target = Name::from_ascii(format!("{}.", service.external_name)).ok().filter(|_| !is_address);
        let (Part::Whole, Some(target)) = (part, target) else { return Err(Resolution::NoSuchName) };
        if self.kind == RecordType::SRV {
            return Ok(Reply::default());
        }
        let answers = vec![self.record(RData::CNAME(CNAME(target.clone())))];
        let follow = (self.kind != RecordType::CNAME).then_some(target);
        Ok(Reply { answers, follow, ..Reply::default() })
    }

    fn with_address(&self, service: &ServiceRecord, part: &Part) -> Found {
        let ports: Vec<&PortRecord> = service.ports.iter().filter(|port| is_asked(port, part)).collect();
        if ports.is_empty() && *part != Part::Whole {
            return Err(Resolution::NoSuchName);
        }
        if self.kind != RecordType::SRV {
            return Ok(self.addresses(service.cluster_ips.iter().copied()));
        }
        let text = self.zone.service_name(&service.namespace, &service.name);
        let target = Name::from_ascii(text).unwrap_or_default();
        let services: Vec<(u16, Name)> = ports.iter().map(|port| (port.number, target.clone())).collect();
        let additionals = self.glue(&target, &service.cluster_ips);
        Ok(Reply { answers: self.locations(services), additionals, ..Reply::default() })
    }

    fn of_endpoints(&self, service: &ServiceRecord, part: &Part, endpoints: &[EndpointRecord]) -> Found {
        if endpoints.is_empty() {
            return Err(Resolution::NoSuchName);
        }
        let matching: Vec<(&EndpointRecord, &PortRecord)> = endpoints
            .iter()
            .flat_map(|one| one.ports.iter().map(move |port| (one, port)))
            .filter(|(_, port)| is_asked(port, part))
            .collect();
        match part {
            Part::Port(..) if matching.is_empty() => Err(Resolution::NoSuchName),
            _ if self.kind == RecordType::SRV => Ok(self.endpoint_locations(service, &matching)),
            Part::Port(..) => Ok(self.addresses(matching.iter().map(|(one, _)| one.address))),
            _ => Ok(self.addresses(endpoints.iter().map(|one| one.address))),
        }
    }

    /// Locations of endpoints: one for each name and port, however many addresses the name has.
    fn endpoint_locations(&self, service: &ServiceRecord, matching: &[(&EndpointRecord, &PortRecord)]) -> Reply {
        let base = self.zone.service_name(&service.namespace, &service.name);
        let (mut located, mut addressed) = (HashSet::new(), HashSet::new());
        let (mut services, mut additionals) = (Vec::new(), Vec::new());
        for (endpoint, port) in matching {
            let Ok(target) = Name::from_ascii(format!("{}.{base}", endpoint.label)) else { continue };
            if addressed.insert((&endpoint.label, endpoint.address)) {
                additionals.extend(self.glue(&target, &[endpoint.address]));
            }
            if located.insert((&endpoint.label, port.number)) {
                services.push((port.number, target));
            }
        }
        Reply { answers: self.locations(services), additionals, ..Reply::default() }
    }

    /// Service location records that share the load evenly.
    fn locations(&self, services: Vec<(u16, Name)>) -> Vec<Record> {
        let weight = u16::try_from(100 / services.len().max(1)).unwrap_or(0).max(1);
        services.into_iter().map(|(port, target)| self.record(RData::SRV(SRV::new(0, weight, port, target)))).collect()
    }

    /// The addresses of a name, of both families.
    fn glue(&self, name: &Name, addresses: &[IpAddr]) -> Vec<Record> {
        let data = |address: &IpAddr| match address {
            IpAddr::V4(v4) => RData::A(A(*v4)),
            IpAddr::V6(v6) => RData::AAAA(AAAA(*v6)),
        };
        addresses.iter().map(|address| Record::from_rdata(name.clone(), self.zone.ttl, data(address))).collect()
    }
}

fn address_data(address: IpAddr, kind: RecordType) -> Option<RData> {
    match (address, kind) {
        (IpAddr::V4(v4), RecordType::A) => Some(RData::A(A(v4))),
        (IpAddr::V6(v6), RecordType::AAAA) => Some(RData::AAAA(AAAA(v6))),
        _ => None,
    }
}

/// Whether a port is the one that is asked for; all are when the Service is.
fn is_asked(port: &PortRecord, part: &Part) -> bool {
    match part {
        Part::Whole | Part::Endpoint(_) => true,
        Part::Port(name, protocol) => !port.name.is_empty() && port.name == *name && port.protocol == *protocol,
    }
}

#[cfg(test)]
#[path = "zone_tests.rs"]
mod tests;
