//! Texts with a grammar of their own. What was read is written and read again, and is the same.

use api_machinery::fields::FieldSelector;
use api_machinery::labels::Selector;
use api_machinery::quantity::Quantity;
use api_machinery::time::{MicroTime, Time};

use super::{text, told};
use crate::engine::Target;

pub(super) const LABEL_SELECTORS: Target = Target {
    name: "label-selectors",
    words: &["in", "notin", "(", ")", ",", "==", "!=", "!", ">", "<", "a/b", " exists", "=,"],
    player: || {
        Box::new(|input| {
            told(Selector::parse(text(input)), |selector| {
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
    player: || {
        Box::new(|input| {
            told(FieldSelector::parse(text(input)), |selector| {
                let own = selector.to_string();
                let again =
                    FieldSelector::parse(&own).unwrap_or_else(|error| panic!("{own:?} cannot be read: {error}"));
                assert_eq!(again.to_string(), own);
                String::new()
            })
        })
    },
};

pub(super) const QUANTITIES: Target = Target {
    name: "quantities",
    words: &["Ki", "Mi", "Ei", "m", "n", "u", "k", "E", "e", "-", "+", ".", "99999999999999999999"],
    player: || {
        Box::new(|input| {
            told(Quantity::parse(text(input)), |quantity| {
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
    player: || {
        Box::new(|input| {
            let text = text(input);
            if let Ok(time) = MicroTime::parse(text) {
                let own = time.to_string();
                assert_eq!(MicroTime::parse(&own).map(|again| again.to_string()), Ok(own));
            }
            told(Time::parse(text), |time| {
                let own = time.to_string();
                assert_eq!(Time::parse(&own).map(|again| again.to_string()), Ok(own));
                String::new()
            })
        })
    },
};
