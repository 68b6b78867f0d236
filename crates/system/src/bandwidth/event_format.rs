//! Events and fields of a performance monitoring unit as sysfs names them (Documentation/ABI/testing/sysfs-bus-event_source-devices-events and
//! -format): `event=0x04,umask=0x03`, `config:0-7,21`.

/// The words of `struct perf_event_attr` that an event is encoded in: config, config1, config2.
pub type Config = [u64; 3];

const WORDS: [&str; 3] = ["config", "config1", "config2"];

/// Where a term's value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    word: usize,
    /// The first and the last bit of each range; the value's lowest bits go into the first range.
    ranges: Vec<(u32, u32)>,
}

impl Field {
    /// A whole word of the attributes.
    fn whole(name: &str) -> Option<Self> {
        Some(Self { word: WORDS.iter().position(|word| *word == name)?, ranges: vec![(0, 63)] })
    }

    /// Parses a file of `format/`.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("expected bits such as config:0-7, found {text:?}");
        let (word, list) = text.trim().split_once(':').ok_or_else(expected)?;
        let word = WORDS.iter().position(|known| *known == word).ok_or_else(expected)?;
        let bit = |text: &str| text.parse::<u32>().ok().filter(|bit| *bit < 64);
        let range = |text: &str| match text.split_once('-') {
            Some((first, last)) => bit(first).zip(bit(last)).filter(|(first, last)| first <= last),
            None => bit(text).map(|bit| (bit, bit)),
        };
        let ranges = list.split(',').map(range).collect::<Option<Vec<_>>>().ok_or_else(expected)?;
        Ok(Self { word, ranges })
    }

    /// Puts a value into the field's bits.
    ///
    /// # Errors
    /// When it has more bits.
    pub fn put(&self, value: u64, config: &mut Config) -> Result<(), String> {
        let mut rest = value;
        for (first, last) in &self.ranges {
            let bits = last - first + 1;
            let mask = u64::MAX >> (64 - bits);
            config[self.word] |= (rest & mask) << first;
            rest = rest.checked_shr(bits).unwrap_or(0);
        }
        if rest == 0 { Ok(()) } else { Err(format!("the value {value:#x} does not fit the field")) }
    }
}

/// Parses a file of `events/`: names and values; a name without a value is 1.
///
/// # Errors
/// Says what was expected.
pub fn terms(text: &str) -> Result<Vec<(&str, u64)>, String> {
    let term = |term| {
        let (name, value) = str::split_once(term, '=').unwrap_or((term, "1"));
        let number = value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
        let number = number.filter(|_| !name.is_empty());
        number.map(|number| (name, number)).ok_or_else(|| format!("expected terms such as event=0x04,umask=0x03, found {text:?}"))
    };
    text.trim().split(',').map(term).collect()
}

/// Encodes an event. `field`: the field of a name, as its unit's `format/` has it.
///
/// # Errors
/// Names the term without a field, or whose value is too large.
pub fn encode(event: &str, mut field: impl FnMut(&str) -> Result<Option<Field>, String>) -> Result<Config, String> {
    let mut config = Config::default();
    for (name, value) in terms(event)? {
        let field = match Field::whole(name) {
            Some(field) => field,
            None => field(name)?.ok_or_else(|| format!("the term {name:?} has no file in format"))?,
        };
        field.put(value, &mut config).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(config)
}

/// Bytes that one count stands for: a file `.scale` and a file `.unit`.
///
/// # Errors
/// Says what was expected.
pub fn bytes_per_count(scale: &str, unit: &str) -> Result<f64, String> {
    let factor = match unit.trim() {
        "Bytes" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "MB" => 1e6,
        other => return Err(format!("expected a unit such as MiB, found {other:?}")),
    };
    let scale = scale.trim().parse::<f64>().ok().filter(|scale| scale.is_finite() && *scale > 0.0);
    scale.map(|scale| scale * factor).ok_or_else(|| "expected a scale such as 6.103515625e-5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Result<Option<Field>, String> {
        match name {
            "event" => Field::parse("config:0-7,32-35").map(Some),
            "umask" => Field::parse("config:8-15\n").map(Some),
            "rdwrmask" => Field::parse("config1:8-9").map(Some),
            _ => Ok(None),
        }
    }

    /// Check events as kernels write them, and fields of several ranges.
    #[test]
    fn events_are_encoded() {
        for (event, config) in [
            ("event=0x04,umask=0x03\n", [0x0304, 0, 0]),
            ("event=0xff,umask=0x20", [0x20ff, 0, 0]),
            ("event=0x1c3", [0x1_0000_00c3, 0, 0]),
            ("event=10,rdwrmask=0x2", [10, 0x200, 0]),
            ("config=0x1234,config2=5", [0x1234, 0, 5]),
            ("umask,event=0x04", [0x0104, 0, 0]),
        ] {
            assert_eq!(encode(event, field), Ok(config), "{event}");
        }
    }

    /// Check that malformed events, fields and scales are errors that say what was expected.
    #[test]
    fn malformed_files_are_errors() {
        for (event, error) in [
            ("", "expected terms"),
            ("event=", "expected terms"),
            ("event=0x", "expected terms"),
            ("event=-1", "expected terms"),
            ("event=4,", "expected terms"),
            ("=4", "expected terms"),
            ("event=0x10000", "does not fit"),
            ("rdwrmask=4", "does not fit"),
            ("channel=1", "\"channel\" has no file"),
        ] {
            assert!(encode(event, field).is_err_and(|why| why.contains(error)), "{event}");
        }
        for text in ["", "config", "config:", "config:8-0", "config:0-64", "config3:0", "config:a", "config:0-7,", "config:0--7"] {
            assert!(Field::parse(text).is_err_and(|why| why.contains("config:0-7")), "{text}");
        }
        assert_eq!(bytes_per_count("6.103515625e-5", "MiB\n"), Ok(64.0));
        for (scale, unit) in [("0", "MiB"), ("-1", "MiB"), ("nan", "MiB"), ("inf", "MiB"), ("", "MiB"), ("1", "Joules"), ("1", "")] {
            assert!(bytes_per_count(scale, unit).is_err(), "{scale} {unit}");
        }
    }

    /// Check that any text gives an answer, and that a value comes back from its bits: texts drawn from the characters of real files.
    #[test]
    fn any_text_is_answered() {
        let (mut state, letters) = (1_u64, b"config:0-7,=xeventumask19\n ");
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap()
        };
        for _ in 0..20_000 {
            let text: String = (0..next() % 24).map(|_| char::from(letters[next() % letters.len()])).collect();
            let _ = (Field::parse(&text), terms(&text), bytes_per_count(&text, "MiB"), encode(&text, field));
        }
        for first in 0..64 {
            for last in first..64 {
                let value = u64::MAX >> (63 - (last - first));
                let mut config = Config::default();
                Field { word: 0, ranges: vec![(first, last)] }.put(value, &mut config).unwrap();
                assert_eq!(config[0] >> first, value, "{first}-{last}");
            }
        }
    }
}
