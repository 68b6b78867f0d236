//! Records of perf events as types. Pure: works on bytes, and never panics on malformed ones.

/// A record of a perf event.
#[derive(Clone, Debug, PartialEq)]
pub enum PerfRecord {
    Sample(Box<Sample>),
    Task(TaskEvent),
    /// Records that the kernel dropped because the ring was full.
    Lost {
        count: u64,
    },
    Throttled,
}

/// What happened to a thread or its memory map (perf calls these side-band records).
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEvent {
    Fork {
        time: u64,
        pid: i32,
        parent_pid: i32,
        tid: i32,
        parent_tid: i32,
    },
    Exit {
        time: u64,
        pid: i32,
        tid: i32,
    },
    /// A thread got a name; `exec`: because it replaced its program.
    Comm {
        time: u64,
        pid: i32,
        tid: i32,
        name: String,
        exec: bool,
    },
    /// An executable mapping.
    Map {
        time: u64,
        pid: i32,
        start: u64,
        length: u64,
        file_offset: u64,
        path: String,
    },
}

impl TaskEvent {
    #[must_use]
    pub fn time(&self) -> u64 {
        match self {
            Self::Fork { time, .. } | Self::Exit { time, .. } | Self::Comm { time, .. } | Self::Map { time, .. } => *time,
        }
    }
}

/// A page fault or a watchpoint hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub ip: u64,
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    /// The faulting address, or the watched one.
    pub address: u64,
    pub cpu: u32,
    /// The perf event that took the sample.
    pub event: u64,
    /// Taken while the CPU was in kernel mode.
    pub in_kernel: bool,
    /// User registers in the order of [`firsttouch_system::calls::perf::REGS_USER`]; empty when there were none.
    pub registers: Vec<u64>,
    /// Bytes of the user stack from the stack pointer upwards.
    pub stack: Vec<u8>,
    /// Size of the page that was mapped at `address` when the event happened, 0 if no page was mapped; `None` if the event does not report it.
    pub page_bytes: Option<u64>,
}

const RECORD_MMAP: u32 = 1;
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_THROTTLE: u32 = 5;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_MMAP2: u32 = 10;
const RECORD_LOST_SAMPLES: u32 = 13;
const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;

/// Parses the body of a record (after its 8-byte header). `None` for kinds that are not used, and for records that are too short.
#[must_use]
pub fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<PerfRecord> {
    let mut r = Reader::new(body);
    Some(match kind {
        RECORD_SAMPLE => PerfRecord::Sample(Box::new(sample(&mut r, misc)?)),
        RECORD_FORK | RECORD_EXIT => {
            let (pid, parent_pid, tid, parent_tid, time) = (r.i32()?, r.i32()?, r.i32()?, r.i32()?, r.u64()?);
            let fork = TaskEvent::Fork { time, pid, parent_pid, tid, parent_tid };
            PerfRecord::Task(if kind == RECORD_FORK { fork } else { TaskEvent::Exit { time, pid, tid } })
        }
        RECORD_COMM => {
            let (pid, tid) = (r.i32()?, r.i32()?);
            let (time, exec) = (trailer_time(body)?, misc & MISC_COMM_EXEC != 0);
            PerfRecord::Task(TaskEvent::Comm { time, pid, tid, name: r.text(), exec })
        }
        RECORD_MMAP | RECORD_MMAP2 => {
            let (pid, _tid, start, length, file_offset) = (r.i32()?, r.i32()?, r.u64()?, r.u64()?, r.u64()?);
            if kind == RECORD_MMAP2 {
                r.at += 32; // device, inode, generation, protection, flags (or the build id)
            }
            let time = trailer_time(body)?;
            PerfRecord::Task(TaskEvent::Map { time, pid, start, length, file_offset, path: r.text() })
        }
        RECORD_LOST => {
            let _id = r.u64()?;
            PerfRecord::Lost { count: r.u64()? }
        }
        RECORD_LOST_SAMPLES => PerfRecord::Lost { count: r.u64()? },
        RECORD_THROTTLE => PerfRecord::Throttled,
        _ => return None,
    })
}

fn sample(r: &mut Reader<'_>, misc: u16) -> Option<Sample> {
    let ip = r.u64()?;
    let (pid, tid) = (r.i32()?, r.i32()?);
    let (time, address) = (r.u64()?, r.u64()?);
    let event = r.u64()?;
    let cpu = r.u32()?;
    let _reserved = r.u32()?;
    let registers_abi = r.u64()?;
    let mut registers = Vec::new();
    if registers_abi != 0 {
        for _ in 0..firsttouch_system::calls::perf::REGS_USER.count_ones() {
            registers.push(r.u64()?);
        }
    }
    let stack = r.user_stack()?;
    let page_bytes = r.u64();
    let in_kernel = misc & MISC_CPUMODE == MISC_KERNEL;
    Some(Sample { ip, pid, tid, time, address, cpu, event, in_kernel, registers, stack, page_bytes })
}

/// `sample_id_all` puts tid, time, id, cpu (8 bytes each here) at the end of every record that is not a sample.
fn trailer_time(body: &[u8]) -> Option<u64> {
    let at = body.len().checked_sub(24)?;
    Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?))
}

/// Takes fields off the front of a record's body.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The bytes of the user stack (`PERF_SAMPLE_STACK_USER`): as many as the kernel could copy.
    pub(super) fn user_stack(&mut self) -> Option<Vec<u8>> {
        let dumped = usize::try_from(self.u64()?).ok()?;
        if dumped == 0 {
            return Some(Vec::new());
        }
        let bytes = self.take(dumped)?;
        let valid = usize::try_from(self.u64()?).ok()?.min(dumped);
        Some(bytes.get(..valid)?.to_vec())
    }

    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    /// A NUL-terminated string.
    fn text(&mut self) -> String {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that no prefix of a well-formed sample and no arbitrary bytes make the parser panic.
    #[test]
    fn malformed_records_are_refused() {
        let mut body = Vec::new();
        let registers = (1..=u64::from(firsttouch_system::calls::perf::REGS_USER.count_ones())).map(|i| 10 * i);
        for word in [0x40_1000u64, 7 | 8 << 32, 99, 0x7000, 3, 1, 2].into_iter().chain(registers).chain([16, 5, 6, 16]) {
            body.extend_from_slice(&word.to_ne_bytes());
        }
        for length in 0..body.len() {
            for kind in 0..20 {
                let _ = parse(kind, 0xffff, &body[..length]);
            }
            assert!(parse(RECORD_SAMPLE, 2, &body[..length]).is_none(), "{length} of {} bytes", body.len());
        }
        let Some(PerfRecord::Sample(sample)) = parse(RECORD_SAMPLE, 2, &body) else { panic!("whole sample") };
        assert_eq!((sample.pid, sample.tid, sample.event, sample.stack.len(), sample.page_bytes), (7, 8, 3, 16, None));
        body.extend_from_slice(&2_097_152u64.to_ne_bytes());
        let Some(PerfRecord::Sample(sample)) = parse(RECORD_SAMPLE, 2, &body) else { panic!("with the size of the page") };
        assert_eq!(sample.page_bytes, Some(2 << 20));
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let length = usize::try_from(state >> 57).unwrap_or(0);
            let noise: Vec<u8> = (0..length).map(|i| (state >> (i % 8 * 8)).to_ne_bytes()[0]).collect();
            let _ = parse(u32::try_from(state % 20).unwrap_or(0), (state >> 32) as u16, &noise);
        }
    }
}
