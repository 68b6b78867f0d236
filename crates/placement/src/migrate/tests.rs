//! Migration on a fake kernel.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;

const PAGE: u64 = 4096;

/// Pages by address with their node; some refuse, some only once.
#[derive(Default)]
struct Fake {
    pages: BTreeMap<u64, u32>,
    refuse: BTreeMap<u64, i32>,
    busy_once: Vec<u64>,
    /// Ends after so many calls.
    lives: Option<u32>,
    calls: u32,
}

impl Fake {
    fn with(pages: u64, node: impl Fn(u64) -> u32) -> Self {
        Self { pages: (0..pages).map(|page| (0x1000 + page * PAGE, node(page))).collect(), ..Self::default() }
    }

    fn alive(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.lives.is_some_and(|most| self.calls > most) { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    }
}

impl Mover for Fake {
    fn nodes(&mut self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        self.alive()?;
        Ok(addresses.iter().map(|address| self.pages.get(address).map_or(-libc::ENOENT, |node| *node as i32)).collect())
    }

    fn relocate(&mut self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        self.alive()?;
        assert!(nodes.windows(2).all(|pair| pair[0] <= pair[1]), "pages of one target in a row");
        let one = |(address, node): (&u64, &i32)| {
            if let Some(errno) = self.refuse.get(address) {
                return -errno;
            }
            if let Some(place) = self.busy_once.iter().position(|busy| busy == address) {
                self.busy_once.remove(place);
                return -libc::EBUSY;
            }
            self.pages.insert(*address, *node as u32);
            *node
        };
        Ok(addresses.iter().zip(nodes).map(one).collect())
    }
}

fn span(pages: u64, rule: Rule) -> Span {
    Span { start: 0x1000, end: 0x1000 + pages * PAGE, page_bytes: PAGE, present: None, rule }
}

/// Check that pages on other nodes move and the rest stays, chunk by chunk, with progress.
#[test]
fn pages_move_to_a_node() {
    let mut fake = Fake::with(10_000, |page| u32::from(page % 4 == 0));
    let mut looks = 0;
    let spans = [span(20_000, Rule::To(vec![1]))];
    let done = migrate(&mut fake, &spans, &mut |_| looks += 1).unwrap();
    assert!(fake.pages.values().all(|node| *node == 1) && looks == 1 + (20_001 - CHUNK).div_ceil(CHUNK));
    assert_eq!((done.moved, done.there, done.moved_bytes), (7500, 2500, 7500 * PAGE));
    assert_eq!((done.from, done.to), ([(0, 7500 * PAGE)].into(), [(1, 7500 * PAGE)].into()));
    assert!(done.failed.is_empty() && !done.ended);
}

/// Check that pages are dealt out evenly to several nodes, and interleaved by address.
#[test]
fn pages_are_spread() {
    let count = |fake: &Fake, node: u32| fake.pages.values().filter(|on| **on == node).count();
    let mut fake = Fake::with(900, |_| 3);
    migrate(&mut fake, &[span(900, Rule::To(vec![0, 2]))], &mut |_| ()).unwrap();
    assert_eq!((count(&fake, 0), count(&fake, 2)), (450, 450));
    let mut fake = Fake::with(900, |_| 0);
    let done = migrate(&mut fake, &[span(900, Rule::Interleave(vec![0, 1, 2]))], &mut |_| ()).unwrap();
    assert_eq!((done.moved, done.there), (600, 300));
    assert!(fake.pages.iter().all(|(address, node)| u64::from(*node) == address / PAGE % 3));
}

/// Check that what cannot move is counted by reason, and what was busy is tried once more.
#[test]
fn what_cannot_move_is_counted() {
    let mut fake = Fake::with(100, |_| 0);
    fake.refuse = [(0x1000, libc::EACCES), (0x2000, libc::ENOMEM), (0x3000, libc::EBUSY), (0x4000, libc::ENOENT)].into();
    fake.busy_once = vec![0x5000, 0x6000];
    let done = migrate(&mut fake, &[span(100, Rule::To(vec![1]))], &mut |_| ()).unwrap();
    assert_eq!(done.failed, [(libc::EACCES, 1), (libc::ENOMEM, 1), (libc::EBUSY, 1)].into());
    assert_eq!((done.moved, fake.pages[&0x5000], fake.pages[&0x3000]), (96, 1, 0));
}

/// Check that what was busy because it is a part of a huge page, and moved with that, counts as moved.
#[test]
fn parts_of_huge_pages_are_counted() {
    /// Pages 0 and 1 are one: the second is busy while the first is on its way.
    struct Huge(Fake);
    impl Mover for Huge {
        fn nodes(&mut self, addresses: &[u64]) -> io::Result<Vec<i32>> {
            self.0.nodes(addresses)
        }
        fn relocate(&mut self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
            let mut status = self.0.relocate(addresses, nodes)?;
            status[1] = -libc::EBUSY;
            Ok(status)
        }
    }
    let mut huge = Huge(Fake::with(2, |_| 0));
    let done = migrate(&mut huge, &[span(2, Rule::To(vec![1]))], &mut |_| ()).unwrap();
    assert_eq!((done.moved, done.there, done.from), (2, 0, [(0, 2 * PAGE)].into()));
}

/// Check that a process which ends leaves what was done, that a refusal is an error, and that a sparse mapping is not searched to its end.
#[test]
fn ends_and_refusals() {
    let mut fake = Fake::with(4 * CHUNK, |_| 0);
    fake.lives = Some(4);
    let done = migrate(&mut fake, &[span(4 * CHUNK, Rule::To(vec![1]))], &mut |_| ()).unwrap();
    assert!(done.ended && done.moved == 2 * CHUNK - 1);

    struct Refuses;
    impl Mover for Refuses {
        fn nodes(&mut self, _: &[u64]) -> io::Result<Vec<i32>> {
            Err(io::Error::from_raw_os_error(libc::EPERM))
        }
        fn relocate(&mut self, _: &[u64], _: &[i32]) -> io::Result<Vec<i32>> {
            Ok(Vec::new())
        }
    }
    assert_eq!(migrate(&mut Refuses, &[span(9, Rule::To(vec![1]))], &mut |_| ()).unwrap_err().raw_os_error(), Some(libc::EPERM));

    let mut fake = Fake::with(10, |_| 0);
    let huge = Span { present: Some(10), ..span(1 << 30, Rule::To(vec![1])) };
    assert_eq!(migrate(&mut fake, &[huge], &mut |_| ()).unwrap().moved, 10);
    assert_eq!(fake.calls, 2);
}
