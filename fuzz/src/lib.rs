//! What the fuzz targets share: files made of an input, and what must hold of every result.

mod computed;
mod files;
mod judge;
mod sound;

pub use computed::computed;
pub use files::{Scratch, Tree};
pub use judge::judged;
pub use sound::{rendered, sound};
