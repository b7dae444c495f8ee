//! Texts with a grammar of their own. What was read is written and read again, and is the same.

use api_machinery::fields::FieldSelector;
use api_machinery::json;
use api_machinery::labels::Selector;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;
use api_machinery::time::{GoDuration, MicroTime, Time};
use api_machinery::value::json_type;
use component_helpers::cron::Schedule;
use component_helpers::fnv::fnv64;
use registry::{Shards, normalized_shards};
use schema::JsonPath;

use super::{parts, text};
use crate::engine::{Answer, Target};

pub(super) const LABEL_SELECTORS: Target = Target {
    name: "label-selectors",
    words: &["in", "notin", "(", ")", ",", "==", "!=", "!", ">", "<", "a/b", " exists", "=,"],
    made: None,
    inputs: 500,
    player: || {
        Box::new(|input| {
            Answer::of(Selector::parse(text(input)), |selector| {
                let own = selector.to_string();
                let again = Selector::parse(&own).unwrap_or_else(|error| panic!("{own:?} cannot be read: {error}"));
                assert_eq!(again.to_string(), own);
                String::new()
            })
        })
    },
};

pub(super) const FIELD_SELECTORS: Target = Target {
    name: "field-selectors",
    words: &["==", "!=", "=", ",", "\\,", "\\\\", "\\=", "metadata.name", "spec.nodeName", "\\"],
    made: None,
    inputs: 500,
    player: || {
        Box::new(|input| {
            Answer::of(FieldSelector::parse(text(input)), |selector| {
                let again = |selector: &FieldSelector| {
                    let own = selector.to_string();
                    FieldSelector::parse(&own).unwrap_or_else(|error| panic!("{own:?} cannot be read: {error}"))
                };
                // Its parts are in the order of how they were written, which is another one way for all from here on.
                let once = again(&selector);
                assert_eq!(once.to_string().len(), selector.to_string().len());
                assert_eq!(again(&once).to_string(), once.to_string());
                String::new()
            })
        })
    },
};

pub(super) const SHARD_SELECTORS: Target = Target {
    name: "shard-selectors",
    words: &[
        "shardRange(",
        "object.metadata.uid",
        "object.metadata.namespace",
        "'0x0000000000000000'",
        "'0x8000000000000000'",
        "'0x10000000000000000'",
        "0xcbf29ce484222325",
        " || ",
        ", ",
        "(",
        ")",
        "\\u0027",
        "r'",
        "b'",
    ],
    made: None,
    inputs: 1_000,
    player: || {
        Box::new(|input| {
            Answer::of(normalized_shards(text(input)), |normal| {
                assert_eq!(normalized_shards(&normal).as_ref(), Ok(&normal), "one form");
                let shards = Shards::parse(&normal).unwrap_or_else(|| panic!("{normal:?} cannot be read"));
                for number in 0..16 {
                    // Nothing has the hash of the first; the others are anywhere.
                    let uid = if number == 0 { String::new() } else { format!("{number}") };
                    let meta = ObjectMeta { namespace: format!("n{uid}"), uid, ..ObjectMeta::default() };
                    assert_eq!(shards.have(&meta), is_within(&normal, &meta), "{normal}: {number}");
                }
                String::new()
            })
        })
    },
};

/// Whether an object is in one of the ranges of a selector in its one form, by what stands between quotes.
fn is_within(normal: &str, meta: &ObjectMeta) -> bool {
    let hashed = if normal.contains("object.metadata.uid") { &meta.uid } else { &meta.namespace };
    let hash = u128::from(fnv64(hashed.as_bytes()));
    let bound = |text: &str| u128::from_str_radix(&text[2..], 16).expect("digits");
    let bounds: Vec<u128> = normal.split('\'').skip(1).step_by(2).map(bound).collect();
    bounds.chunks(2).any(|range| range[0] <= hash && hash < range[1])
}

pub(super) const QUANTITIES: Target = Target {
    name: "quantities",
    words: &["Ki", "Mi", "Ei", "m", "n", "u", "k", "E", "e", "-", "+", ".", "99999999999999999999"],
    made: None,
    inputs: 1_000,
    player: || {
        Box::new(|input| {
            Answer::of(Quantity::parse(text(input)), |quantity| {
                let own = quantity.to_string();
                let again = Quantity::parse(&own).unwrap_or_else(|error| panic!("{own:?} cannot be read: {error}"));
                assert_eq!(again.to_string(), own);
                assert_eq!((again.value(), again.milli_value()), (quantity.value(), quantity.milli_value()), "{own}");
                let mut sum = quantity.clone();
                sum.add(&again);
                sum.sub(&quantity);
                sum.mul(3);
                sum.neg();
                format!("{}{}", quantity.is_integer(), sum.round_up_to_milli())
            })
        })
    },
};

pub(super) const TIMES: Target = Target {
    name: "times",
    words: &["T", "Z", "+00:00", "-23:59", ":60", ".", "9999", "-0001", "02-30"],
    made: None,
    inputs: 1_000,
    player: || {
        Box::new(|input| {
            let text = text(input);
            if let Ok(time) = MicroTime::parse(text) {
                let own = time.to_string();
                assert_eq!(MicroTime::parse(&own).map(|again| again.to_string()), Ok(own));
            }
            if let Ok(duration) = GoDuration::parse(text) {
                let own = duration.to_string();
                assert_eq!(GoDuration::parse(&own), Ok(duration), "{own}");
            }
            Answer::of(Time::parse(text), |time| {
                let own = time.to_string();
                assert_eq!(Time::parse(&own).map(|again| again.to_string()), Ok(own));
                String::new()
            })
        })
    },
};

pub(super) const SCHEDULES: Target = Target {
    name: "schedules",
    words: &[
        "*",
        "*/2",
        "1-5",
        ",",
        "?",
        "@every ",
        "1h",
        "@daily",
        "TZ=Europe/Berlin ",
        "CRON_TZ=",
        " 30 2 ",
        "MON",
        "31",
    ],
    made: None,
    inputs: 500,
    player: || {
        let starts = ["2023-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"];
        let starts = starts.map(|start| Time::parse(start).expect("a time"));
        Box::new(move |input| {
            Answer::of(Schedule::parse(text(input)), |schedule| {
                for start in starts {
                    let next = schedule.next_after(start);
                    assert!(next.is_none_or(|next| next >= start), "{next:?} is before {start}");
                }
                String::new()
            })
        })
    },
};

/// A line with the path, and a document.
pub(super) const JSON_PATHS: Target = Target {
    name: "json-paths",
    words: &[
        ".",
        ".a",
        "[*]",
        "[0]",
        "[-1]",
        "['a.b']",
        "[?(@.a==\"b\")]",
        "[?(@.a==1)]",
        "\\.",
        "..",
        "[?(",
        "\n---\n",
    ],
    made: None,
    inputs: 500,
    player: || {
        Box::new(|input| {
            let [path, document] = parts(input);
            let Some(path) = JsonPath::parse(path) else { return Answer::nothing() };
            let document = json::parse_value(document).unwrap_or_default();
            let found = path.first(&document).map(json_type);
            Answer::Taken(format!("{found:?} {}", path.members().is_some()))
        })
    },
};
