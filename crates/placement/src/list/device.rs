//! Devices that stand for the node they are connected to.

use super::{Fault, Scanner};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub kind: DeviceKind,
    /// What follows the colon.
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A network interface.
    Network,
    /// A block device, by the kernel's name.
    Block,
    /// The block device that a file is on, or the device that a device file is.
    File,
    /// `[seg:]bus:dev[.func]`, hexadecimal.
    Pci,
    /// The network interface a host is reached by.
    Ip,
}

const PREFIXES: [(&str, DeviceKind); 5] = [
    ("netdev:", DeviceKind::Network),
    ("block:", DeviceKind::Block),
    ("file:", DeviceKind::File),
    ("pci:", DeviceKind::Pci),
    ("ip:", DeviceKind::Ip),
];

impl Device {
    /// Parses a device, which extends to the end, as its name may contain a comma. `None` if it is not a device.
    pub fn parse(scanner: &mut Scanner) -> Result<Option<Self>, Fault> {
        let Some((prefix, kind)) = PREFIXES.into_iter().find(|(prefix, _)| scanner.eat(prefix)) else { return Ok(None) };
        let start = scanner.offset();
        let name = scanner.take(|_| true);
        if name.is_empty() {
            return Err(scanner.fault(format!("expected a name after {prefix}")));
        }
        // The name is looked up as a file in /sys.
        let is_one_file = !name.contains('/') && name != "." && name != "..";
        if !is_one_file && !matches!(kind, DeviceKind::File) {
            return Err(Fault::new(start, format!("'{}' is not the name of a device; for a path, write file:PATH", name.escape_debug())));
        }
        Ok(Some(Self { kind, name: name.to_owned() }))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = PREFIXES.into_iter().find(|(_, kind)| *kind == self.kind).map_or("", |(prefix, _)| prefix);
        write!(f, "{prefix}{}", self.name)
    }
}
