//! Identifies a place in a program's code in every run, and in a new build if its lines have not moved.

/// A file that contains code or static arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The module's name in the plan: its file name, with a number if several files have the same name.
    pub name: String,
    pub path: String,
    /// In hexadecimal digits; empty if the file has none, or is no longer the file that was profiled.
    pub build_id: String,
}

/// An allocating call: its stack from the call to the outermost frame that is needed to identify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// `malloc`, `calloc`, `mmap`, ...
    pub call: String,
    /// Leaf first.
    pub frames: Vec<Frame>,
    /// Which of the site's allocations are meant: (index of the first, distance to the next one; 0: only the first). `None`: all.
    pub ordinal: Option<(u32, u32)>,
    /// Other calls have the same lines, so only offsets identify the call, in the build that was profiled.
    pub shares_lines: bool,
}

/// A function on the stack. A frame without a line matches one or more frames in code of its module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub module: String,
    /// Offset of the call in the file. Functions inlined into the next frame have the same offset.
    pub offset: Option<u64>,
    /// In the same build: half-open ranges of offsets with the copies that the compiler made of the call, which runs with other arguments may take.
    /// In the innermost of the functions inlined into one.
    pub copies: Vec<(u64, u64)>,
    pub inlined: bool,
    pub function: String,
    pub file: String,
    pub line: u32,
}

impl Frame {
    /// Whether the source line is known, so that it can be found in a new build.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.line != 0 && !self.file.is_empty()
    }

    /// Whether the frame matches any code of its module.
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

/// A hash that identifies a site: from functions, files and lines of the frames that have them, else from modules and offsets. The
/// directory of a file does not count, because a program may be built anywhere. (FNV-1a, 64 bits.)
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
