//! Reads protobuf's text format, as far as the language's test vectors use it.

/// A message: fields in order, some of them several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<(String, Field)>);

#[derive(Debug, Clone)]
pub(crate) enum Field {
    Message(Message),
    /// A number or a name.
    Word(String),
    Text(Vec<u8>),
}

impl Message {
    pub(crate) fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Field> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, field)| field)
    }

    pub(crate) fn message<'m>(&'m self, name: &'m str) -> Option<&'m Self> {
        self.all(name).find_map(|field| if let Field::Message(message) = field { Some(message) } else { None })
    }

    pub(crate) fn messages<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Self> {
        self.all(name).filter_map(|field| if let Field::Message(message) = field { Some(message) } else { None })
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.all(name).find_map(|field| match field {
            Field::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Field::Word(word) => Some(word.clone()),
            Field::Message(_) => None,
        })
    }
}

pub(crate) fn read(text: &str) -> Message {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    reader.message(None)
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while self.at < self.text.len() {
            match self.peek() {
                b'#' => {
                    while self.at < self.text.len() && self.peek() != b'\n' {
                        self.at += 1;
                    }
                }
                b' ' | b'\n' | b'\t' | b'\r' | b',' | b';' => self.at += 1,
                _ => return,
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn message(&mut self, close: Option<u8>) -> Message {
        let mut out = Message::default();
        loop {
            self.blank();
            if self.at >= self.text.len() || close.is_some_and(|close| self.take(close)) {
                return out;
            }
            let name = if self.take(b'[') {
                let name = self.word();
                assert!(self.take(b']'), "an extension's name ends");
                name
            } else {
                self.word()
            };
            assert!(!name.is_empty(), "a field has a name at {}", self.at);
            self.take(b':');
            if self.take(b'[') {
                while !self.take(b']') {
                    let field = self.field();
                    out.0.push((name.clone(), field));
                }
            } else {
                let field = self.field();
                out.0.push((name, field));
            }
        }
    }

    fn field(&mut self) -> Field {
        self.blank();
        match self.peek() {
            b'{' => {
                self.at += 1;
                Field::Message(self.message(Some(b'}')))
            }
            b'<' => {
                self.at += 1;
                Field::Message(self.message(Some(b'>')))
            }
            b'"' | b'\'' => {
                let mut out = Vec::new();
                while matches!(self.peek(), b'"' | b'\'') {
                    self.string(&mut out);
                    self.blank();
                }
                Field::Text(out)
            }
            _ => Field::Word(self.word()),
        }
    }

    fn word(&mut self) -> String {
        self.blank();
        let start = self.at;
        while matches!(self.peek(), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'+' | b'/') {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn string(&mut self, out: &mut Vec<u8>) {
        let quote = self.peek();
        self.at += 1;
        while self.peek() != quote {
            let byte = self.peek();
            self.at += 1;
            if byte == b'\\' {
                self.escape(out);
            } else {
                out.push(byte);
            }
        }
        self.at += 1;
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        let byte = self.peek();
        self.at += 1;
        let plain = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'x' => u8::try_from(self.digits(16, 2)).expect("a byte"),
            b'u' | b'U' => {
                let code = self.digits(16, if byte == b'u' { 4 } else { 8 });
                let c = char::from_u32(code).expect("a character");
                out.extend(c.to_string().as_bytes());
                return;
            }
            b'0'..=b'7' => {
                self.at -= 1;
                u8::try_from(self.digits(8, 3)).expect("a byte")
            }
            other => other,
        };
        out.push(plain);
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0;
        for _ in 0..most {
            let Some(digit) = char::from(self.peek()).to_digit(radix) else { break };
            value = value * radix + digit;
            self.at += 1;
        }
        value
    }
}
