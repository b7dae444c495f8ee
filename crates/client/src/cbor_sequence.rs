//! Where the items of a CBOR sequence (RFC 8742) end, found while their bytes come: nothing between items says so.

use api_machinery::cbor::MAX_DEPTH;

/// The end of an item that does not say how long it is.
const BREAK: u8 = 0xff;

/// A sequence that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum BrokenSequence {
    /// A byte that begins no item.
    #[error("cbor: invalid initial byte {0:#04x}")]
    Initial(u8),
    /// Too many items within each other.
    #[error("cbor: exceeded max nested level {MAX_DEPTH}")]
    TooDeep,
}

/// How far an item has been looked at.
#[derive(Debug, Default)]
pub(crate) struct ItemScan {
    at: usize,
    /// How many items are to come in each one that is open, outermost first; none where its end says so.
    open: Vec<Option<u64>>,
}

impl ItemScan {
    /// Where the item that `bytes` begin with ends, once all of it is there. `bytes` are those of the last time and more.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, BrokenSequence> {
        while let Some(head) = Head::read(bytes.get(self.at..).unwrap_or_default())? {
            let next = head.content_bytes().and_then(|content| content.checked_add(self.at + head.length));
            let Some(next) = next.filter(|next| *next <= bytes.len()) else { return Ok(None) };
            self.at = next;
            if let Some(items) = head.opens() {
                self.enter(items)?;
                continue;
            }
            if head.is_break() && self.open.pop() != Some(None) {
                return Err(BrokenSequence::Initial(BREAK));
            }
            if self.is_complete() {
                return Ok(Some(std::mem::take(self).at));
            }
        }
        Ok(None)
    }

    fn enter(&mut self, items: Option<u64>) -> Result<(), BrokenSequence> {
        if self.open.len() >= MAX_DEPTH {
            return Err(BrokenSequence::TooDeep);
        }
        self.open.push(items);
        Ok(())
    }

    /// An item has ended; whether that was the outermost one, as those that it was the last of end with it.
    fn is_complete(&mut self) -> bool {
        while let Some(Some(left)) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.open.pop();
        }
        self.open.is_empty()
    }
}

/// What an item begins with.
struct Head {
    major: u8,
    /// Its number: a length, how many items it has, or what it is itself; none where its end is told by a break, and of a break.
    number: Option<u64>,
    /// How many bytes of the item say this.
    length: usize,
}

impl Head {
    /// Reads one; none as long as there is not enough of it.
    fn read(bytes: &[u8]) -> Result<Option<Self>, BrokenSequence> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
        let (major, info) = (first >> 5, first & 0x1f);
        let following = match info {
            0..=23 => return Ok(Some(Self { major, number: Some(u64::from(info)), length: 1 })),
            24..=27 => 1_usize << (info - 24),
            31 if matches!(major, 2..=5 | 7) => return Ok(Some(Self { major, number: None, length: 1 })),
            _ => return Err(BrokenSequence::Initial(first)),
        };
        let number = rest.get(..following).map(|bytes| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        Ok(number.map(|number| Self { major, number: Some(number), length: 1 + following }))
    }

    /// How many bytes of content follow; none where they are more than there can be.
    fn content_bytes(&self) -> Option<usize> {
        match (self.major, self.number) {
            (2 | 3, Some(length)) => usize::try_from(length).ok(),
            _ => Some(0),
        }
    }

    /// The items that are to come in it, where there are any.
    fn opens(&self) -> Option<Option<u64>> {
        match (self.major, self.number) {
            (2..=5, None) => Some(None),
            (4, Some(items @ 1..)) => Some(Some(items)),
            (5, Some(pairs @ 1..)) => Some(Some(pairs.saturating_mul(2))),
            (6, _) => Some(Some(1)),
            _ => None,
        }
    }

    fn is_break(&self) -> bool {
        self.major == 7 && self.number.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_end_where_they_end_however_they_come() {
        let long = [[0x58, 200].as_slice(), &[0; 200]].concat();
        let cases: [(&str, &[u8]); 12] = [
            ("a number", &[0x17]),
            ("a number of two bytes", &[0x19, 1, 2]),
            ("a float", &[0xfb, 0, 0, 0, 0, 0, 0, 0, 0]),
            ("a text", &[0x63, b'a', b'b', b'c']),
            ("bytes with a length of their own", &long),
            ("nothing in it", &[0x80]),
            ("a map within a list", &[0x82, 0xa1, 0x61, b'a', 1, 0xf6]),
            ("tagged", &[0xd9, 0xd9, 0xf7, 0xa1, 0x41, b'k', 0x80]),
            ("a list with an end", &[0x9f, 1, 0x81, 2, 0xff]),
            ("a map with an end", &[0xbf, 0x61, b'a', 0xa0, 0xff]),
            ("a text in pieces", &[0x7f, 0x61, b'a', 0x61, b'b', 0xff]),
            ("ends within ends", &[0x81, 0x9f, 0x9f, 0xff, 0xff]),
        ];
        for (name, item) in cases {
            let two = [item, item].concat();
            for size in [1, 2, 3, two.len()] {
                let (mut scan, mut there, mut ends) = (ItemScan::default(), Vec::new(), Vec::new());
                for piece in two.chunks(size) {
                    there.extend_from_slice(piece);
                    while let Some(end) = scan.end(&there).unwrap() {
                        ends.push(there.drain(..end).collect::<Vec<_>>());
                    }
                }
                assert_eq!((ends, there.len()), (vec![item.to_vec(); 2], 0), "{name} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_is_no_item_is_refused() {
        for (bytes, expected) in [
            (&[0x1c][..], BrokenSequence::Initial(0x1c)),
            (&[0x1f], BrokenSequence::Initial(0x1f)),
            (&[0xff], BrokenSequence::Initial(0xff)),
            (&[0x82, 0xff], BrokenSequence::Initial(0xff)),
            (&[0x81; 20_000], BrokenSequence::TooDeep),
        ] {
            assert_eq!(ItemScan::default().end(bytes), Err(expected));
        }
        let endless = [0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(ItemScan::default().end(&endless), Ok(None), "whoever waits for it has a limit");
    }
}
