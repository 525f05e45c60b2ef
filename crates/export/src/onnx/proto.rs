//! As much of protocol buffers as an ONNX file needs: numbers, bytes, and messages within messages.
//!
//! Field numbers are those of `onnx.proto`.

/// A message that is being written.
#[derive(Debug, Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A whole number that is not negative.
    pub fn whole(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    /// A number of four bytes.
    pub fn float(&mut self, field: u64, number: f32) -> &mut Self {
        self.varint(field << 3 | 5);
        self.0.extend(number.to_le_bytes());
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// A text.
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message.
    pub fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation of protocol buffers: 150 in field 1, "testing" in field 2.
    #[test]
    fn bytes_are_those_of_the_format() {
        let mut inner = Message::default();
        inner.whole(1, 150);
        assert_eq!(inner.0, [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.text(2, "testing");
        assert_eq!(text.0, [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        let mut outer = Message::default();
        outer.message(3, &inner).float(2, 1.0);
        assert_eq!(outer.into_bytes(), [0x1a, 3, 0x08, 0x96, 0x01, 0x15, 0, 0, 0x80, 0x3f]);
    }
}
