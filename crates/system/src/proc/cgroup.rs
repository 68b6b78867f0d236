//! /proc/PID/cgroup: the control groups of a process, `4:cpu,cpuacct:/group` (version 1) or `0::/group` (version 2).

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hierarchy<'a> {
    controllers: &'a str,
    pub group: &'a str,
}

impl Hierarchy<'_> {
    /// Whether this is a hierarchy of version 1 that has the controller.
    #[must_use]
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|name| name == controller)
    }

    /// Whether this is the one hierarchy of version 2.
    #[must_use]
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }
}

/// The lines of the file; lines of another form are left out.
pub fn hierarchies(text: &str) -> impl Iterator<Item = Hierarchy<'_>> + Clone {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some(Hierarchy { controllers: fields.next()?, group: fields.next()? })
    })
}

/// A group and those above it, to the mount point (the empty path). A group outside the cgroup namespace is shown as `/../other`: of
/// it only the mount point can be seen.
pub fn group_and_parents(group: &str) -> impl Iterator<Item = &str> {
    let group = group.trim_end_matches('/');
    let group = if group.split('/').any(|part| part == "..") { "" } else { group };
    std::iter::successors(Some(group), |group| group.rsplit_once('/').map(|(parent, _)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check both versions, and lines that are neither.
    #[test]
    fn lines_are_read() {
        let text = "4:cpu,cpuacct:/c\n0::/a:b\n:\n\n0\n";
        let lines: Vec<_> = hierarchies(text).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].has("cpu") && lines[0].has("cpuacct") && !lines[0].has("cpuset") && !lines[0].is_unified());
        assert!(lines[1].is_unified() && !lines[1].has("cpu"));
        assert_eq!((lines[0].group, lines[1].group), ("/c", "/a:b"));
    }

    /// Check that the groups above end at the mount point.
    #[test]
    fn groups_have_parents() {
        for (group, all) in [("/a/b", &["/a/b", "/a", ""][..]), ("/", &[""]), ("", &[""]), ("/../x", &[""]), ("/a/", &["/a", ""])] {
            assert_eq!(group_and_parents(group).collect::<Vec<_>>(), all, "{group}");
        }
    }
}
