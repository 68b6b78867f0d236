//! All caches and the CPUs that share them: sys/devices/system/cpu/cpuN/cache/indexM.

use crate::files::{Reader, short, size_bytes};
use firsttouch_model::topology::{Cache, CacheKind};
use std::collections::BTreeMap;

pub fn read(reader: &mut Reader, online: &[u32]) -> Vec<Cache> {
    // Every CPU that shares a cache describes it.
    let mut caches: BTreeMap<(u32, CacheKind, Vec<u32>), Cache> = BTreeMap::new();
    for &cpu in online {
        for index in reader.numbered(&format!("sys/devices/system/cpu/cpu{cpu}/cache"), "index") {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let Some(cache) = one(reader, &folder, cpu, online) else { continue };
            let key = (cache.level, cache.kind, cache.cpus.clone());
            if let Some(other) = caches.get(&key) {
                if other.size_bytes != cache.size_bytes {
                    reader.doubt(
                        &format!("{folder}/size"),
                        format_args!("says {} bytes, another CPU of the same {} says {}", cache.size_bytes, cache.name(), other.size_bytes),
                    );
                }
            } else {
                caches.insert(key, cache);
            }
        }
    }
    let caches: Vec<Cache> = caches.into_values().collect();
    overlaps(reader, &caches);
    caches
}

fn one(reader: &mut Reader, folder: &str, cpu: u32, online: &[u32]) -> Option<Cache> {
    let level = reader.number(&format!("{folder}/level"))?;
    let kind = match reader.text(&format!("{folder}/type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        other => {
            reader.doubt(&format!("{folder}/type"), format_args!("expected Data, Instruction or Unified, found {}", short(other)));
            return None;
        }
    };
    // Some guests and arm64 machines have levels and kinds, but no sizes.
    let file = format!("{folder}/size");
    let text = reader.text(&file)?;
    let Some(size_bytes) = size_bytes(&text) else {
        reader.doubt(&file, format_args!("expected a size such as 512K, found {}", short(&text)));
        return None;
    };
    let file = format!("{folder}/shared_cpu_list");
    let mut cpus = reader.list(&file).unwrap_or_else(|| vec![cpu]);
    if cpus.binary_search(&cpu).is_err() {
        reader.doubt(&file, format_args!("CPU {cpu} does not share its own cache; taken as private"));
        cpus = vec![cpu];
    }
    cpus.retain(|cpu| online.binary_search(cpu).is_ok());
    Some(Cache {
        level,
        kind,
        size_bytes,
        line_bytes: reader.number(&format!("{folder}/coherency_line_size")),
        ways: reader.number(&format!("{folder}/ways_of_associativity")),
        cpus,
    })
}

/// A CPU cannot be on two caches of one level and kind: such files contradict each other.
fn overlaps(reader: &mut Reader, caches: &[Cache]) {
    let mut owner: BTreeMap<(u32, CacheKind, u32), usize> = BTreeMap::new();
    for (index, cache) in caches.iter().enumerate() {
        for &cpu in &cache.cpus {
            if let Some(first) = owner.insert((cache.level, cache.kind, cpu), index)
                && first != index
            {
                reader.doubt(
                    &format!("sys/devices/system/cpu/cpu{cpu}/cache"),
                    format_args!("CPU {cpu} is said to be on two {} caches", cache.name()),
                );
                return;
            }
        }
    }
}
