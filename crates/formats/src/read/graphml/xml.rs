//! As much of XML as GraphML needs: tags, attributes, text. No document types, so that nothing expands.

use crate::{Place, Problem, Result};

/// A tag, or the text between tags.
pub(super) enum Tag {
    /// `<name key="value">`, or `<name/>`, which is closed already. Names are without their namespace.
    Open { name: String, attributes: Vec<(String, String)>, closed: bool },
    /// `</name>`.
    Close(String),
    /// Text between tags.
    Text(String),
}

pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    row: u64,
    counted: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Reader { text, at, row: 1, counted: 0 }
    }

    /// The line on which the last tag ended.
    pub(super) fn row(&mut self) -> u64 {
        self.row +=
            self.text.as_bytes()[self.counted..self.at].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.counted = self.at;
        self.row
    }

    /// The next tag or text; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Tag>> {
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return Ok(None);
            }
            if !rest.starts_with('<') {
                let end = rest.find('<').unwrap_or(rest.len());
                self.at += end;
                return Ok(Some(Tag::Text(self.unescaped(&rest[..end])?)));
            }
            if let Some(inner) = rest.strip_prefix("<![CDATA[") {
                let end = inner.find("]]>").ok_or_else(|| self.cut("a CDATA section"))?;
                self.at += "<![CDATA[".len() + end + 3;
                return Ok(Some(Tag::Text(inner[..end].to_string())));
            }
            let skipped = match rest {
                _ if rest.starts_with("<!--") => Some(("-->", "a comment")),
                _ if rest.starts_with("<?") => Some(("?>", "an instruction")),
                _ if rest.starts_with("<!") => {
                    let message =
                        "document types are not read, because they can expand without end".to_string();
                    return Err(Problem::Unsupported(message).at(Place::Row(self.row())));
                }
                _ => None,
            };
            match skipped {
                Some((end, what)) => self.at += rest.find(end).ok_or_else(|| self.cut(what))? + end.len(),
                None => return self.tag(rest).map(Some),
            }
        }
    }

    fn tag(&mut self, rest: &str) -> Result<Tag> {
        // A sign in quotes ends no tag.
        let (mut quote, mut end) = (None, None);
        for (at, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                (None, b'>') => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let end = end.ok_or_else(|| self.cut("a tag"))?;
        let inner = &rest[1..end];
        self.at += end + 1;
        if let Some(name) = inner.strip_prefix('/') {
            return Ok(Tag::Close(local(name.trim()).to_string()));
        }
        let (inner, closed) = match inner.strip_suffix('/') {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let split = inner.find(char::is_whitespace).unwrap_or(inner.len());
        let name = local(&inner[..split]).to_string();
        if name.is_empty() {
            return Err(Problem::Corrupt("a tag has no name".into()).at(Place::Row(self.row())));
        }
        let (mut attributes, mut rest) = (Vec::new(), inner[split..].trim_start());
        while !rest.is_empty() {
            let wrong = Problem::Corrupt(format!("the attributes of <{name}> cannot be read"));
            let Some((key, after)) = rest.split_once('=') else {
                return Err(wrong.at(Place::Row(self.row())));
            };
            let after = after.trim_start();
            let quote = after.chars().next().filter(|quote| ['"', '\''].contains(quote));
            let Some((value, left)) = quote.and_then(|quote| after[1..].split_once(quote)) else {
                return Err(wrong.at(Place::Row(self.row())));
            };
            attributes.push((key.trim().to_string(), self.unescaped(value)?));
            rest = left.trim_start();
        }
        Ok(Tag::Open { name, attributes, closed })
    }

    fn cut(&mut self, what: &str) -> crate::Error {
        Problem::Truncated(format!("{what} is never closed")).at(Place::Row(self.row()))
    }

    fn unescaped(&mut self, text: &str) -> Result<String> {
        let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('&') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let known =
                rest.find(';').filter(|&end| end <= 10).and_then(|end| Some((end, letter(&rest[..end])?)));
            let Some((end, letter)) = known else {
                let message = "a sign is written as no XML writes it (&...;)".to_string();
                return Err(Problem::Corrupt(message).at(Place::Row(self.row())));
            };
            plain.push(letter);
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        Ok(plain)
    }
}

/// A name without its namespace.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn letter(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
