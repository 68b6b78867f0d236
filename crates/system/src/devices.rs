//! The node that a device is connected to, from /sys.

use firsttouch_model::error::{Context, Error, Result};
use std::ffi::CString;
use std::fs;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A device of a class, such as `net` or `block`, by the kernel's name.
///
/// # Errors
/// When there is no such device, or the kernel does not say where it is.
pub fn of_class(root: &Path, class: &str, name: &str) -> Result<u32> {
    let link = root.join("sys/class").join(class).join(name);
    node(root, &link).context(name)
}

/// A PCI device: `[segment:]bus:device[.function]`, also with a colon before the function.
///
/// # Errors
/// As [`of_class`]; also when it is not a PCI address.
pub fn of_pci(root: &Path, address: &str) -> Result<u32> {
    let (place, function) = match address.split_once('.') {
        Some((place, function)) => (place, Some(function)),
        None => (address, None),
    };
    let not_an_address = || Error::invalid_input(format!("'{address}' is not a PCI address, such as 0000:01:00.0"));
    let mut numbers = Vec::new();
    for part in place.split(':').chain(function) {
        let number = u32::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'));
        numbers.push(number.ok_or_else(not_an_address)?);
    }
    let [segment, bus, device, function] = match (numbers[..].to_vec().as_slice(), function) {
        ([bus, device], None) => [0, *bus, *device, 0],
        ([bus, device, function], Some(_)) => [0, *bus, *device, *function],
        ([segment, bus, device], None) => [*segment, *bus, *device, 0],
        ([segment, bus, device, function], _) => [*segment, *bus, *device, *function],
        _ => return Err(not_an_address()),
    };
    let link = root.join(format!("sys/bus/pci/devices/{segment:04x}:{bus:02x}:{device:02x}.{function:x}"));
    node(root, &link).context(address)
}

/// The block device that a file is on, or the device that a device file is.
///
/// # Errors
/// As [`of_class`]; also when there is no such file.
pub fn of_file(root: &Path, path: &Path) -> Result<u32> {
    let name = || path.display().to_string();
    let file = fs::metadata(path).with_context(name)?;
    let (kind, number) = match file.mode() & libc::S_IFMT {
        libc::S_IFCHR => ("char", file.rdev()),
        libc::S_IFBLK => ("block", file.rdev()),
        _ => ("block", file.dev()),
    };
    let link = root.join(format!("sys/dev/{kind}/{}:{}", libc::major(number), libc::minor(number)));
    node(root, &link).with_context(name)
}

/// The network interface that a host is reached by.
///
/// # Errors
/// As [`of_class`]; also when the host is unknown or cannot be reached.
pub fn of_host(root: &Path, host: &str) -> Result<u32> {
    // Any port will do: connecting a UDP socket sends nothing, the kernel only looks up the route.
    let address = (host, 9).to_socket_addrs().context(host)?.next().ok_or_else(|| Error::not_found(format!("{host} has no address")))?;
    let any: IpAddr = if address.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).context(host)?;
    socket.connect(address).context(host)?;
    let own = socket.local_addr().context(host)?.ip();
    let interface = interface_with(own).ok_or_else(|| Error::not_found(format!("{host}: no network interface has the address {own}")))?;
    of_class(root, "net", &interface)
}

/// The name of the interface with an address.
fn interface_with(address: IpAddr) -> Option<String> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call makes a list that ends with a null pointer. It is read before it is freed, and each address is read as its
    // family says.
    unsafe {
        if libc::getifaddrs(&raw mut list) != 0 {
            return None;
        }
        let (mut found, mut entry) = (None, list);
        while let Some(interface) = entry.as_ref() {
            let own: Option<IpAddr> = match interface.ifa_addr.as_ref().map(|address| i32::from(address.sa_family)) {
                Some(libc::AF_INET) => {
                    let address = interface.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                    Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
                }
                Some(libc::AF_INET6) => {
                    let address = interface.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                    Some(IpAddr::from(address.sin6_addr.s6_addr))
                }
                _ => None,
            };
            if own == Some(address) {
                let name: CString = std::ffi::CStr::from_ptr(interface.ifa_name).to_owned();
                found = name.into_string().ok();
                break;
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(list);
        found
    }
}

/// The node of a device's folder in /sys, or of the nearest folder above it that names one.
fn node(root: &Path, link: &Path) -> Result<u32> {
    let folder: PathBuf = fs::canonicalize(link).map_err(|_| Error::not_found("there is no such device in /sys"))?;
    let devices = fs::canonicalize(root.join("sys/devices")).map_err(|_| Error::not_found("/sys does not exist"))?;
    let node = folder
        .ancestors()
        .take_while(|above| above.starts_with(&devices))
        .find_map(|above| fs::read_to_string(above.join("numa_node")).ok()?.trim().parse::<i64>().ok());
    match node {
        Some(node) if node >= 0 => {
            u32::try_from(node).map_err(|_| Error::invalid_data(format!("the kernel says node {node}, which does not exist")))
        }
        Some(_) => Err(Error::unsupported("the kernel does not know the device's node (numa_node is -1)")),
        None => Err(Error::unsupported("the kernel reports no node for the device (it is virtual, or its bus has no node)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A /sys with a network card on node 1, a disk whose controller is on node 0, and a virtual interface.
    fn sys() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let at = |path: &str| root.path().join("sys").join(path);
        for folder in
            ["devices/pci0000:00/0000:01:00.0/net/eth0", "devices/pci0000:00/0000:02:00.1/ata1/block/sda/sda1", "devices/virtual/net/lo"]
        {
            fs::create_dir_all(at(folder)).expect("a folder");
        }
        for folder in ["class/net", "class/block", "bus/pci/devices"] {
            fs::create_dir_all(at(folder)).expect("a folder");
        }
        for (file, node) in [("0000:01:00.0", "1\n"), ("0000:02:00.1", "0\n")] {
            fs::write(at(&format!("devices/pci0000:00/{file}/numa_node")), node).expect("a file");
            symlink(at(&format!("devices/pci0000:00/{file}")), at(&format!("bus/pci/devices/{file}"))).expect("a link");
        }
        for (link, target) in [
            ("class/net/eth0", "devices/pci0000:00/0000:01:00.0/net/eth0"),
            ("class/net/lo", "devices/virtual/net/lo"),
            ("class/block/sda1", "devices/pci0000:00/0000:02:00.1/ata1/block/sda/sda1"),
        ] {
            symlink(at(target), at(link)).expect("a link");
        }
        root
    }

    /// Check devices of classes and of the PCI bus, present and not.
    #[test]
    fn devices_have_nodes() {
        let root = sys();
        assert_eq!(of_class(root.path(), "net", "eth0"), Ok(1));
        assert_eq!(of_class(root.path(), "block", "sda1"), Ok(0));
        for (name, words) in [("lo", "reports no node"), ("eth9", "no such device")] {
            let error = of_class(root.path(), "net", name).expect_err(name);
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
        for address in ["0000:01:00.0", "01:00.0", "1:0", "0:1:0:0", "0000:01:00"] {
            assert_eq!(of_pci(root.path(), address), Ok(1), "{address}");
        }
        assert_eq!(of_pci(root.path(), "02:00.1"), Ok(0));
        for address in ["", "01", "x:y", "1:2:3:4:5", "01:00.x", "+1:0", "99:00.0"] {
            assert!(of_pci(root.path(), address).is_err(), "{address}");
        }
    }

    /// Check that files and hosts are resolved to their devices, or refused with a reason.
    #[test]
    fn files_and_hosts() {
        let root = Path::new("/");
        for answer in [of_file(root, Path::new("/proc/self/status")), of_host(root, "127.0.0.1")] {
            assert!(answer.is_err(), "proc is on no device, and the loopback interface has no node: {answer:?}");
        }
        assert!(of_file(root, Path::new("/nonexistent")).is_err());
    }
}
