//! Cache sizes of one CPU: sys/devices/system/cpu/cpuN/cache.

use crate::files::{Root, size_bytes};
use firsttouch_model::error::{Context, Error, Result};

/// The most cache levels and kinds of a processor.
const INDEXES: u32 = 16;

#[derive(Debug, Default, PartialEq)]
pub struct Caches {
    /// Level 2; 0 if unknown.
    pub private_bytes: u64,
    /// The last level, even if that is level 2; 0 if unknown.
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
            .ok_or_else(|| Error::invalid_data(format!("expected a size such as 512K, found {text:?}")))
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
