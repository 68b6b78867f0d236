//! The processor's vendor and model: the first entry of proc/cpuinfo.

use crate::files::Reader;
use firsttouch_model::topology::Processor;

const CPUINFO: &str = "proc/cpuinfo";

pub fn read(reader: &mut Reader) -> Processor {
    let text = reader.text(CPUINFO).unwrap_or_default();
    let value = |key: &str| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let number = |key: &str| value(key).and_then(|text| text.parse().ok());
    Processor {
        // On arm64 the vendor is a number, on POWER there is only `cpu`.
        vendor: value("vendor_id").or_else(|| value("CPU implementer")).unwrap_or_default(),
        model_name: value("model name").or_else(|| value("cpu")).unwrap_or_default(),
        family: number("cpu family"),
        model: number("model"),
        hypervisor: value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    }
}
