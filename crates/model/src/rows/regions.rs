//! OpenMP parallel regions.

use super::Id;

/// An OpenMP parallel region (OMPT).
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub id: Id,
    pub process: Id,
    pub begin_ns: u64,
    pub end_ns: Option<u64>,
    pub site: Option<Id>,
    pub team_size: u32,
    pub thread: Option<Id>,
}
