//! Query parameters, by upstream's rules: the first value of a scalar wins, unknown names are nobody's business.

use api_machinery::status::ApiError;
use component_helpers::integers;

use super::percent;

/// The parameters of a request, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the part of a URL behind the question mark.
    #[must_use]
    pub(crate) fn parse(raw: &str) -> Self {
        // Pairs that are malformed are passed over, as Go passes over them.
        let pairs = raw.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent::is_sound(name) && percent::is_sound(value)).then(|| (text(name), text(value)))
        });
        Self { pairs: pairs.collect() }
    }

    /// The first value of a parameter.
    #[must_use]
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, empty when it is absent.
    #[must_use]
    pub(crate) fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A switch: present and neither `0` nor `false`; nothing when absent.
    #[must_use]
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A switch that is off when absent.
    #[must_use]
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.switch(name).unwrap_or(false)
    }

    /// A number.
    ///
    /// # Errors
    /// 400 when it is none; Go's text.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.first(name) else { return Ok(None) };
        integers::parse(value).map(Some).map_err(ApiError::bad_request)
    }
}

/// A form-encoded text: `+` is a space.
fn text(raw: &str) -> String {
    if raw.contains('+') { percent::decode(&raw.replace('+', " ")) } else { percent::decode(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_upstreams_rules() {
        let query = Query::parse("watch=&a=1&a=2&limit=x&off=False&s=a%3Db+c&&n=99999999999999999999");
        assert_eq!(query.switch("watch"), Some(true));
        assert_eq!(query.switch("off"), Some(false));
        assert_eq!(query.switch("absent"), None);
        assert_eq!(query.first("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.text("s"), "a=b c");
        let error = |name| query.integer(name).unwrap_err().message;
        assert_eq!(error("limit"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert_eq!(error("n"), "strconv.ParseInt: parsing \"99999999999999999999\": value out of range");
        assert_eq!(query.integer("a"), Ok(Some(1)));
        let odd = Query::parse("labelSelector=%zz&fieldSelector=a%3&limit=1;continue=x&watch=1");
        assert_eq!((odd.pairs.len(), odd.flag("watch")), (1, true), "{odd:?}");
    }
}
