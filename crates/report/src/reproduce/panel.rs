//! What the panels of a figure share.

use super::source_words;
use firsttouch_experiments::reproduce::ResultTable;

pub const BLUE: &str = "#2b6cb0";

/// The title of a column's panel.
pub fn panel_title(table: &ResultTable, column: usize) -> String {
    table.columns.get(column).map_or_else(String::new, |column| {
        if column.name.is_empty() {
            source_words(column.source).to_owned()
        } else {
            format!("{}: {}", source_words(column.source), column.name)
        }
    })
}
