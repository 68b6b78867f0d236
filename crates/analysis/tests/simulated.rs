//! A simulated target and sampler with known truth: objects swept by threads, windows drawn as `crates/capture` draws them.

use firsttouch_analysis::{Analysis, Sources, Target, analyse};
use firsttouch_model::rows::*;
use firsttouch_model::{Pin, TouchCause};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;
pub const MIB: u64 = 1 << 20;

/// A small deterministic generator (splitmix64).
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.unit() * n as f64) as u64).min(n.saturating_sub(1))
    }
}

fn hash(a: u64, b: u64) -> u64 {
    Random(a.wrapping_mul(31).wrapping_add(b)).bits()
}

/// Which thread accesses a position: for uses in each sweep, for touches once.
#[derive(Clone, Debug)]
pub enum Who {
    One(usize),
    /// Threads `first..first + count`, equal blocks.
    Block(usize, usize),
    /// The same, with borders at these fractions of the size.
    Borders(Vec<f64>),
    Cyclic(usize, usize, u64),
    All(usize, usize),
    /// Chunks of this size to changing threads.
    Dynamic(usize, usize, u64),
    /// Arrays of equal size, one behind the other.
    Arrays(Vec<Who>),
    /// One of these in each sweep, in turn.
    Turns(Vec<Who>),
}

impl Who {
    pub fn at(&self, x: u64, bytes: u64, sweep: u64) -> Vec<usize> {
        match self {
            Who::One(t) => vec![*t],
            Who::Block(first, count) => vec![first + ((x as u128 * *count as u128 / bytes as u128) as usize).min(count - 1)],
            Who::Borders(list) => vec![list.iter().filter(|&&b| x as f64 / bytes as f64 >= b).count()],
            Who::Cyclic(first, count, chunk) => vec![first + (x / chunk) as usize % count],
            Who::All(first, count) => (*first..first + count).collect(),
            Who::Arrays(list) => {
                let each = bytes / list.len() as u64;
                list[((x / each) as usize).min(list.len() - 1)].at(x % each, each, sweep)
            }
            Who::Turns(list) => list[sweep as usize % list.len()].at(x, bytes, sweep),
            Who::Dynamic(first, count, chunk) => vec![first + (hash(x / chunk, sweep) % *count as u64) as usize],
        }
    }
}

/// One object of the simulated program. Times are from the start of the run, ns.
#[derive(Clone, Debug)]
pub struct Thing {
    pub name: &'static str,
    pub bytes: u64,
    pub born: u64,
    pub died: Option<u64>,
    pub touch: Option<Who>,
    /// Duration of the initialisation.
    pub touch_ns: u64,
    pub user: Who,
    pub from: u64,
    pub until: u64,
    /// Duration of one sweep; each sweep accesses each word `reps` times by each of its users.
    pub sweep: u64,
    pub reps: u64,
    pub by_kernel: bool,
    pub page: u64,
    pub address: Option<u64>,
    /// Objects with the same number have the same allocation site (0: a separate site).
    pub site: i64,
    pub call: &'static str,
}

impl Thing {
    pub fn new(name: &'static str, mib: u64, touch: Who, user: Who) -> Self {
        Self {
            name,
            bytes: mib * MIB,
            born: 0,
            died: None,
            touch: Some(touch),
            touch_ns: 100 * MS,
            user,
            from: 200 * MS,
            until: u64::MAX,
            sweep: 97_310_000,
            reps: 1,
            by_kernel: false,
            page: 4096,
            address: None,
            site: 0,
            call: "malloc",
        }
    }

    fn end(&self, world: &World) -> u64 {
        self.until.min(self.died.unwrap_or(u64::MAX)).min(world.seconds * S)
    }

    /// Accesses to the word at `x` in [a, b), by thread: in sweep k at from + (k + x / bytes) x sweep.
    fn accesses(&self, world: &World, x: u64, a: u64, b: u64) -> Vec<(usize, u64)> {
        let (a, b) = (a.max(self.from), b.min(self.end(world)));
        if a >= b {
            return Vec::new();
        }
        let lag = (x as f64 / self.bytes as f64 * self.sweep as f64) as u64;
        let first = (a.saturating_sub(self.from + lag)).div_ceil(self.sweep);
        let mut result: Vec<(usize, u64)> = Vec::new();
        let mut k = first;
        while self.from + lag + k * self.sweep < b {
            for t in self.user.at(x, self.bytes, k) {
                match result.iter_mut().find(|r| r.0 == t) {
                    Some(r) => r.1 += self.reps,
                    None => result.push((t, self.reps)),
                }
            }
            k += 1;
        }
        result
    }
}

#[derive(Clone, Debug)]
pub struct World {
    /// The (start, end) of each thread, ns.
    pub threads: Vec<(u64, Option<u64>)>,
    pub things: Vec<Thing>,
    pub seconds: u64,
    /// One of this many page faults is sampled.
    pub period: u64,
    pub round_ns: u64,
}

/// Exact figures.
pub struct Truth {
    pub share: Vec<f64>,
    /// By thing, by thread.
    pub used_by: Vec<Vec<f64>>,
}

impl World {
    pub fn new(threads: usize, things: Vec<Thing>) -> Self {
        Self { threads: (0..threads).map(|t| (t as u64, None)).collect(), things, seconds: 10, period: 1, round_ns: 10 * MS }
    }

    pub fn address(&self, i: usize) -> u64 {
        self.things[i].address.unwrap_or(0x7000_0000_0000 + ((i as u64) << 34))
    }

    /// Accesses of use by thing and thread, over a fine grid of words.
    pub fn truth(&self) -> Truth {
        let mut total = Vec::new();
        for thing in &self.things {
            let mut by = vec![0.0; self.threads.len()];
            let grid = 4096;
            for g in 0..grid {
                let x = (thing.bytes as f64 * (g as f64 + 0.5) / grid as f64) as u64 & !7;
                for (t, n) in thing.accesses(self, x, 0, u64::MAX) {
                    by[t] += n as f64 * thing.bytes as f64 / 8.0 / grid as f64;
                }
            }
            total.push(by);
        }
        let sums: Vec<f64> = total.iter().map(|by| by.iter().sum()).collect();
        let all: f64 = sums.iter().sum();
        let used_by = total.iter().zip(&sums).map(|(by, s)| by.iter().map(|n| if *s > 0.0 { n / s } else { 0.0 }).collect()).collect();
        Truth { share: sums.iter().map(|s| s / all).collect(), used_by }
    }

    /// The exact remote fraction over the things larger than `cache`, with `node` of each thread.
    pub fn remote(&self, cache: u64, node: impl Fn(usize) -> u32) -> f64 {
        let (mut away, mut all) = (0.0, 0.0);
        for thing in self.things.iter().filter(|t| t.bytes > cache) {
            for g in 0..4096u64 {
                let x = (thing.bytes as f64 * (g as f64 + 0.5) / 4096.0) as u64 & !7;
                let home = node(thing.touch.as_ref().unwrap().at(x / thing.page * thing.page, thing.bytes, 0)[0]);
                for (t, n) in thing.accesses(self, x, 0, u64::MAX) {
                    all += n as f64 * thing.bytes as f64;
                    away += if node(t) == home { 0.0 } else { n as f64 * thing.bytes as f64 };
                }
            }
        }
        if all > 0.0 { away / all } else { 0.0 }
    }

    pub fn profile(&self, seed: u64) -> Profile {
        let mut random = Random(seed);
        let end = self.seconds * S;
        let mut p = Profile::default();
        for (key, value) in
            [("command", "[\"./sim\",\"1\"]"), ("exit_code", "0"), ("start_ns", "0"), ("watch_start_ns", "0"), ("mode", "launch")]
        {
            p.meta.set(key, value);
        }
        p.meta.set("end_ns", &end.to_string());
        p.machine = Machine { page_bytes: 4096, huge_page_bytes: 2 * MIB, transparent_huge_pages: "madvise".into(), ..Machine::default() };
        p.machine.node_cpus.insert(0, (0..8).collect());
        p.processes.push(Process { id: 1, pid: 100, parent: None, exe: None, born_ns: 0, died_ns: Some(end) });
        for (i, &(born, died)) in self.threads.iter().enumerate() {
            p.threads.push(Thread { id: i as i64, process: 1, tid: 100 + i as i32, born_ns: born, died_ns: died, ..Thread::default() });
        }
        for source in ["touch", "watch"] {
            p.evidence.push(Evidence { source: source.into(), available: true, samples: 1, detail: String::new() });
        }
        for (i, thing) in self.things.iter().enumerate() {
            let id = i as i64;
            let own = if thing.site == 0 { 100 + id } else { thing.site };
            for (site, line, file) in [(own, 10, "alloc.c"), (1000 + id, 20, "touch.c"), (2000 + id, 30, "use.c")] {
                let frames = vec![Frame {
                    address: site as u64 * 16,
                    function: Some("main".into()),
                    file: Some(file.into()),
                    line: Some(line + if line == 10 { site as u32 } else { id as u32 }),
                    ..Frame::default()
                }];
                p.sites.insert(site, Site { id: site, process: 1, frames });
            }
            p.objects.push(Object {
                id,
                process: 1,
                kind: ObjectKind::Heap,
                call: Some(thing.call.into()),
                name: Some(thing.name.into()),
                address: self.address(i),
                bytes: thing.bytes,
                born_ns: thing.born,
                died_ns: thing.died,
                site: Some(own),
                thread: Some(0),
            });
            self.touches(&mut p, i, &mut random);
        }
        self.windows(&mut p, &mut random);
        p
    }

    fn touches(&self, p: &mut Profile, i: usize, random: &mut Random) {
        let thing = &self.things[i];
        let Some(who) = &thing.touch else { return };
        let pages = thing.bytes / thing.page;
        let phase = random.below(self.period);
        for page in (0..pages).filter(|page| page % self.period == phase) {
            let x = page * thing.page;
            // The first of a huge page's users touches the page at its own part.
            let at = if thing.page > 4096 { x + random.below(thing.page) / 4096 * 4096 } else { x };
            p.first_touches.push(FirstTouch {
                id: p.first_touches.len() as i64,
                process: 1,
                time_ns: thing.born + (page as f64 / pages as f64 * thing.touch_ns as f64) as u64,
                thread: who.at(at, thing.bytes, 0)[0] as i64,
                cpu: 0,
                address: self.address(i) + at,
                weight: self.period as f64,
                by_kernel: thing.by_kernel,
                site: Some(1000 + i as i64),
                mapped_bytes: None,
                node: None,
            });
            if thing.page > 4096 {
                let address = self.address(i) + x;
                p.pages.push(Page {
                    process: 1,
                    object: Some(i as i64),
                    address,
                    time_ns: self.seconds * S - 1,
                    node: 0,
                    page_bytes: thing.page,
                });
            }
        }
    }

    /// Draws rounds of four windows. An object's probability is proportional to the square root of its size. The word within it follows a
    /// shifted golden-ratio sequence.
    fn windows(&self, p: &mut Profile, random: &mut Random) {
        let mut next: Vec<f64> = self.things.iter().map(|_| random.unit()).collect();
        let rounds = self.seconds * S / self.round_ns;
        for round in 0..rounds {
            let start = round * self.round_ns + random.below(self.round_ns / 10);
            let alive: Vec<usize> =
                (0..self.things.len()).filter(|&i| self.things[i].born <= start && self.things[i].died.is_none_or(|d| d > start)).collect();
            let weight = |i: usize| (self.things[i].bytes as f64).sqrt();
            let sum: f64 = alive.iter().map(|&i| weight(i)).sum();
            for _ in 0..4 {
                let mut left = random.unit() * sum;
                let Some(&i) = alive.iter().find(|&&i| {
                    left -= weight(i);
                    left < 0.0
                }) else {
                    continue;
                };
                let thing = &self.things[i];
                next[i] = (next[i] + 0.618_033_988_75).fract();
                let x = (next[i] * (thing.bytes / 8) as f64) as u64 * 8;
                let held = self.round_ns * 9 / 10;
                let id = p.windows.len() as i64;
                p.windows.push(Window {
                    id,
                    round,
                    object: i as i64,
                    address: self.address(i) + x,
                    start_ns: start,
                    held_ns: held,
                    round_ns: self.round_ns,
                    inclusion: 4.0 * weight(i) / sum,
                });
                for (t, n) in thing.accesses(self, x, start, start + held) {
                    let site = Some(2000 + i as i64);
                    p.accesses.push(Access {
                        window: id,
                        thread: t as i64,
                        site,
                        hits: n,
                        estimate: n as f64,
                        watched_ns: held,
                        cut: false,
                        cpu: None,
                        cpu_ns: None,
                    });
                }
            }
        }
    }
}

/// Sources that know a few lines and give every touch the same cause.
pub struct FakeSources(pub TouchCause);

impl Sources for FakeSources {
    fn line(&self, file: &str, line: u32) -> Option<String> {
        const TOUCH: [&str; 8] = [
            "void fill(double *restrict A, size_t n) {",
            "  size_t i;",
            "  for (i = 0; i < n; i++)",
            "    A[i] = 0.0;",
            "  for (i = 0; i < n; i++) {",
            "    C[i] = next();",
            "  }",
            "}",
        ];
        let text = (line as usize).checked_sub(17).map_or(Some(&""), |index| TOUCH.get(index))?;
        (file == "touch.c").then(|| (*text).to_owned())
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        self.0
    }
    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        (!frames.is_empty()).then_some(0)
    }
    fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
        None
    }
}

pub fn target(nodes: usize) -> Target {
    Target {
        name: format!("virtual:{nodes}"),
        nodes,
        virtual_machine: true,
        pin: Pin::Spread,
        place_all_threads: false,
        cores_per_node: 4,
        cpu_nodes: vec![],
        slow_nodes: vec![],
        private_cache_bytes: MIB,
        ranks: Default::default(),
    }
}

pub fn judge(world: &World, seed: u64, nodes: usize) -> Analysis {
    analyse(&world.profile(seed), &target(nodes), &FakeSources(TouchCause::Loop))
}

/// (object name, finding) of each finding.
pub fn found(analysis: &Analysis) -> Vec<(String, String)> {
    analysis.findings.iter().map(|f| (f.object_name.clone(), f.kind.to_string())).collect()
}

/// A program of one file: the text of each line, and no more.
pub struct Program(pub String);

impl Sources for Program {
    fn line(&self, _: &str, line: u32) -> Option<String> {
        self.0.lines().nth(line as usize - 1).map(str::to_owned)
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        TouchCause::Loop
    }
    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        (!frames.is_empty()).then_some(0)
    }
    fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
        None
    }
}
