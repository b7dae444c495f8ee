//! Providers against a plug-in that is a process of its own: what lies in the store, and what the plug-in does wrong.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrapPadded as _};
use base::{Clock, Rng, SystemClock, TaskGroup};
use component_base::metrics::{Metrics, MetricsOptions};
use parking_lot::Mutex;
use prost::Message as _;
use server_api::kms::fake::{Fault, PluginProcess, serve_if_asked, wrapping_key};
use server_api::kms::stored::EncryptedObject;
use tokio::time::Instant;

use super::health::{UNWELL_FOR, WELL_FOR};
use super::*;
use crate::EncryptionMetrics;
use crate::ciphers::{AES_CBC, AES_GCM};

const PLACE: &[u8] = b"/registry/secrets/default/a";
/// Long enough for a plug-in on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Serves as the plug-in of another test in a process of its own; alone it has nothing to do.
#[tokio::test]
async fn plugin_process() {
    serve_if_asked().await.unwrap();
}

/// A clock that can be set on.
struct Ahead(Mutex<Duration>);

impl Clock for Ahead {
    fn wall(&self) -> SystemTime {
        SystemClock.wall() + *self.0.lock()
    }

    fn monotonic(&self) -> Instant {
        SystemClock.monotonic() + *self.0.lock()
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    process: Option<PluginProcess>,
    clock: Arc<Ahead>,
    registry: Arc<Metrics>,
    around: Surroundings,
}

impl Fixture {
    async fn new() -> Self {
        let (clock, registry) = (Arc::new(Ahead(Mutex::default())), Metrics::new(MetricsOptions::default()));
        let around = Surroundings {
            clock: Arc::clone(&clock) as _,
            rng: Rng::seeded(1),
            tasks: TaskGroup::new("test"),
            metrics: EncryptionMetrics::new(&registry, "me".into()),
            kms_v1: true,
        };
        let directory = tempfile::tempdir().unwrap();
        let mut own = Self { directory, process: None, clock, registry, around };
        own.start().await;
        own
    }

    async fn start(&mut self) {
        let socket = self.directory.path().join("kms.sock");
        let process = PluginProcess::start(socket, "kms::tests::plugin_process");
        process.serves().await;
        self.process = Some(process);
    }

    fn process(&self) -> &PluginProcess {
        self.process.as_ref().unwrap()
    }

    fn kill(&mut self) {
        self.process = None;
    }

    fn later(&self, by: Duration) {
        *self.clock.0.lock() += by;
    }

    /// A provider, as a server that starts has it: nothing is remembered.
    fn provider(&self, version: &str, limit: Duration) -> Kms {
        let endpoint = format!("unix://{}", self.directory.path().join("kms.sock").display());
        let nanos = i64::try_from(limit.as_nanos()).unwrap();
        let own = KMSConfiguration {
            api_version: version.to_owned(),
            name: "p".to_owned(),
            endpoint,
            timeout: Some(api_machinery::time::GoDuration::from_nanos(nanos)),
            ..KMSConfiguration::default()
        };
        Kms::new(&own, &self.around).unwrap()
    }

    /// One that has asked for its key.
    async fn ready(&self) -> Arc<dyn Plugin> {
        let plugin = self.provider("v2", LIMIT).plugin;
        plugin.check().await.unwrap();
        plugin
    }

    /// What a check says that does not remember the last one.
    async fn checked(&self, plugin: &Arc<dyn Plugin>) -> String {
        self.later(WELL_FOR + Duration::from_secs(1));
        plugin.check().await.err().unwrap_or_default()
    }
}

/// The members of a message as they lie in it: number and bytes, or the number that stands there.
fn members(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes);
        let value = number(&mut bytes);
        all.push(match tag & 7 {
            0 => (tag >> 3, value.to_be_bytes().to_vec()),
            2 => {
                let (own, rest) = bytes.split_at(usize::try_from(value).unwrap());
                bytes = rest;
                (tag >> 3, own.to_vec())
            }
            other => panic!("wire type {other}"),
        });
    }
    all
}

/// Decrypts as KEP-3299 has it, with nothing of this crate: RFC 5649, RFC 5869 (one block of expansion), AES-GCM.
fn decrypted_by_the_book(key_id: &str, source: &[u8], data: &[u8], place: &[u8]) -> Vec<u8> {
    let kek = AesKek::new(&AES_256, &wrapping_key(key_id)).unwrap();
    let mut seed = vec![0; source.len()];
    let seed = kek.unwrap_with_padding(source, &mut seed).unwrap();
    assert_eq!(seed.len(), 32);
    let (info, rest) = data.split_at(32);
    let (nonce, sealed) = rest.split_at(12);
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, seed));
    context.update(info);
    context.update(&[1]);
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, context.sign().as_ref()).unwrap());
    let mut opened = sealed.to_vec();
    let nonce = Nonce::try_assume_unique_for_key(nonce).unwrap();
    key.open_in_place(nonce, Aad::from(place), &mut opened).unwrap().to_vec()
}

#[tokio::test]
async fn the_bytes_are_as_published() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.provider("v2", LIMIT).prefix, "k8s:enc:kms:v2:p:");
    let plugin = fixture.ready().await;
    let stored = plugin.seal(PLACE, b"words").await.unwrap();
    let all = members(&stored);
    let of = |number: u64| all.iter().find(|(own, _)| *own == number).map(|(_, bytes)| bytes.clone()).unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!((of(2), of(5)), (b"k1".to_vec(), 1_u64.to_be_bytes().to_vec()));
    assert_eq!(members(&of(4)), [(1, b"key.kms.example".to_vec()), (2, b"k1".to_vec())]);
    assert_eq!(decrypted_by_the_book("k1", &of(3), &of(1), PLACE), b"words");

    // Each value has a key of its own, of one seed; a server that starts makes another, and reads the first.
    let second = plugin.seal(PLACE, b"words").await.unwrap();
    let again = EncryptedObject::decode(&second[..]).unwrap();
    assert_eq!(again.encrypted_dek_source, of(3));
    assert_ne!(again.encrypted_data[..32], of(1)[..32]);
    let other = fixture.ready().await;
    let opened = other.open(PLACE, &stored).await.unwrap();
    assert_eq!((&opened.value[..], opened.stale), (&b"words"[..], false));
    let third = EncryptedObject::decode(&other.seal(PLACE, b"words").await.unwrap()[..]).unwrap();
    assert_ne!(third.encrypted_dek_source, of(3));
    assert!(other.open(b"/registry/secrets/default/b", &stored).await.is_err(), "it was moved");
}

#[tokio::test]
async fn values_without_a_seed_are_read() {
    let fixture = Fixture::new().await;
    let plugin = fixture.ready().await;
    let mut object = EncryptedObject::decode(&plugin.seal(PLACE, b"x").await.unwrap()[..]).unwrap();
    let kek = AesKek::new(&AES_256, &wrapping_key("k1")).unwrap();
    let (key, mut wrapped) = ([7; 32], [0; 47]);
    object.encrypted_dek_source = kek.wrap_with_padding(&key, &mut wrapped).unwrap().to_vec();
    object.encrypted_data = (AES_GCM.with_key)(&key).unwrap().seal(PLACE, b"older").unwrap();
    object.encrypted_dek_source_type = 0;
    let opened = plugin.open(PLACE, &object.encode_to_vec()).await.unwrap();
    assert_eq!((&opened.value[..], opened.stale), (&b"older"[..], true));
}

#[tokio::test]
async fn another_key_makes_what_lies_there_stale() {
    let fixture = Fixture::new().await;
    let plugin = fixture.ready().await;
    let first = plugin.seal(PLACE, b"words").await.unwrap();
    fixture.process().behave("k2", Fault::None);
    assert!(!plugin.open(PLACE, &first).await.unwrap().stale, "the plug-in was not asked since");
    assert_eq!(fixture.checked(&plugin).await, "");
    assert!(plugin.open(PLACE, &first).await.unwrap().stale);
    let second = plugin.seal(PLACE, b"words").await.unwrap();
    assert_eq!(EncryptedObject::decode(&second[..]).unwrap().key_id, "k2");
    assert!(!plugin.open(PLACE, &second).await.unwrap().stale);
    let text = fixture.registry.text();
    for (way, key, times) in [("to_storage", "k1", 1), ("from_storage", "k1", 2), ("to_storage", "k2", 1)] {
        let hash = component_base::metrics::hash_label(key.as_bytes());
        let line = format!(
            "apiserver_envelope_encryption_key_id_hash_total{{apiserver_id_hash=\"me\",key_id_hash=\"{hash}\",\
             provider_name=\"p\",transformation_type=\"{way}\"}} {times}"
        );
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(text.contains("_envelope_transformation_cache_misses_total 0"), "its own seeds are at hand: {text}");
}

#[tokio::test]
async fn lies_are_named() {
    let fixture = Fixture::new().await;
    let long = component_base::metrics::hash_label("k".repeat(1025).as_bytes());
    let cases = [
        (Fault::Unwell, "error: got unexpected healthz status: out of paper".to_owned()),
        (Fault::OtherVersion, "error: expected KMSv2 API version v2, got v9".to_owned()),
        (Fault::NoKeyId, "error: got invalid KMSv2 KeyID hash \"\": keyID is empty".to_owned()),
        (Fault::LongKeyId, format!("KeyID hash {long:?}: keyID is 1025 bytes, which exceeds the max size of 1024")),
        (Fault::OtherKey, "errGen=<nil>, statusKeyIDHash=\"sha256:".to_owned()),
        (Fault::LongCiphertext, "encrypted DEK source is 1025 bytes, which exceeds the max size of 1024".to_owned()),
        (Fault::LongAnnotations, "total size of annotations is".to_owned()),
        (Fault::BadAnnotation, "annotations: Invalid value: \"bad\": should be a domain".to_owned()),
        (
            Fault::Refuse,
            "failed to perform status section of the healthz check for KMS Provider p, error: rpc error: code = \
             PermissionDenied desc = not for you"
                .to_owned(),
        ),
    ];
    let old = fixture.ready().await.seal(PLACE, b"words").await.unwrap();
    for (fault, expected) in cases {
        fixture.process().behave("k1", fault);
        let plugin = fixture.provider("v2", LIMIT).plugin;
        let error = plugin.check().await.unwrap_err();
        assert!(error.contains(&expected), "{fault:?}: {error}");
        if fault != Fault::Refuse {
            assert!(error.starts_with("kmsv2 Provider p is not healthy, error: "), "{fault:?}: {error}");
        }
        // Nothing is written with what cannot be used; who is only unwell, or names another version, still has a key.
        let has_key = matches!(fault, Fault::Unwell | Fault::OtherVersion);
        assert_eq!(plugin.seal(PLACE, b"words").await.is_ok(), has_key, "{fault:?}");
        if !has_key {
            let error = plugin.open(PLACE, &old).await.err().unwrap().to_string();
            assert_eq!(error, "got unexpected nil transformer", "{fault:?}");
        }
    }
    for (fault, expected) in [
        (Fault::Garbage, "cipher: message authentication failed"),
        (Fault::Short, "invalid seed length 5 used for key generation"),
        (Fault::Refuse, "failed to decrypt DEK, error: rpc error: code = PermissionDenied desc = not for you"),
    ] {
        fixture.process().behave("k1", Fault::None);
        let plugin = fixture.ready().await;
        fixture.process().behave("k1", fault);
        assert_eq!(plugin.open(PLACE, &old).await.err().unwrap().to_string(), expected);
    }
    let told = fixture.registry.text();
    for error in ["empty", "too_long"] {
        let line = format!("invalid_key_id_from_status_total{{error=\"{error}\",provider_name=\"p\"}} 1");
        assert!(told.contains(&line), "{told}");
    }
}

#[tokio::test]
async fn a_plug_in_that_is_gone_does_not_take_what_is_known_along() {
    let mut fixture = Fixture::new().await;
    let plugin = fixture.ready().await;
    let stored = plugin.seal(PLACE, b"words").await.unwrap();
    let stranger = fixture.ready().await.seal(PLACE, b"strange").await.unwrap();
    fixture.kill();
    let fresh = fixture.provider("v2", Duration::from_millis(200)).plugin;
    let error = fresh.check().await.unwrap_err();
    assert!(
        error.contains("code = DeadlineExceeded desc = latest balancer error: connection error: desc = "),
        "{error}"
    );
    assert_eq!(fresh.open(PLACE, &stored).await.err().unwrap().to_string(), "got unexpected nil transformer");

    assert_eq!(plugin.open(PLACE, &stored).await.unwrap().value, b"words");
    assert!(plugin.seal(PLACE, b"more").await.is_ok());
    fixture.later(Duration::from_secs(3 * 60 + 1));
    let error = plugin.seal(PLACE, b"more").await.unwrap_err().to_string();
    assert!(error.starts_with("encryptedDEKSource with keyID hash \"sha256:") && error.contains("\" expired at "));
    assert_eq!(plugin.open(PLACE, &stored).await.unwrap().value, b"words", "reads go on");

    fixture.start().await;
    assert_eq!(fixture.checked(&plugin).await, "");
    assert!(plugin.seal(PLACE, b"more").await.is_ok(), "the same seed again");
    assert_eq!(plugin.open(PLACE, &stranger).await.unwrap().value, b"strange");
}

#[tokio::test]
async fn a_plug_in_that_hangs_holds_nobody_up_for_long() {
    let fixture = Fixture::new().await;
    let limit = Duration::from_secs(2);
    let plugin = fixture.provider("v2", limit).plugin;
    plugin.check().await.unwrap();
    let own = plugin.seal(PLACE, b"words").await.unwrap();
    let foreign = fixture.ready().await.seal(PLACE, b"foreign").await.unwrap();
    fixture.process().behave("k1", Fault::Hang);
    fixture.later(WELL_FOR);
    let began = SystemClock.monotonic();
    let asking = {
        let plugin = Arc::clone(&plugin);
        async move { plugin.check().await }
    };
    let using = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = SystemClock.monotonic();
        assert!(plugin.seal(PLACE, b"more").await.is_ok());
        assert_eq!(plugin.open(PLACE, &own).await.unwrap().value, b"words");
        SystemClock.monotonic() - before
    };
    let (asked, used) = tokio::join!(asking, using);
    assert!(asked.unwrap_err().contains("code = DeadlineExceeded desc = context deadline exceeded"));
    assert!(used < limit / 2, "the check is under way meanwhile: {used:?}");
    // A list with many values of somebody else's seed waits once.
    for _ in 0..100 {
        let error = plugin.open(PLACE, &foreign).await.err().unwrap();
        assert_eq!(error.code(), "DeadlineExceeded");
    }
    let took = SystemClock.monotonic() - began;
    assert!(took < limit * 5, "{took:?}");
    fixture.process().behave("k1", Fault::None);
    fixture.later(UNWELL_FOR);
    assert_eq!(plugin.open(PLACE, &foreign).await.unwrap().value, b"foreign");
}

#[tokio::test]
async fn a_server_that_starts_waits_for_the_first_answer() {
    let fixture = Fixture::new().await;
    let plugin = fixture.provider("v2", LIMIT).plugin;
    fixture.around.tasks.spawn_cancellable("test", Arc::clone(&plugin).follow());
    assert!(plugin.seal(PLACE, b"words").await.is_ok());
    fixture.around.tasks.cancel();
}

#[tokio::test]
async fn version_one_has_a_key_for_each_value() {
    let fixture = Fixture::new().await;
    let kms = fixture.provider("v1", LIMIT);
    assert_eq!(kms.prefix, "k8s:enc:kms:v1:p:");
    assert_eq!(kms.plugin.check().await, Ok(()));
    let stored = kms.plugin.seal(PLACE, b"words").await.unwrap();
    let (length, rest) = stored.split_first_chunk::<2>().unwrap();
    let (wrapped, sealed) = rest.split_at(usize::from(u16::from_be_bytes(*length)));
    let kek = AesKek::new(&AES_256, &wrapping_key("v1")).unwrap();
    let mut key = vec![0; wrapped.len()];
    let key = kek.unwrap_with_padding(wrapped, &mut key).unwrap().to_vec();
    assert_eq!((AES_GCM.with_key)(&key).unwrap().open(PLACE, sealed).unwrap(), b"words");

    let other = fixture.provider("v1", LIMIT).plugin;
    assert_eq!(other.open(PLACE, &stored).await.unwrap().value, b"words");
    let older = (AES_CBC.with_key)(&key).unwrap().seal(PLACE, b"older").unwrap();
    let older = [&length[..], wrapped, &older].concat();
    let opened = other.open(PLACE, &older).await.unwrap();
    assert_eq!((&opened.value[..], opened.stale), (&b"older"[..], true));
    for cut in [0, 1, 2, 40] {
        assert!(other.open(PLACE, &stored[..cut]).await.is_err(), "{cut}");
    }
    let text = fixture.registry.text();
    assert!(text.contains("dek_cache_fill_percent 0.001"), "{text}");
    assert!(text.contains("inter_arrival_time_seconds_count{transformation_type=\"from_storage\"}"), "{text}");
    fixture.process().behave("", Fault::Garbage);
    let error = fixture.checked(&other).await;
    assert!(error.starts_with("failed to perform decrypt section of the healthz check for KMS Provider p, error: "));
}
