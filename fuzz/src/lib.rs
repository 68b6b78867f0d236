//! Shared code of the fuzz targets: files made from an input, and properties of every result.

mod computed;
mod files;
mod judge;
mod sound;

pub use computed::computed;
pub use files::{Scratch, Tree};
pub use judge::judged;
pub use sound::{rendered, sound};
