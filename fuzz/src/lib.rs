//! Shared code of the fuzz targets: files made from an input, changes that keep its form, and properties of every result.

mod choice;
mod computed;
mod files;
mod judge;
pub mod mutate;
mod rows;
mod sound;

pub use computed::computed;
pub use files::{Scratch, Tree};
pub use judge::judged;
pub use rows::profile_of_rows;
pub use sound::{rendered, sound};
