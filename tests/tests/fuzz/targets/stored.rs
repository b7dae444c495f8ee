//! What lies in a store, which others have written, or nobody: the first line of an input names the kind, the rest is the value
//! of a key. It passes the providers of a file with keys, as encrypted values do, and is read as an object. What was read is
//! written in every form, sealed and not, and is read as the same.

use std::sync::Arc;

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use component_base::metrics::{Metrics, MetricsOptions};
use encryption::{EncryptionMetrics, Live, Surroundings};
use kinds::rules::Rules;
use rand::RngExt as _;
use rand::rngs::StdRng;
use registry::{ObjectCodec, StorageMedia};
use storage::{Key, Transformer};
use tokio::runtime::Runtime;

use super::{line_of, of_kind};
use crate::engine::{Answer, Target};
use crate::objects;

const MEDIA: [StorageMedia; 3] = [StorageMedia::Protobuf, StorageMedia::Json, StorageMedia::Cbor];
/// Where the value lies.
const PLACE: &str = "/registry/any/thing";

/// Each kind of provider with a key writes what is of one resource; all read. The secret is 32 zeros.
const FILE: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- {resources: [a], providers: [{aescbc: KEYS}, {aesgcm: KEYS}, {secretbox: KEYS}, {identity: {}}]}
- {resources: [b], providers: [{aesgcm: KEYS}]}
- {resources: [c], providers: [{secretbox: KEYS}]}
";
const KEYS: &str = "{keys: [{name: a, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}";
const RESOURCES: [&str; 3] = ["a", "b", "c"];

pub(super) const STORED: Target = Target {
    name: "stored",
    words: &[
        "k8s\0",
        "k8s:enc:",
        "k8s:enc:aescbc:v1:a:",
        "k8s:enc:aesgcm:v1:a:",
        "k8s:enc:secretbox:v1:a:",
        "k8s:enc:kms:v1:a:",
        "k8s:enc:kms:v2:a:",
        "\n\u{4}\n\u{2}v1\u{12}",
        "\u{12}\u{2}",
        "\u{1a}\0\"\0",
        "application/json",
        "{\"kind\":",
        ",\"apiVersion\":\"",
        "v1beta1",
        "extensions/v1beta1",
        "\"metadata\":{",
    ],
    made: Some(made),
    inputs: 500,
    player: || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let transformers = runtime.block_on(transformers());
        Box::new(move |input| {
            let (rules, value) = of_kind(input);
            let read = match runtime.block_on(transformers[0].on_read(&key(), &Bytes::copy_from_slice(value))) {
                Ok(read) => read,
                Err(error) => return Answer::Refused(error.to_string()),
            };
            Answer::of(ObjectCodec::built_in(rules, StorageMedia::Protobuf).read(&read.value), |mut object| {
                for media in MEDIA {
                    let codec = ObjectCodec::built_in(rules, media);
                    let written = codec.encode(&mut *object);
                    transformers.iter().for_each(|own| kept(&runtime, &**own, &written));
                    if let Some(mut once) = again(&codec, &written, media) {
                        let own = codec.encode(&mut *once);
                        // A time that is there and zero is null where it is a text, and then not there.
                        assert!(media != StorageMedia::Protobuf || own == written, "{media:?}");
                        let twice = again(&codec, &own, media).map(|mut twice| codec.encode(&mut *twice));
                        assert_eq!(twice, Some(own), "{media:?}");
                    }
                }
                String::new()
            })
        })
    },
};

fn key() -> Key {
    Key::new(PLACE)
}

/// What was written, read. Nothing where it has a year that only protobuf can tell: upstream writes it so, too.
fn again(codec: &ObjectCodec, written: &[u8], media: StorageMedia) -> Option<Box<dyn Object>> {
    match codec.read(written) {
        Ok(object) => Some(object),
        Err(error) if error.starts_with("parsing time ") => None,
        Err(error) => panic!("what was written is read: {media:?}: {error}"),
    }
}

/// A value that is sealed is opened as the same.
fn kept(runtime: &Runtime, transformer: &dyn Transformer, value: &Bytes) {
    runtime.block_on(async {
        let sealed = transformer.on_write(&key(), value).await.expect("it can be sealed");
        let opened = transformer.on_read(&key(), &sealed).await.expect("it can be opened");
        assert_eq!((&opened.value, opened.stale), (value, false));
    });
}

async fn transformers() -> [Arc<dyn Transformer>; 3] {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("providers");
    std::fs::write(&file, FILE.replace("KEYS", KEYS)).expect("the file can be written");
    let around = Surroundings {
        clock: TokioClock::shared(),
        rng: Rng::seeded(1),
        tasks: TaskGroup::new("fuzz"),
        metrics: EncryptionMetrics::new(&Metrics::new(MetricsOptions::default()), "fuzz".to_owned()),
        kms_v1: false,
    };
    let live = Live::load(file, false, around).expect("the file is good");
    RESOURCES.map(|resource| live.transformer(&GroupResource::named("", resource)))
}

/// An object of any kind as it is stored.
fn made(rng: &mut StdRng) -> Vec<u8> {
    let (rules, object) = objects::any(rng);
    let mut input = line_of(rules).into_bytes();
    input.push(b'\n');
    input.extend(stored(rules, &object.to_string(), MEDIA[rng.random_range(0..MEDIA.len())]));
    input
}

fn stored(rules: &'static dyn Rules, object: &str, media: StorageMedia) -> Bytes {
    let mut made = rules.new_object();
    // What does not fit is left out.
    drop(api_machinery::json::decode(object.as_bytes(), made.as_reflect_mut()));
    ObjectCodec::built_in(rules, media).encode(&mut *made)
}
