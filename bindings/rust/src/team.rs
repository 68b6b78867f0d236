use crate::Error;
use crate::raw;

/// The threads that work on the data together, numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Team(i32);

impl Team {
    /// A team by its number, 0 to 63. 0 is the default team.
    pub fn new(number: i32) -> Result<Self, Error> {
        if (0..64).contains(&number) { Ok(Self(number)) } else { Err(Error::invalid(format!("use team {number}: teams are 0 to 63"))) }
    }

    pub(crate) const fn of_number(number: i32) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> i32 {
        self.0
    }

    /// The calling thread is number `thread` of the team's `threads` threads, and runs on the node where it is now. Pin it first.
    pub fn join(self, thread: usize, threads: usize) -> Result<(), Error> {
        // SAFETY: the function takes numbers only.
        if unsafe { raw::ft_team_join(self.0, thread, threads) } == 0 {
            return Ok(());
        }
        Err(Error::last(format!("join team {} as thread {thread} of {threads}", self.0)))
    }

    /// The number of threads that have joined, or that are assumed: one for each CPU that this process may use.
    pub fn threads(self) -> usize {
        // SAFETY: the function takes a number only.
        unsafe { raw::ft_team_size(self.0) }
    }
}
