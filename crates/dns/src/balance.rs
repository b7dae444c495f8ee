//! The order of answers: shuffled, as many clients take the first address they see.

use base::Rng;
use hickory_proto::op::Message;
use hickory_proto::rr::{Record, RecordType};

/// Shuffles the addresses and mail servers of an answer. Aliases stay in front, in their order: some clients follow them
/// only if they come first.
pub fn balance(message: &mut Message, rng: &Rng) {
    for section in [&mut message.answers, &mut message.authorities, &mut message.additionals] {
        balance_section(section, rng);
    }
}

fn balance_section(records: &mut Vec<Record>, rng: &Rng) {
    if records.len() < 2 {
        return;
    }
    let (mut aliases, mut rest, mut addresses, mut mail) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for record in records.drain(..) {
        let place = match record.record_type() {
            RecordType::CNAME => &mut aliases,
            RecordType::A | RecordType::AAAA => &mut addresses,
            RecordType::MX => &mut mail,
            _ => &mut rest,
        };
        place.push(record);
    }
    shuffle(&mut addresses, rng);
    shuffle(&mut mail, rng);
    for sort in [aliases, rest, addresses, mail] {
        records.extend(sort);
    }
}

/// Puts things in an order by chance.
pub(crate) fn shuffle<T>(things: &mut [T], rng: &Rng) {
    for last in (1..things.len()).rev() {
        let other = rng.below(last as u64 + 1);
        things.swap(last, usize::try_from(other).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hickory_proto::rr::rdata::{A, CNAME};
    use hickory_proto::rr::{Name, RData};

    use super::*;

    #[test]
    fn every_address_comes_first_at_times_but_never_before_an_alias() {
        let rng = Rng::seeded(1);
        let name = Name::from_ascii("a.example.").unwrap();
        let mut firsts = HashSet::new();
        for _ in 0..100 {
            let mut message = Message::query();
            message.answers = (1..=3)
                .map(|last| Record::from_rdata(name.clone(), 30, RData::A(A::new(10, 0, 0, last))))
                .chain([Record::from_rdata(name.clone(), 30, RData::CNAME(CNAME(name.clone())))])
                .collect();
            balance(&mut message, &rng);
            assert_eq!((message.answers.len(), message.answers[0].record_type()), (4, RecordType::CNAME));
            firsts.insert(message.answers[1].data.to_string());
        }
        assert_eq!(firsts.len(), 3);
    }
}
