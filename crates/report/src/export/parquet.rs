//! Tables as Parquet: a row for each sample, with the columns of the CSV, or a row for each object of the report.
//!
//! A file has one row group, without compression; names are in dictionaries. What values do not say ([`Export::remarks`]) is in the file's key-value
//! metadata.

use super::limits::{MOST_BYTES, does_not_fit, name};
use super::{Export, WORD, function};
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result as Written;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;
use firsttouch_analysis::{Finding, ObjectView};
use firsttouch_model::error::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// Whether the bytes are a Parquet file.
#[must_use]
pub fn is_parquet(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The table of samples.
///
/// # Errors
/// When its texts are too large.
pub fn samples(export: &Export<'_>) -> Result<Vec<u8>> {
    let names: BTreeMap<_, _> =
        export.objects().into_iter().map(|(id, object)| (id, ByteArray::from(name(&object.name).as_str()))).collect();
    let mut table = Table::of(&[
        ("time_s", Values::reals()),
        ("thread", Values::whole()),
        ("thread_node", Values::whole()),
        ("object_id", Values::whole()),
        ("object", Values::texts()),
        ("position_bytes", Values::whole()),
        ("home_node", Values::whole()),
        ("remote", Values::flags()),
        ("in_report", Values::flags()),
        ("accesses", Values::whole()),
        ("bytes", Values::whole()),
        ("function", Values::texts()),
        ("file", Values::texts()),
        ("line", Values::whole()),
    ]);
    let mut leaves: BTreeMap<_, [Option<Cell>; 3]> = BTreeMap::new();
    for whole in export.whole() {
        let sample = whole.sample;
        let leaf = leaves.entry(sample.site).or_insert_with(|| {
            let stack = export.stack(sample);
            let leaf = stack.iter().find(|frame| frame.file.is_some()).or_else(|| stack.first()).copied();
            [
                leaf.map(|frame| text(&function(frame))),
                leaf.and_then(|frame| frame.file.as_deref()).map(|file| text(&name(file))),
                leaf.and_then(|frame| frame.line).map(|line| whole_number(line.into())),
            ]
        });
        let object = names.get(&sample.object).map_or_else(|| text(&format!("object {}", sample.object)), |name| Cell::Text(name.clone()));
        let [function, file, line] = leaf.clone();
        table.row([
            Some(Cell::Real(sample.time_ns as f64 / 1e9)),
            Some(whole_number(sample.thread as u64)),
            Some(whole_number(sample.thread_node.into())),
            Some(Cell::Whole(sample.object)),
            Some(object),
            Some(whole_number(sample.position)),
            sample.home.map(|home| whole_number(home.into())),
            sample.is_remote().map(Cell::Flag),
            Some(Cell::Flag(sample.counts)),
            Some(whole_number(whole.accesses)),
            Some(whole_number(whole.accesses.saturating_mul(WORD))),
            function,
            file,
            line,
        ])?;
    }
    table.finish("samples", export.remarks())
}

/// The table of objects, with the figures of `report --json`.
///
/// # Errors
/// When its texts are too large.
pub fn objects(export: &Export<'_>) -> Result<Vec<u8>> {
    let mut table = Table::of(&[
        ("object_id", Values::whole()),
        ("object", Values::texts()),
        ("process", Values::whole()),
        ("kind", Values::texts()),
        ("bytes", Values::whole()),
        ("count", Values::whole()),
        ("total_bytes", Values::whole()),
        ("allocated_function", Values::texts()),
        ("allocated_file", Values::texts()),
        ("allocated_line", Values::whole()),
        ("access_share", Values::reals()),
        ("access_share_low", Values::reals()),
        ("access_share_high", Values::reals()),
        ("remote_fraction", Values::reals()),
        ("remote_low", Values::reals()),
        ("remote_high", Values::reals()),
        ("first_touch_partition", Values::texts()),
        ("partition", Values::texts()),
        ("judged", Values::flags()),
        ("reason", Values::texts()),
        ("finding", Values::texts()),
    ]);
    let is_about = |finding: &&Finding, object: &ObjectView| finding.object == Some(object.id) || finding.together.contains(&object.id);
    for object in &export.analysis.objects {
        let place = object.allocated_at.as_ref();
        let share = object.access_share_interval;
        let remote = object.remote_interval;
        let finding = export.analysis.findings.iter().find(|finding| is_about(finding, object));
        let real = |value: Option<f64>| value.map(Cell::Real);
        table.row([
            Some(Cell::Whole(object.id)),
            Some(text(&name(&object.name))),
            Some(Cell::Whole(object.process)),
            word(&object.kind),
            Some(whole_number(object.bytes)),
            Some(whole_number(object.count as u64)),
            Some(whole_number(object.total_bytes)),
            place.and_then(|place| place.function.as_deref()).map(|function| text(&name(function))),
            place.and_then(|place| place.file.as_deref()).map(|file| text(&name(file))),
            place.and_then(|place| place.line).map(|line| whole_number(line.into())),
            real(object.access_share),
            real(share.map(|[low, _]| low)),
            real(share.map(|[_, high]| high)),
            real(object.remote_fraction),
            real(remote.map(|[low, _]| low)),
            real(remote.map(|[_, high]| high)),
            word(&object.first_touch.partition),
            word(&object.partition),
            Some(Cell::Flag(object.judged)),
            object.reason.as_ref().and_then(word),
            finding.map(|finding| text(finding.kind.as_str())),
        ])?;
    }
    table.finish("objects", export.remarks())
}

#[derive(Clone)]
enum Cell {
    Text(ByteArray),
    Whole(i64),
    Real(f64),
    Flag(bool),
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// Parquet's whole numbers are signed; what is larger than these is the largest.
fn whole_number(value: u64) -> Cell {
    Cell::Whole(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A value that JSON has as a word, as this word.
fn word(value: &impl Serialize) -> Option<Cell> {
    serde_json::to_value(value).ok()?.as_str().map(|word| text(&name(word)))
}

/// The values of a column that are not null.
#[derive(Clone)]
enum Values {
    Texts(Vec<ByteArray>),
    Whole(Vec<i64>),
    Reals(Vec<f64>),
    Flags(Vec<bool>),
}

impl Values {
    const fn texts() -> Self {
        Self::Texts(Vec::new())
    }

    const fn whole() -> Self {
        Self::Whole(Vec::new())
    }

    const fn reals() -> Self {
        Self::Reals(Vec::new())
    }

    const fn flags() -> Self {
        Self::Flags(Vec::new())
    }

    fn field(&self, name: &str) -> Written<Type> {
        let (physical, logical) = match self {
            Self::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole(_) => (Physical::INT64, None),
            Self::Reals(_) => (Physical::DOUBLE, None),
            Self::Flags(_) => (Physical::BOOLEAN, None),
        };
        Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
    }

    fn write(&self, levels: &[i16], column: &mut SerializedColumnWriter<'_>) -> Written<()> {
        match self {
            Self::Texts(values) => typed::<ByteArrayType>(values, levels, column),
            Self::Whole(values) => typed::<Int64Type>(values, levels, column),
            Self::Reals(values) => typed::<DoubleType>(values, levels, column),
            Self::Flags(values) => typed::<BoolType>(values, levels, column),
        }
    }
}

fn typed<T: DataType>(values: &[T::T], levels: &[i16], column: &mut SerializedColumnWriter<'_>) -> Written<()> {
    column.typed::<T>().write_batch(values, Some(levels), None).map(|_| ())
}

struct Column {
    name: &'static str,
    values: Values,
    /// For each row: 1 with a value, 0 for null.
    levels: Vec<i16>,
}

struct Table {
    columns: Vec<Column>,
    /// Bytes of all texts.
    text_bytes: usize,
}

impl Table {
    fn of(columns: &[(&'static str, Values)]) -> Self {
        let columns = columns.iter().map(|(name, values)| Column { name, values: values.clone(), levels: Vec::new() });
        Self { columns: columns.collect(), text_bytes: 0 }
    }

    /// Adds a row of as many cells as there are columns, of their kinds.
    fn row<const N: usize>(&mut self, cells: [Option<Cell>; N]) -> Result<()> {
        debug_assert_eq!(N, self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.levels.push(i16::from(cell.is_some()));
            match (&mut column.values, cell) {
                (Values::Texts(values), Some(Cell::Text(value))) => {
                    self.text_bytes += value.len();
                    values.push(value);
                }
                (Values::Whole(values), Some(Cell::Whole(value))) => values.push(value),
                (Values::Reals(values), Some(Cell::Real(value))) => values.push(value),
                (Values::Flags(values), Some(Cell::Flag(value))) => values.push(value),
                (_, None) => {}
                (_, Some(_)) => {
                    return Err(Error::other(format!("internal error: the column {} holds another kind of values", column.name)));
                }
            }
        }
        if self.text_bytes > MOST_BYTES {
            Err(does_not_fit(&format!("the names are larger than {} MiB", MOST_BYTES >> 20)))
        } else {
            Ok(())
        }
    }

    fn finish(self, name: &str, remarks: Vec<String>) -> Result<Vec<u8>> {
        self.write(name, remarks).map_err(|error| Error::other(format!("internal error: the Parquet file cannot be made: {error}")))
    }

    fn write(self, name: &str, remarks: Vec<String>) -> Written<Vec<u8>> {
        let fields = self.columns.iter().map(|column| column.values.field(column.name).map(Arc::new)).collect::<Written<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
        let remarks = remarks.into_iter().enumerate().map(|(at, words)| KeyValue::new(format!("firsttouch.{at}"), words)).collect();
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(remarks))
            .set_created_by(format!("firsttouch {}", env!("CARGO_PKG_VERSION")));
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            if let Some(mut writer) = group.next_column()? {
                column.values.write(&column.levels, &mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        file.into_inner()
    }
}
