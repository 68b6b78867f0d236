//! `firsttouch check`
use crate::arguments::Check;
use anyhow::Result;

pub fn run(_arguments: &Check) -> Result<u8> {
    Ok(0)
}
