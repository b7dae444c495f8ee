//! Parameters behind the question mark.

/// Parameters in order; a name may be there several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads parameters; nothing if an escape is broken.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_query(name)?, decode_query(value)?))
        };
        pairs.map(split).collect::<Option<Vec<_>>>().map(Self)
    }

    /// The first value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Whether a switch is on: `1` or `true`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), Some("1" | "true"))
    }
}

/// Undoes percent escapes; a plus is a blank. Nothing if an escape is broken.
#[must_use]
pub fn decode_query(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [char::from(rest.next()?), char::from(rest.next()?)];
                let [high, low] = digits.map(|digit| digit.to_digit(16));
                u8::try_from(high? * 16 + low?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let query = Query::parse("command=ls&command=-l+%2Ftmp&tty=1&x").unwrap();
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["ls", "-l /tmp"]);
        assert!(query.is_on("tty") && !query.is_on("x") && query.get("y").is_none());
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Query::parse(bad), None, "{bad}");
        }
    }
}
