//! What is on the screen, without a terminal: the state that keys and the mouse change, the tables, and how they are drawn.

mod draw;
mod help;
mod state;
mod tables;

pub use draw::{Palette, draw};
pub use state::{Action, Key, Mouse, Playback, View};

#[cfg(test)]
mod tests;
