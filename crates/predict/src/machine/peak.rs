//! Checks a description against what its memory channels can deliver. A figure above that is usually a store counted wrongly: a kernel with
//! streaming stores that is described as one whose stores read their lines first.

use super::MachineError;
use super::build::{Facts, each, refused};
use super::file::File;
use super::streams::Streams;

/// Bytes that a channel moves in one transfer.
const CHANNEL_BYTES: f64 = 8.0;

/// Rounding of published figures.
const ROUNDING: f64 = 1.005;

/// Refuses figures above the peak of a node's channels; without channels, accepts everything.
pub fn check(file: &File, nodes: usize, facts: &mut Facts<'_>) -> Result<(), MachineError> {
    let number = |place: &str, number: &Option<_>, facts: &mut Facts<'_>| match number {
        Some(number) => each(place, number, nodes, facts).map(Some),
        None => Ok(None),
    };
    let channels = number("nodes.channels", &file.nodes.channels, facts)?;
    let transfers = number("nodes.mega_transfers_per_s", &file.nodes.mega_transfers_per_s, facts)?;
    let (channels, transfers) = match (channels, transfers) {
        (Some(channels), Some(transfers)) => (channels, transfers),
        (None, None) => return Ok(()),
        (Some(_), None) => return refused("nodes.mega_transfers_per_s", "needed with nodes.channels: both together give the peak"),
        (None, Some(_)) => return refused("nodes.channels", "needed with nodes.mega_transfers_per_s: both together give the peak"),
    };
    let peaks: Vec<f64> = channels.iter().zip(&transfers).map(|(channels, transfers)| channels * transfers * CHANNEL_BYTES / 1e3).collect();
    let lowest = peaks.iter().copied().fold(f64::INFINITY, f64::min);
    let described = |peak: f64| format!("{peak:.1} GB/s of nodes.channels at nodes.mega_transfers_per_s");
    for (index, curve) in file.controller.curves.iter().enumerate() {
        let most = curve.points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        above(&format!("controller.curves[{index}]"), curve.streams, most, lowest, &described(lowest))?;
    }
    // With curves, the matrix gives links only.
    if let Some(pairs) = file.bandwidth.as_ref().filter(|_| file.controller.curves.is_empty()) {
        for (node, peak) in peaks.iter().enumerate() {
            above("bandwidth", pairs.streams, pairs.gb_per_s[node][node], *peak, &described(*peak))?;
        }
    }
    Ok(())
}

fn above(place: &str, streams: Streams, reported: f64, peak: f64, described: &str) -> Result<(), MachineError> {
    let actual = reported * streams.traffic_factor();
    if actual <= peak * ROUNDING {
        return Ok(());
    }
    let advice = if streams.allocate > 0.0 && reported <= peak * ROUNDING {
        "; if the kernel's stores were streaming stores, `allocate = 0` in streams"
    } else {
        ""
    };
    refused(format!("{place}.streams"), format!("{reported} GB/s reported is {actual:.1} GB/s of traffic, above the {described}{advice}"))
}
