//! Writes the wire format of protocol buffers: what pprof needs of it.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number. Zero is the default, which need not be written.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field << 3));
            self.varint(value);
        }
    }

    /// Bytes, a text or a message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub fn message(&mut self, field: u32, message: Message) {
        self.bytes(field, &message.bytes);
    }

    /// A list of numbers.
    pub fn numbers(&mut self, field: u32, values: &[u64]) {
        let mut packed = Message::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.message(field, packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the examples of the format's documentation.
    #[test]
    fn wire_format() {
        let mut one = Message::default();
        one.number(1, 150);
        assert_eq!(one.clone().finish(), [0x08, 0x96, 0x01]);
        let mut other = Message::default();
        other.bytes(2, b"testing");
        other.message(3, one);
        other.numbers(6, &[3, 270, 86942]);
        other.number(7, 0);
        let expected: Vec<u8> =
            [&[0x12, 0x07][..], b"testing", &[0x1a, 0x03, 0x08, 0x96, 0x01, 0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]].concat();
        assert_eq!(other.finish(), expected);
    }
}
