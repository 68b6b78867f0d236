//! The result of `firsttouch reproduce`: the published figures, the model's predictions, and the measurements on this machine.

mod bars;
mod columns;
mod figure;
mod lines;
mod panel;
mod text;

pub use figure::reproduction_figure;
pub use text::reproduction_text;

use firsttouch_experiments::reproduce::Source;

/// The heading of a source's columns.
fn source_words(source: Source) -> &'static str {
    match source {
        Source::Published => "published",
        Source::Model => "model",
        Source::Measured => "measured here",
    }
}

/// A value with the decimals that give a number of this magnitude three significant digits.
fn digits(value: f64, magnitude: f64) -> String {
    let decimals = (2 - magnitude.abs().max(1e-9).log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", decimals as usize)
}
