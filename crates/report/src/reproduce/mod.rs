//! What `firsttouch reproduce` shows: the published figures, the model's predictions, and what was measured here.

mod bars;
mod columns;
mod figure;
mod lines;
mod text;

pub use figure::reproduction_figure;
pub use text::reproduction_text;

use firsttouch_experiments::reproduce::Source;

/// The head of a source's columns.
fn source_words(source: Source) -> &'static str {
    match source {
        Source::Published => "published",
        Source::Model => "model",
        Source::Measured => "measured here",
    }
}

/// A value with three significant digits of this magnitude.
fn digits(value: f64, magnitude: f64) -> String {
    let decimals = (2 - magnitude.abs().max(1e-9).log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", decimals as usize)
}
