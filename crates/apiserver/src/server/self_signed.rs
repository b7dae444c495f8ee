//! The pair that the server makes for itself when it is given none.

use std::sync::Arc;
use std::time::Duration;

use base::{SharedClock, SharedRng};
use component_base::serving::BoxError;
use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};

use crate::config::ServerConfig;

const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

/// The names that clients within the cluster know the server by.
pub(super) fn names(config: &ServerConfig) -> Vec<String> {
    let mut names = vec![config.advertise_address.to_string()];
    names.extend(["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"].map(str::to_owned));
    names.extend(config.services.first_address().map(|address| address.to_string()));
    names.push("127.0.0.1".to_owned());
    names
}

/// A certificate chain and its key, in PEM form.
type Pair = (Vec<u8>, Vec<u8>);

/// Makes a certificate with an authority of its own, and its key, in PEM form.
pub(crate) fn generator(clock: &SharedClock, rng: &SharedRng) -> impl Fn(&[String]) -> Result<Pair, BoxError> + use<> {
    let (clock, rng) = (Arc::clone(clock), Arc::clone(rng));
    move |names| {
        let algorithm = KeyAlgorithm::EcdsaP256;
        let common_name = names.first().map(String::as_str).unwrap_or("kube-apiserver");
        let now = clock.wall();
        let authority_key = PrivateKey::generate(algorithm)?;
        let authority = CertificateAuthority::create(&format!("{common_name}-ca"), authority_key, VALIDITY, now, &rng)?;
        let mut alt_names = AltNames::default();
        names.iter().for_each(|name| alt_names.push_host(name));
        alt_names.normalize();
        let key = PrivateKey::generate(algorithm)?;
        let spec = CertificateSpec::server(common_name, alt_names, VALIDITY);
        let leaf = authority.issue(&spec, key.public_key(), now, &rng)?;
        let chain = format!("{}{}", leaf.to_pem(), authority.certificate().to_pem());
        Ok((chain.into_bytes(), key.to_pem()?.into_bytes()))
    }
}
