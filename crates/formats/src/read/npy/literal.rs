//! Python's notation, as far as NumPy's headers use it.

/// A value in Python's notation, as far as NumPy's headers use it.
#[derive(Debug, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Bool(bool),
    Integer(i128),
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dictionary(Vec<(Literal, Literal)>),
}

impl Literal {
    /// The literal that is all of the text.
    pub(super) fn parse(text: &str) -> Option<Literal> {
        let mut parser = LiteralParser { rest: text };
        let literal = parser.literal(0)?;
        parser.skip_space();
        parser.rest.is_empty().then_some(literal)
    }

    /// The value of a dictionary's key.
    pub(super) fn get(&self, key: &str) -> Option<&Literal> {
        let Literal::Dictionary(entries) = self else { return None };
        entries
            .iter()
            .find(|(name, _)| matches!(name, Literal::Text(name) if name == key))
            .map(|(_, value)| value)
    }

    pub(super) fn unsigned(&self) -> Option<u64> {
        match self {
            Literal::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// Whether a list of fields has one of Python objects.
    pub(super) fn mentions_objects(&self) -> bool {
        match self {
            Literal::Text(text) => text.trim_start_matches(['<', '>', '|', '=']).starts_with('O'),
            Literal::Tuple(items) | Literal::List(items) => {
                items.iter().skip(1).any(Literal::mentions_objects)
            }
            _ => false,
        }
    }
}

struct LiteralParser<'a> {
    rest: &'a str,
}

impl LiteralParser<'_> {
    const MAX_DEPTH: usize = 16;

    fn literal(&mut self, depth: usize) -> Option<Literal> {
        if depth > Self::MAX_DEPTH {
            return None;
        }
        self.skip_space();
        match self.rest.chars().next()? {
            '\'' | '"' => self.text(),
            '(' => {
                let (items, comma) = self.items(')', |parser| parser.literal(depth + 1))?;
                // Python's (3) is the number 3; only a comma makes it a tuple.
                match items.len() {
                    1 if !comma => items.into_iter().next(),
                    _ => Some(Literal::Tuple(items)),
                }
            }
            '[' => Some(Literal::List(self.items(']', |parser| parser.literal(depth + 1))?.0)),
            '{' => {
                let entry = |parser: &mut Self| {
                    let key = parser.literal(depth + 1)?;
                    parser.expect(":")?;
                    Some((key, parser.literal(depth + 1)?))
                };
                Some(Literal::Dictionary(self.items('}', entry)?.0))
            }
            _ => self.word(),
        }
    }

    /// Items between brackets, and whether a comma ends them.
    fn items<T>(&mut self, close: char, item: impl Fn(&mut Self) -> Option<T>) -> Option<(Vec<T>, bool)> {
        self.rest = self.rest.get(1..)?;
        let mut items = Vec::new();
        let mut comma = false;
        loop {
            self.skip_space();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some((items, comma));
            }
            if !items.is_empty() && !comma {
                return None;
            }
            items.push(item(self)?);
            comma = self.expect(",").is_some();
        }
    }

    fn text(&mut self) -> Option<Literal> {
        let quote = self.rest.chars().next()?;
        let (text, rest) = self.rest[1..].split_once(quote)?;
        // Type strings and the three keys need no escapes; field names with them are records, not read anyway.
        self.rest = rest;
        (!text.contains('\\')).then(|| Literal::Text(text.into()))
    }

    fn word(&mut self) -> Option<Literal> {
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "True" => Some(Literal::Bool(true)),
            "False" => Some(Literal::Bool(false)),
            // Python 2 wrote long numbers with an L.
            _ => word.strip_suffix('L').unwrap_or(word).parse().ok().map(Literal::Integer),
        }
    }

    fn expect(&mut self, mark: &str) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(mark)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}
