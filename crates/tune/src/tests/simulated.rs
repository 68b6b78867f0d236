//! A program with arrays on nodes, whose threads make accesses at random (a fixed seed), and a kernel that moves its pages.

use crate::{Budget, Distances, ObjectUses, Settings, Tuner, Use};
use firsttouch_placement::move_pages::Mover;
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

pub const PAGE: u64 = 4096;
pub const S: u64 = 1_000_000_000;

/// Pages by address, on nodes.
#[derive(Default)]
pub struct Kernel {
    pub pages: BTreeMap<u64, u32>,
    /// Pages that do not move, and why.
    pub stuck: BTreeMap<u64, i32>,
    /// Pages that moved, at their times.
    pub moves: Vec<(u64, u64)>,
    pub now_ns: u64,
    pub refusal: Option<i32>,
}

pub struct Fake(pub Mutex<Kernel>);

impl Mover for Fake {
    fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        let kernel = self.0.lock().unwrap();
        Ok(addresses.iter().map(|address| kernel.pages.get(&(address / PAGE * PAGE)).map_or(-libc::ENOENT, |node| *node as i32)).collect())
    }

    fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        let mut kernel = self.0.lock().unwrap();
        if let Some(errno) = kernel.refusal {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let mut status = Vec::new();
        for (address, node) in addresses.iter().zip(nodes) {
            status.push(match kernel.stuck.get(address) {
                Some(errno) => -errno,
                None => {
                    let now = kernel.now_ns;
                    kernel.moves.push((now, *address));
                    kernel.pages.insert(*address, *node as u32);
                    *node
                }
            });
        }
        Ok(status)
    }
}

/// Which node uses a page of an array, at a time; `None`: any.
pub type User = dyn Fn(u64, u64) -> Option<u32>;

/// A program with one array of `pages` pages.
pub struct Program {
    pub fake: Fake,
    pub start: u64,
    pub pages: u64,
    pub tuner: Tuner,
    budget: Budget,
    pub now_ns: u64,
    window: Vec<Use>,
    seed: u64,
    /// Accesses that are sampled a second.
    pub a_second: u64,
    pub nodes: u64,
    /// The seconds that pages were on another node than their user: its integral.
    pub misplaced_page_s: f64,
    /// The part of the array that is in use at a time, from its beginning.
    pub reach: fn(u64) -> f64,
    /// What the kernel said when it refused.
    pub refused: Option<i32>,
}

pub const WINDOW: u64 = 20 * S;

impl Program {
    /// `home`: the node of each page at the start.
    pub fn new(pages: u64, budget: f64, home: impl Fn(u64) -> u32) -> Self {
        let start = 1 << 30;
        let kernel = Kernel { pages: (0..pages).map(|page| (start + page * PAGE, home(page))).collect(), ..Kernel::default() };
        let settings = Settings { distances: Distances::default(), dry_run: false, began_ns: 0 };
        Self {
            fake: Fake(Mutex::new(kernel)),
            start,
            pages,
            tuner: Tuner::new(settings),
            budget: Budget::new(budget),
            now_ns: S,
            window: Vec::new(),
            seed: 1,
            a_second: 200,
            nodes: 2,
            misplaced_page_s: 0.0,
            reach: |_| 1.0,
            refused: None,
        }
    }

    fn random(&mut self) -> u64 {
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Runs for half a second, and is looked at. `user`: of a page, at a time.
    pub fn half_a_second(&mut self, user: &User) -> usize {
        self.half_a_second_of(user, 4)
    }

    /// As one thread, wherever it is.
    pub fn half_a_second_of_one_thread(&mut self, user: &User) -> usize {
        self.half_a_second_of(user, 0)
    }

    fn half_a_second_of(&mut self, user: &User, threads_a_node: u64) -> usize {
        let step = S / 2;
        let accesses = self.a_second / 2;
        for number in 0..accesses {
            let time_ns = self.now_ns + step * number / accesses;
            let page = self.random() % ((self.pages as f64 * (self.reach)(time_ns)) as u64).max(1);
            let node = user(page, time_ns).unwrap_or_else(|| (self.random() % self.nodes) as u32);
            let address = self.start + page * PAGE + self.random() % PAGE;
            // Two CPUs of each node are busy.
            let thread =
                if threads_a_node == 0 { 0 } else { (u64::from(node) * threads_a_node + self.random() % threads_a_node).cast_signed() };
            self.window.push(Use {
                time_ns,
                address,
                thread,
                node,
                home: None,
                cpu_ns: 2.0 * self.nodes as f64 * 1e9 / self.a_second as f64,
            });
        }
        self.misplaced_page_s += 0.5 * self.misplaced(user) as f64;
        self.now_ns += step;
        let from = self.now_ns.saturating_sub(WINDOW);
        self.window.retain(|one| one.time_ns >= from);
        let uses = {
            let kernel = self.fake.0.lock().unwrap();
            let home = |one: &Use| kernel.pages.get(&(one.address / PAGE * PAGE)).copied();
            self.window.iter().map(|one| Use { home: home(one), ..*one }).collect()
        };
        let object = ObjectUses {
            id: 1,
            name: "A".to_owned(),
            line: Some("solver.c:41".to_owned()),
            start: self.start,
            bytes: self.pages * PAGE,
            grain_bytes: PAGE,
            exempt: None,
            uses,
        };
        let decided = self.tuner.observe(self.now_ns, WINDOW, vec![object]);
        self.carry(step);
        decided
    }

    /// The mover works for so long beside the program: each 50 ms.
    fn carry(&mut self, time_ns: u64) {
        for turn in 0..time_ns / (S / 20) {
            let mut now = self.now_ns - time_ns + turn * (S / 20);
            self.fake.0.lock().unwrap().now_ns = now;
            // A call takes 1 ms.
            let mut clock = || {
                now += S / 1000;
                now
            };
            if let Err(error) = self.tuner.step(&mut self.budget, &self.fake, &mut clock) {
                self.refused = error.raw_os_error();
            }
        }
    }

    pub fn run(&mut self, seconds: u64, user: &User) {
        for _ in 0..2 * seconds {
            self.half_a_second(user);
        }
    }

    /// Pages that are on another node than their user.
    pub fn misplaced(&self, user: &User) -> usize {
        let kernel = self.fake.0.lock().unwrap();
        let is_wrong = |(address, node): (&u64, &u32)| user((address - self.start) / PAGE, self.now_ns).is_some_and(|user| user != *node);
        kernel.pages.iter().filter(|(address, node)| is_wrong((address, node))).count()
    }

    pub fn moved(&self) -> usize {
        self.fake.0.lock().unwrap().moves.len()
    }
}
