//! What tells one place in a program's code from others, in every run of it, and in a new build where its lines have not moved.

/// A file that code or static arrays lie in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// By which the plan names it: its file name, with a number where two have the same.
    pub name: String,
    pub path: String,
    /// In hexadecimal digits; empty where it has none, or is not the file that was profiled any more.
    pub build_id: String,
}

/// An allocating call: its stack from the call to the outermost frame that tells it from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// `malloc`, `calloc`, `mmap`, ...
    pub call: String,
    /// Leaf first.
    pub frames: Vec<Frame>,
    /// Which of the site's allocations: the first, and after how many it is one of them again (0: never). `None`: all.
    pub ordinal: Option<(u32, u32)>,
    /// Other calls have the same lines: only in the build that was profiled, offsets tell them apart.
    pub shares_lines: bool,
}

/// A function on the stack. Without a line it stands for one or more frames in code of its module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub module: String,
    /// Of the call, as an offset into the file; the same for functions that were inlined into the next.
    pub offset: Option<u64>,
    pub inlined: bool,
    pub function: String,
    pub file: String,
    pub line: u32,
}

impl Frame {
    /// Whether the source line is known, so that a new build can be searched for it.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.line != 0 && !self.file.is_empty()
    }

    /// Whether it stands for any code of its module.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.offset.is_none()
    }
}

/// The last part of a path.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Names a site: functions, files and lines of the frames that have them, else modules and offsets. Where the file lies does not
/// count: a program may be built anywhere. (FNV-1a, 64 bits.)
#[must_use]
pub fn hash(site: &Site) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    let has_lines = site.frames.iter().any(Frame::has_line);
    add(&site.call);
    for frame in site.frames.iter().filter(|frame| frame.has_line() == has_lines) {
        if has_lines {
            add(&frame.function);
            add(file_name(&frame.file));
            add(&frame.line.to_string());
        } else {
            add(&frame.module);
            add(&frame.offset.map(|offset| offset.to_string()).unwrap_or_default());
        }
    }
    format!("{hash:016x}")
}
