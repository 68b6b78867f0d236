//! The processes that the recorded ones started, and these in turn, and that are not recorded themselves (without `--follow`). They are known
//! so that the report can say which of them outlive the program.

use hashbrown::HashSet;

#[derive(Default)]
pub struct Family {
    /// Not known to have ended.
    alive: HashSet<i32>,
    /// The children of recorded processes.
    pub children: u64,
    /// All births so far.
    pub births: u64,
}

impl Family {
    /// A process was born. `is_child`: its parent is recorded.
    pub fn born(&mut self, pid: i32, parent_pid: i32, is_child: bool) {
        if (is_child || self.alive.contains(&parent_pid)) && self.alive.insert(pid) {
            self.births += 1;
            self.children += u64::from(is_child);
        }
    }

    /// A process that was there when firsttouch attached.
    pub fn found(&mut self, pid: i32) {
        self.alive.insert(pid);
    }

    pub fn ended(&mut self, pid: i32) {
        self.alive.remove(&pid);
    }

    pub fn alive(&self) -> impl Iterator<Item = i32> {
        self.alive.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a daemon that forks twice is known when its parents have ended, that a birth that is reported twice counts once, and that a
    /// process of another program is not of the family.
    #[test]
    fn daemons_are_known() {
        let mut family = Family::default();
        family.born(20, 10, true);
        family.born(20, 10, true);
        family.born(21, 20, false);
        family.ended(20);
        family.born(99, 98, false);
        assert_eq!(family.alive().collect::<Vec<_>>(), [21]);
        assert_eq!((family.children, family.births), (1, 2));
        family.ended(21);
        family.born(22, 21, false);
        assert_eq!(family.alive().count(), 0);
    }
}
