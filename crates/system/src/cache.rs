//! Cache sizes of one CPU: sys/devices/system/cpu/cpuN/cache.

use crate::files::Root;
use anyhow::{Context, Result, anyhow};

/// No processor has more cache levels and kinds than this.
const INDEXES: u32 = 16;

#[derive(Debug, Default, PartialEq)]
pub struct Caches {
    /// Level 2; 0 when unknown.
    pub private_bytes: u64,
    /// The last level, also when that is level 2; 0 when unknown.
    pub shared_bytes: u64,
}

pub fn read(root: &Root, cpu: u32) -> Result<Caches> {
    let mut caches = Caches::default();
    let mut last_level = 0;
    for index in 0..INDEXES {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        let Some(level) = root.number::<u32>(&format!("{folder}/level"))? else { continue };
        if root.text(&format!("{folder}/type"))?.as_deref() == Some("Instruction") {
            continue;
        }
        let file = format!("{folder}/size");
        let Some(text) = root.text(&file)? else { continue };
        let bytes = size_bytes(&text)
            .ok_or_else(|| anyhow!("expected a size such as 512K, found {text:?}"))
            .with_context(|| format!("cannot read {}", root.path(&file).display()))?;
        if level == 2 {
            caches.private_bytes = bytes;
        }
        if level > last_level {
            last_level = level;
            caches.shared_bytes = bytes;
        }
    }
    Ok(caches)
}

/// `32K`, `8M`, `1G` or plain bytes.
pub fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::size_bytes;

    /// Check sizes as the kernel writes them, and a table of malformed ones.
    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("32K", 32 << 10), ("8M", 8 << 20), ("1G", 1 << 30), ("512", 512), ("0K", 0)] {
            assert_eq!(size_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "K", "32KB", "-1K", "1.5M", "99999999999999999999K", "18446744073709551615K", "é"] {
            assert_eq!(size_bytes(text), None, "{text}");
        }
    }
}
