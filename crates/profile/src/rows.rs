//! The values of the rows of the largest tables, in the order of their columns.

use crate::bulk::Row;
use crate::writer::signed;
use firsttouch_model::rows::{FirstTouch, SampledAccess, TimerSample};
use rusqlite::types::Value;

impl Row<11> for FirstTouch {
    const TABLE: &'static str = "first_touches";

    fn values(&self) -> [Value; 11] {
        [
            self.id.into(),
            self.process.into(),
            signed(self.time_ns).into(),
            self.thread.into(),
            self.cpu.into(),
            signed(self.address).into(),
            self.weight.into(),
            self.by_kernel.into(),
            self.site.into(),
            self.mapped_bytes.map(signed).into(),
            self.node.into(),
        ]
    }
}

impl Row<15> for TimerSample {
    const TABLE: &'static str = "samples";

    fn values(&self) -> [Value; 15] {
        let around = self.around.as_ref();
        let progress = around.and_then(|around| around.progress);
        [
            self.id.into(),
            self.thread.into(),
            signed(self.time_ns).into(),
            self.cpu.into(),
            signed(self.cpu_ns).into(),
            self.weight.into(),
            self.site.into(),
            self.state.number().into(),
            around.map(|around| signed(around.end)).into(),
            around.map(|around| signed(around.entry)).into(),
            progress.map(|progress| signed(progress.value)).into(),
            progress.map(|progress| progress.step).into(),
            self.unknown.into(),
            self.elsewhere.into(),
            around.and_then(|around| around.left).map(signed).into(),
        ]
    }
}

impl Row<8> for SampledAccess {
    const TABLE: &'static str = "sampled_accesses";

    fn values(&self) -> [Value; 8] {
        [
            self.sample.into(),
            self.object.into(),
            signed(self.address).into(),
            self.bytes.into(),
            self.words.into(),
            self.kind.number().into(),
            self.site.into(),
            self.stride.into(),
        ]
    }
}
