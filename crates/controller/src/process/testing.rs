//! Authorities, and what API servers say of them.

use std::time::{Duration, SystemTime};

use api_machinery::object::Object;
use api_types::core_v1::ConfigMap;
use base::{Rng, SharedClock};
use client::fake::FakeServer;
use component_base::serving::PeerCertificates;
use pki::{
    Certificate, CertificateAuthority, CertificateSpec, KeyAlgorithm, Name, NameAttribute, PrivateKey, USER_UID_DOTTED,
};

use super::access::MASTERS;

const HOUR: Duration = Duration::from_secs(3600);
/// Where API servers say it.
pub(super) const MAPS: &str = "v1/configmaps";

/// Somebody who vouches for clients, for an hour.
pub(super) struct Authority {
    own: CertificateAuthority,
    now: SystemTime,
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

impl Authority {
    pub(super) fn new(name: &str, clock: &SharedClock) -> Self {
        let now = clock.wall();
        let own = CertificateAuthority::create(name, key(), HOUR, now, &Rng::seeded(1)).expect("an authority");
        Self { own, now }
    }

    pub(super) fn pem(&self) -> String {
        self.own.certificate().to_pem()
    }

    /// What somebody of a group shows, and the key to it.
    pub(super) fn issue(&self, user: &str, group: &str) -> (Certificate, PrivateKey) {
        let (spec, key) = (CertificateSpec::client(user, &[group.to_owned()], HOUR), key());
        let leaf = self.own.issue(&spec, key.public_key(), self.now, &Rng::seeded(2));
        (leaf.expect("a certificate"), key)
    }

    /// A request for `/metrics` by somebody of a group.
    pub(super) fn request(&self, user: &str, group: &str) -> http::Request<()> {
        Self::shown(&self.issue(user, group).0)
    }

    /// The same by somebody with uids in the subject, and no group.
    pub(super) fn request_with_uids(&self, user: &str, uids: &[&str]) -> http::Request<()> {
        let attribute = |oid: &str, value: &str| NameAttribute { oid: oid.to_owned(), value: Some(value.to_owned()) };
        let mut attributes = vec![attribute("2.5.4.3", user)];
        attributes.extend(uids.iter().map(|uid| attribute(USER_UID_DOTTED, uid)));
        let mut spec = CertificateSpec::client("", &[], HOUR);
        spec.subject = Name::from_attributes(attributes);
        let leaf = self.own.issue(&spec, key().public_key(), self.now, &Rng::seeded(2));
        Self::shown(&leaf.expect("a certificate"))
    }

    fn shown(leaf: &Certificate) -> http::Request<()> {
        let mut request = http::Request::get("/metrics").body(()).expect("a request");
        request.extensions_mut().insert(PeerCertificates(vec![leaf.der().to_vec().into()].into()));
        request
    }

    /// The same of a front proxy that speaks for an administrator.
    pub(super) fn proxied(&self, proxy: &str) -> http::Request<()> {
        let mut request = self.request(proxy, "proxies");
        for (name, value) in [("x-remote-user", "root"), ("x-remote-group", MASTERS)] {
            request.headers_mut().insert(name, http::HeaderValue::from_static(value));
        }
        request
    }
}

/// Has API servers say this.
pub(super) fn publish(server: &FakeServer, data: &[(&str, &str)]) {
    let mut map = ConfigMap::default();
    (map.metadata.namespace, map.metadata.name) =
        ("kube-system".to_owned(), "extension-apiserver-authentication".to_owned());
    map.data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    server.put(MAPS, (&map as &dyn Object).to_value());
}
